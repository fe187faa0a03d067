"""Currencies, and dividing whole units of money so that parts sum to the whole.

Nothing here is a float, and no sum is a `Decimal` sum: those round to the 28 digits of the thread's
context without a word. Exact values are fractions, money is whole units (cents), and a `Decimal` is
only how an amount is written.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Key = TypeVar("Key", bound="str | int | tuple[str | int, ...]")

MINUS: Final = "\u2212"
"""Stands before negative figures on pages, as wide as a plus."""

_TWO_DECIMALS: Final = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE
CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD
HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK
MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD
RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH
USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
"""

_OTHER_DECIMALS: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}

DECIMALS: Final[Mapping[str, int]] = {
    **dict.fromkeys(_TWO_DECIMALS.split(), 2),
    **{code: number for number, codes in _OTHER_DECIMALS.items() for code in codes.split()},
}
"""Decimals of the currencies of ISO 4217, without metals, funds of settlement and test codes."""


class Currency(NamedTuple):
    """A currency. `decimals`: of its smallest unit, 2 for cents."""

    code: str
    decimals: int

    @property
    def scale(self) -> int:
        """How many smallest units make one."""
        return int(10**self.decimals)

    def amount(self, units: int) -> Decimal:
        """Return an amount of smallest units: 150 cents are 1.50."""
        # From a text, because arithmetic on a Decimal would round to the context's precision.
        return Decimal(f"{units}e-{self.decimals}")

    def units(self, amount: Decimal | Fraction) -> int:
        """Return an amount in smallest units. Raises `ValueError` for a part of such a unit."""
        found = Fraction(amount) * self.scale
        if found.denominator != 1:
            raise ValueError(f"has more decimals than {self.code}, which has {self.decimals}")
        return found.numerator

    def rounded(self, exact: Fraction) -> int:
        """Return the nearest number of smallest units; a half goes to the even one."""
        return round(exact * self.scale)

    def total(self, amounts: Iterable[Decimal]) -> Decimal:
        """Return the exact sum of amounts, whose decimals are those of the currency."""
        return self.amount(sum(map(self.units, amounts)))

    def text(self, amount: Decimal) -> str:
        """Return an amount for readers, with its code: `1,234.50 EUR`."""
        units = self.units(amount)
        whole, part = divmod(abs(units), self.scale)
        decimals = f".{part:0{self.decimals}}" if self.decimals else ""
        return f"{MINUS if units < 0 else ''}{whole:,}{decimals} {self.code}"


def currency_of(code: str) -> Currency | None:
    """Return the currency of a code of ISO 4217, or None if there is none."""
    decimals = DECIMALS.get(code)
    return None if decimals is None else Currency(code, decimals)


def apportion(whole: int, parts: Mapping[Key, Fraction]) -> dict[Key, int]:
    """Divide whole units by the largest remainder; the result sums to `whole`.

    `parts` are exact and not negative, and their sum is less than one unit away from `whole`.
    Each part becomes its floor or the unit above it, and a whole part stays what it is. Of equal
    remainders the one with the smaller key comes first, so the order of `parts` is of no effect.
    Raises `ValueError` for parts that do not sum up to `whole`, or that are negative.
    """
    found = {key: part.numerator // part.denominator for key, part in parts.items()}
    remainders = {key: part - found[key] for key, part in parts.items()}
    left = whole - sum(found.values())
    uneven = [key for key, rest in remainders.items() if rest]
    if min(found.values(), default=0) < 0 or not 0 <= left <= len(uneven):
        raise ValueError("the parts do not sum to the whole")
    for key in sorted(uneven, key=lambda it: (-remainders[it], it))[:left]:
        found[key] += 1
    return found


def decimal_text(value: Fraction, decimals: int) -> str:
    """Return a value in plain digits, without zeros at the end, rounded to `decimals`."""
    units = round(value * 10**decimals)
    whole, part = divmod(abs(units), 10**decimals)
    text = f"{whole}.{part:0{decimals}}".rstrip("0").rstrip(".") if decimals else str(whole)
    return f"-{text}" if units < 0 else text
