"""The rate card: a file of prices, or of a bill to be split, as frozen values.

    version: 1
    currency: EUR
    prices:
      gb_in: 0.09
      gb_out: {price: 0.12, tiers: [{above: 1000, price: 0.08}]}

Numbers are read from the text of the file: what YAML takes for a binary fraction, and an octal
number like 010, never gets here. `load` reads a file and reports all mistakes with their lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import yaml
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WrapValidator,
    field_validator,
)

from gateway.config import source, units
from gateway.config.load import read_text, report
from gateway.config.mistakes import Mistake, Place, explain, nearest
from gateway.config.model import NOT_EMPTY, Version
from gateway.config.parts import Part as ConfigurationPart
from gateway.errors import ConfigurationError
from gateway.pipeline.billing.meters import BY_FIGURE, BY_PRICE
from gateway.pipeline.billing.money import DECIMALS, Currency, currency_of
from gateway.pipeline.billing.months import UTC_ZONE, Month
from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidatorFunctionWrapHandler

_ADVICE = "name a file with a rate card"

MOST_DIGITS: Final = 12
"""Of an amount, before the point and after it: above any real price, and short on an invoice."""

_NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]+))?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INFINITE = re.compile(r"[+-]?\.?(nan|inf|infinity)", re.IGNORECASE)

MOST_MONTHS: Final = 120
"""That corrections go back: ten years, for which tax laws have books kept at most."""

_LONGEST_NAME: Final = 200
"""Characters of a tenant's name or of a text on an invoice."""

WHOLE: Final = Fraction(100)
"""All shares of a bill in percent."""


def _number(value: object, example: str) -> Decimal:
    """Read a number that is not negative, from its digits. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError(f"is not a number; {example}")  # noqa: TRY004 - pydantic wants these
    text = format(value, "f") if isinstance(value, Decimal) else str(value).strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        what = "is not finite" if _INFINITE.fullmatch(text) else "is not a number in plain digits"
        raise ValueError(f"{what}; {example}")
    whole, part = match["whole"], match["part"] or ""
    if match["sign"] == "-" and (whole + part).strip("0"):
        raise ValueError(f"is negative; {example}")
    if len(whole) > 1 and whole.startswith("0"):
        raise ValueError(f"begins with a 0; {example}")
    if len(whole) > MOST_DIGITS or len(part) > MOST_DIGITS:
        raise ValueError(f"has more than {MOST_DIGITS} digits before or after the point; {example}")
    return Decimal(f"{whole}.{part}" if part else whole)


def _amount(value: object) -> Decimal:
    return _number(value, "an amount like 0.09, or 0 if it is free")


def _quantity(value: object) -> Decimal:
    found = _number(value, "a quantity like 1000")
    if not found:
        raise ValueError("is 0, where the price itself is valid; a quantity like 1000")
    return found


def _weight(value: object) -> Decimal:
    found = _number(value, "a weight like 1")
    if not found:
        raise ValueError("is 0; a weight like 1, or leave it out")
    return found


def _share(value: object) -> Decimal:
    """Read `12.5%`. A plain number could be a fraction or a percentage."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        raise ValueError("is not a share; percent of the bill like 12.5%")
    found = _number(value.strip().removesuffix("%").rstrip(), "percent of the bill like 12.5%")
    if Fraction(found) > WHOLE:
        raise ValueError("is above 100%; percent of the bill like 12.5%")
    return found


def _currency(value: object) -> Currency:
    found = currency_of(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"is not a currency of ISO 4217; {nearest(value, DECIMALS)}")
    return found


def _line(value: object) -> str:
    """Read a text of one line, as it stands on invoices."""
    text = units.text(value).strip()
    if not text.isprintable() or len(text) > _LONGEST_NAME:
        raise ValueError(f"is not one line of text; {_LONGEST_NAME} printable characters at most")
    return text


def _tenant(value: object) -> str:
    """Read the name of a tenant, or the begin of names with a `*` at its end."""
    name = units.text(value)
    if "*" in name[:-1] or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError("is not a tenant; a name, or team-* for all that begin so")
    if name == OTHER:
        raise ValueError("stands for what is nobody's; the name of a tenant")
    return name


def _exact_tenant(value: object) -> str:
    name = _tenant(value)
    if name.endswith("*"):
        raise ValueError("is not the name of one tenant; a share is of one tenant")
    return name


def _day(value: object) -> date:
    """Read a day. Raises `ValueError`."""
    try:
        # The pattern, because Python also takes 20261016 and weeks.
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("is not a day; the first one with these prices, like 2026-10-16")


def _zone(value: object) -> ZoneInfo:
    # None of the names without an area: "localtime" is what the machine is set to.
    if value == "UTC" or (
        isinstance(value, str) and "/" in value and value in available_timezones()
    ):
        return ZoneInfo(value)
    raise ValueError("is not a time zone; UTC, or a name like Europe/Berlin")


def _months(value: object) -> int:
    text = str(value)
    if not text.isascii() or not text.isdigit() or int(text[:9]) > MOST_MONTHS:
        raise ValueError(f"is not a number of months; 0 to {MOST_MONTHS}")
    return int(text)


def _figure(value: object) -> str:
    if value not in BY_FIGURE:
        raise ValueError(f"is not a figure that is measured; {nearest(value, BY_FIGURE)}")
    return str(value)


Amount = Annotated[Decimal, PlainValidator(_amount), Field(examples=["0.09"])]
Line = Annotated[str, PlainValidator(_line)]


class Part(ConfigurationPart):
    """A part of a rate card."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Tier(Part):
    """Another price for what is above a quantity."""

    above: Annotated[Decimal, PlainValidator(_quantity), Field(examples=["1000"])]
    """Units of a month, as the price has them, up to which the price before is valid."""
    price: Amount
    """Of a unit above that quantity."""


class Price(Part):
    """The price of one unit, and prices of larger quantities."""

    price: Amount
    """Of one unit."""
    tiers: tuple[Tier, ...] = ()
    """Graduated: each part of the quantity has the price of its own tier."""

    @field_validator("tiers")
    @classmethod
    def _ascending(cls, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
        if any(a.above >= b.above for a, b in pairwise(tiers)):
            raise ValueError("is not in order; each tier above the one before")
        return tiers


def _priced(value: object, handler: ValidatorFunctionWrapHandler) -> Price:
    """Read a price with its tiers, or the amount alone."""
    if isinstance(value, Mapping):
        found: Price = handler(value)
        return found
    return Price(price=_amount(value))


UnitPrice = Annotated[Price | None, WrapValidator(_priced), Field(examples=["0.09"])]


class Prices(Part):
    """Prices of units. What has none is not billed; an operation that has no price at all, and is
    used, is reported beside the invoice. A price of 0 says that it is free."""

    gb_in: UnitPrice = None
    """Per GB that producers sent and the broker confirmed, in bytes of frames. A GB is 10^9 bytes,
    not 2^30."""
    gb_out: UnitPrice = None
    """Per GB that consumers got, of 10^9 bytes of frames."""
    million_messages_in: UnitPrice = None
    """Per million messages that producers sent and the broker confirmed; each of a batch counts."""
    million_messages_out: UnitPrice = None
    """Per million messages that consumers got; each of a batch counts."""
    connection_hour: UnitPrice = None
    """Per hour in which one connection was open; two for half an hour are the same."""
    stored_gb_hour: UnitPrice = None
    """Per GB (10^9 bytes) that was stored for an hour."""

    def of(self, meter: str) -> Price | None:
        """Return the price of a meter by the name of its price."""
        found: Price | None = getattr(self, meter)
        return found


class Override(Part):
    """What is different for some tenants."""

    prices: Prices = Prices()
    """Each price given here replaces the earlier price of that name, with all its tiers."""
    minimum: Annotated[Decimal | None, PlainValidator(_amount)] = None
    """Replaces the minimum."""


def _tenants(value: object) -> object:
    return value if value is not None else {}


class Special(Part):
    """Prices of some tenants from a day on; a minimum is of a whole month, and stays."""

    prices: Prices = Prices()
    """Each price given here replaces the earlier price of that name, with all its tiers."""


_OfTenant = Annotated[str, PlainValidator(_tenant)]


class Change(Part):
    """Prices from a day on. What it does not have stays as it was before."""

    valid_from: Annotated[date, PlainValidator(_day), Field(examples=["2026-10-16"])]
    """The first day with these prices."""
    prices: Prices = Prices()
    """Each price given here replaces the earlier price of that name, with all its tiers."""
    tenants: Annotated[Mapping[_OfTenant, Special], BeforeValidator(_tenants)] = {}
    """Replaces the prices of each name or pattern that it has, all of them: `acme: {}` leaves acme
    without prices of its own."""


Weights = Annotated[
    Mapping[
        Annotated[str, PlainValidator(_figure)],
        Annotated[Decimal, PlainValidator(_weight)],
    ],
    NOT_EMPTY,
]
Shares = Annotated[
    Mapping[
        Annotated[str, PlainValidator(_exact_tenant)],
        Annotated[Decimal, PlainValidator(_share)],
    ],
    NOT_EMPTY,
]


class Bill(Part):
    """A fixed bill of the month, to be split. What the split leaves is shown as unallocated."""

    amount: Amount
    """The whole, with the decimals of the currency."""
    split: Literal["proportional", "even", "fixed"]
    """proportional: by use; even: the same for each tenant that used something; fixed: shares."""
    by: Weights | None = None
    """Of a proportional split: which part of the bill is divided by which figure. With bytes_in: 2
    and connection_ms: 1, two thirds are divided by bytes_in. The part of a figure that nobody used
    is unallocated."""
    shares: Shares | None = None
    """Of a fixed split: percent of the bill by tenant, 100% at most."""


class Terms(NamedTuple):
    """What one tenant pays: prices by their names, and the least amount of a month."""

    prices: Mapping[str, Price]
    minimum: Decimal


class RateCard(Part):
    """A file of prices for a month: of units, or a fixed bill to be split."""

    version: Version
    """Of this format: 1."""
    currency: Annotated[Currency, PlainValidator(_currency), Field(examples=["EUR"])]
    """Code of ISO 4217. Amounts have its decimals."""
    issuer: Line = "The operator of the gateway"
    """Who writes the invoices."""
    account: Line = "main"
    """The billing account, as FOCUS calls what all tenants are parts of."""
    service: Line = "Messaging"
    """What is billed, as FOCUS names a service."""
    time_zone: Annotated[ZoneInfo, PlainValidator(_zone)] = UTC_ZONE
    """Of months and days. It stays the same, or hours between two months are billed twice or not
    at all."""
    note: Line | None = None
    """A line at the end of each invoice: where to ask, what to do."""
    prices: Prices | None = None
    """Prices of units. Without them there is a bill."""
    minimum: Amount = Decimal(0)
    """Of a tenant and month; if its lines sum to less, a line has the difference. It is due from
    tenants that used something, and from those that `tenants` names exactly, or a change of an
    earlier month. It does not change within a month."""
    tenants: Annotated[Mapping[_OfTenant, Override], BeforeValidator(_tenants)] = {}
    """What is different for a tenant, or for all tenants that begin with what stands before a `*`.
    The exact name comes first, then the longest begin; they are not added up."""
    changes: tuple[Change, ...] = ()
    """Other prices from a day on, oldest first. The day decides which price use has; the steps of
    tiers count from the begin of the month, whatever prices were valid before."""
    adjusted_months: Annotated[int, PlainValidator(_months)] = 3
    """Closed months before a month that are looked at for late records, the latest ones. By default
    no more, as gateways' own disks keep no older records."""
    bill: Bill | None = None
    """A fixed bill to be split, instead of prices."""

    def changed(self, change: Change) -> RateCard:
        """Return the card as it is after a change, which it then has no more."""
        prices, tenants = (self.prices or Prices()), dict(self.tenants)
        listed = {it: price for it in BY_PRICE if (price := change.prices.of(it)) is not None}
        for name, special in change.tenants.items():
            before = tenants.get(name) or self.override(name) or Override()
            tenants[name] = before.model_copy(update={"prices": special.prices})
        later = tuple(it for it in self.changes if it.valid_from > change.valid_from)
        new = {"prices": prices.model_copy(update=listed), "tenants": tenants, "changes": later}
        return self.model_copy(update=new)

    def on(self, day: date) -> RateCard:
        """Return the card with the prices of a day, and the changes after it."""
        card = self
        while card.changes and card.changes[0].valid_from <= day:
            card = card.changed(card.changes[0])
        return card

    def of(self, month: Month) -> RateCard:
        """Return the card with the prices of a month's first day, and the changes within it."""
        card = self.on(month.first)
        within = tuple(it for it in card.changes if it.valid_from < month.next().first)
        return card.model_copy(update={"changes": within})

    def override(self, tenant: str) -> Override | None:
        """Return what is different for a tenant."""
        exact = self.tenants.get(tenant)
        if exact is not None and not tenant.endswith("*"):
            return exact
        begins = (it for it in self.tenants if it.endswith("*") and tenant.startswith(it[:-1]))
        best = max(begins, key=len, default=None)
        return None if best is None else self.tenants[best]

    def terms(self, tenant: str | None) -> Terms:
        """Return what a tenant pays; None: what nobody's use would cost, without a minimum."""
        override = None if tenant is None else self.override(tenant)
        listed = {it: price for it in BY_PRICE if (price := self.list_price(it)) is not None}
        if override is None:
            return Terms(listed, Decimal(0) if tenant is None else self.minimum)
        own = {it: price for it in BY_PRICE if (price := override.prices.of(it)) is not None}
        minimum = self.minimum if override.minimum is None else override.minimum
        return Terms(listed | own, minimum)

    def list_price(self, meter: str) -> Price | None:
        """Return the price of a meter without overrides."""
        return None if self.prices is None else self.prices.of(meter)

    def named(self) -> frozenset[str]:
        """Return the tenants that have an override of their own."""
        return frozenset(it for it in self.tenants if not it.endswith("*"))


def load(path: Path, environment: Mapping[str, str] | None = None) -> RateCard:
    """Read and check a rate card. `environment` replaces that of the process.

    Raises `ConfigurationError` with a line for each mistake: `prices.yaml:3: prices.gb_in: is
    negative; an amount like 0.09, or 0 if it is free`.
    """
    return read(read_text(path, _ADVICE), path, os.environ if environment is None else environment)


def read(text: str, path: Path, environment: Mapping[str, str] | None = None) -> RateCard:
    """Read a rate card from a text. `path` is what mistakes name. Raises as `load` does."""
    found = source.parse(text, str(path), environment or {})
    card, mistakes = build(_digits(found.data, found.root))
    lines = report(path, found, mistakes)
    if card is None or lines:
        raise ConfigurationError("\n".join(lines))
    return card


def build(data: object) -> tuple[RateCard | None, tuple[Mistake, ...]]:
    """Build a rate card from plain data, or find its mistakes."""
    if data is None:
        return None, (Mistake((), "is empty; at least version, currency and prices"),)
    modes = tuple(_modes(data))
    try:
        card = RateCard.model_validate(data)
    except ValidationError as error:
        return None, (*modes, *explain(error, RateCard))
    mistakes = (*modes, *_contradictions(card))
    return (None if mistakes else card), mistakes


def _digits(data: Any, node: yaml.Node | None) -> Any:
    """Return data with numbers as their texts in the file, except the version."""
    found = _Digits().of(data, node)
    if isinstance(data, dict) and "version" in data:
        found["version"] = data["version"]
    return found


def to_data(card: RateCard) -> dict[str, Any]:
    """Return plain data that `build` makes the same card of. Numbers are texts."""
    data: dict[str, Any] = _plain(card)
    if card.bill is not None and card.bill.shares is not None:
        data["bill"]["shares"] = {name: f"{it:f}%" for name, it in card.bill.shares.items()}
    return data


def _plain(value: Any) -> Any:
    # Not pydantic's own dump, which takes the result of a wrapped validator for its input.
    match value:
        case Part():
            names = [it for it in type(value).model_fields if it in value.model_fields_set]
            return {name: _plain(getattr(value, name)) for name in names}
        case Currency():
            return value.code
        case ZoneInfo():
            return value.key
        case Decimal():
            return format(value, "f")
        case date():
            return value.isoformat()
        case tuple():
            return [_plain(it) for it in value]
        case Mapping():
            return {key: _plain(it) for key, it in value.items()}
        case _:
            return value


class _Digits:
    """Puts the texts of numbers in their places, each shared or cyclic part of a file once."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}

    def of(self, data: Any, node: yaml.Node | None) -> Any:
        if isinstance(node, yaml.ScalarNode):
            is_number = isinstance(data, int | float) and not isinstance(data, bool)
            return node.value if is_number else data
        if id(data) in self._done:
            return self._done[id(data)]
        if isinstance(data, dict) and isinstance(node, yaml.MappingNode):
            return self._mapping(data, node)
        if isinstance(data, list) and isinstance(node, yaml.SequenceNode):
            found = self._done[id(data)] = []
            found += [self.of(it, at) for it, at in zip(data, node.value, strict=False)]
            return found
        return data

    def _mapping(self, data: dict[Any, Any], node: yaml.MappingNode) -> dict[Any, Any]:
        # As in the data, the last of equal keys counts: merged ones come first.
        nodes = {key.value: it for key, it in node.value if isinstance(key, yaml.ScalarNode)}
        found = self._done[id(data)] = {}
        found |= {key: self.of(value, nodes.get(str(key))) for key, value in data.items()}
        return found


def _modes(data: object) -> Iterator[Mistake]:
    """Find fields that do not go together, whatever their values are."""
    if not isinstance(data, Mapping):
        return
    if "prices" in data and "bill" in data:
        yield Mistake(("bill",), "stands beside prices; either unit prices or a bill to be split")
    if "prices" not in data and "bill" not in data:
        yield Mistake((), "has neither prices nor a bill; for example prices: {gb_in: 0.09}")
    for name in ("prices", "bill"):
        if name in data and data[name] is None:
            yield Mistake((name,), "is empty; leave the line out or give it a value")
    if "bill" in data:
        for name in ("minimum", "tenants", "changes"):
            if name in data:
                yield Mistake((name,), "is for unit prices; leave it out beside a bill")
        yield from _split(data["bill"])


def _split(bill: object) -> Iterator[Mistake]:
    if not isinstance(bill, Mapping):
        return
    needs = {"proportional": "by", "fixed": "shares"}
    examples = {"by": "by: {bytes_in: 1, bytes_out: 1}", "shares": "shares: {acme: 60%}"}
    split = bill.get("split")
    for of, name in needs.items():
        if split == of and name not in bill:
            yield Mistake(("bill",), f"has no {name}, by which to split; {examples[name]}")
        if split in ("proportional", "even", "fixed") and split != of and name in bill:
            yield Mistake(("bill", name), f"is for a {of} split; leave it out, or split: {of}")


def _contradictions(card: RateCard) -> Iterator[Mistake]:
    """Find values that are good by themselves, and wrong beside others."""
    if card.prices is not None and not any(card.prices.of(it) for it in BY_PRICE):
        yield Mistake(("prices",), f"has no price; at least one of {', '.join(BY_PRICE)}")
    yield from _decimals(card)
    for number, (one, other) in enumerate(pairwise(card.changes), 1):
        if one.valid_from >= other.valid_from:
            place = ("changes", number, "valid_from")
            yield Mistake(place, "is not after the day of the change before; oldest first")
    shares = (card.bill.shares if card.bill is not None else None) or {}
    total = sum(map(Fraction, shares.values()))
    if total > WHOLE:
        yield Mistake(("bill", "shares"), "sum to more than 100%; 100% at most, the rest stays")


def _decimals(card: RateCard) -> Iterator[Mistake]:
    """Find amounts that are billed as they are, and that the currency cannot express."""
    amounts: list[tuple[Place, Decimal]] = [(("minimum",), card.minimum)]
    if card.bill is not None:
        amounts.append((("bill", "amount"), card.bill.amount))
    amounts += [
        (("tenants", name, "minimum"), it.minimum)
        for name, it in card.tenants.items()
        if it.minimum is not None
    ]
    for place, amount in amounts:
        try:
            card.currency.units(amount)
        except ValueError as why:
            yield Mistake(place, f"{why}; round it")
