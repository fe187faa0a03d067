"""FOCUS rows are checked by the validator of the FinOps Foundation, by the rules of FOCUS 1.2 that
the validator brings."""

from __future__ import annotations

import hashlib
import re
import subprocess
from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.billing.adjustments import adjust
from gateway.pipeline.billing.amounts import Used
from gateway.pipeline.billing.closing import Closed, Correction
from gateway.pipeline.billing.figures import Completeness, Day, Use
from gateway.pipeline.billing.focus import Setting, to_csv
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, read
from gateway.pipeline.chargeback import MonthlyUse
from gateway.pipeline.invoicing import bill, correct
from tests.packages.environments import INSTALL_S, run
from tests.real.brokers.jars import cache_root

pytestmark = pytest.mark.tier("all")  # the validator takes some seconds for each table

PINS = Path(__file__).with_name("focus-validator.txt")

GB = 10**9
SEPTEMBER, OCTOBER = Month(2026, 9), Month(2026, 10)

APPLICABLE = (
    *("SUB_ACCOUNT_SUPPORTED", "NEGOTIATED_PRICING_SUPPORTED", "ACCOUNT_NAMING_SUPPORTED"),
    *("MULTIPLE_PRICING_CATEGORIES_SUPPORTED", "MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED"),
)
"""What is true of bills. Left out are PUBLIC_PRICE_LIST_SUPPORTED, for which 2.2.1 wants columns of
virtual currencies too, and USAGE_MEASUREMENT_SUPPORTED, for which it wants a consumed quantity of
rows that are no usage, where another rule forbids one."""

ONE_OF_TWO = {"InvoiceId-C-004-C"}
"""InvoiceId is null, or (C-005) it is not: 2.2.1 reports the one that is not so as failed, and the
rule that joins them (C-003) as passed."""


def _python() -> Path:
    """Return a Python that NumPy 1 has wheels for."""
    of_pyenv = Path.home().glob(".pyenv/versions/3.12.*/bin/python")
    for name in ("python3.12", *map(str, sorted(of_pyenv))):
        try:
            if not subprocess.run([name, "--version"], capture_output=True, check=False).returncode:
                return Path(name)
        except FileNotFoundError:
            continue
    pytest.skip("Python 3.12 is not installed")


@pytest.fixture(scope="module")
def validator() -> Path:
    """Return the folder of an environment with the validator, made once on a machine."""
    name = hashlib.sha256(PINS.read_bytes()).hexdigest()[:12]
    folder, python = cache_root() / f"focus-validator-{name}", _python()
    if not (folder / "done").exists():
        run([python, "-m", "venv", "--clear", folder], Path.cwd(), INSTALL_S)
        run([folder / "bin" / "pip", "install", "-q", "-r", PINS], Path.cwd(), INSTALL_S)
        (folder / "done").touch()
    return folder


def failures(validator: Path, table: Path) -> set[str]:
    """Return the rules that a table breaks."""
    (packages,) = validator.glob("lib/*/site-packages")
    said = run(
        [
            *(validator / "bin" / "focus-validator", "--data-file", table),
            *("--validate-version", "1.2", "--block-download"),
            *("--applicability-criteria", ",".join(APPLICABLE)),
        ],
        packages,  # it reads the codes of currencies from a path below this folder
    )
    (passed,) = re.findall(r"Total: \d+ \| Pass: (\d+)", said)
    assert int(passed) > 150, said
    return set(re.findall(r"^❌ (\S+): FAIL", said, re.MULTILINE))


def priced(text: str) -> RateCard:
    return read(f"version: 1\n{text}\n", Path("prices.yaml"))


PRICES = priced(
    "currency: EUR\nminimum: 3\n"
    "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.333}]}, connection_hour: 0.7}\n"
    "tenants: {a: {prices: {gb_in: 0.5}}}\n"
    "changes: [{valid_from: 2026-10-16, prices: {gb_in: 2}}]\n"
)
BILL = priced("currency: JPY\nbill: {amount: 10, split: proportional, by: {bytes_in: 1}}")
EVEN = priced("currency: EUR\nbill: {amount: 10, split: fixed, shares: {a: 33.3%}}")

ALL = Completeness(999, 1000)
DAYS = tuple(
    Day(date(2026, 10, it), 20 * GB, 0, 0, 0, connection_ms=it, completeness=ALL) for it in (5, 20)
)
USE = MonthlyUse(
    tuple(Used(it, 40 * GB, connection_ms=25) for it in ("a", "=b", "nl\nline", "")),
    dict.fromkeys(("a", "=b", "nl\nline", ""), Use(ALL, DAYS)),
    ALL,
)


@pytest.mark.parametrize("card", [PRICES, BILL, EVEN], ids=["prices", "bill", "shares"])
def test_the_rows_of_a_month_are_valid(card: RateCard, validator: Path, tmp_path: Path) -> None:
    charges = bill(card, OCTOBER, USE)
    months = SEPTEMBER, OCTOBER
    late = adjust(card.currency, months, [*charges.lines()][1:], charges.lines())
    table = tmp_path / "focus.csv"
    table.write_text(to_csv(Setting(card, OCTOBER, ALL.part), charges, late), newline="")
    assert failures(validator, table) <= ONE_OF_TWO


def test_the_rows_of_a_correction_are_valid(validator: Path, tmp_path: Path) -> None:
    before = Closed(OCTOBER, PRICES, tuple(bill(PRICES, OCTOBER, USE).lines()))
    card = priced("currency: EUR\nprices: {gb_in: 0.07, connection_hour: 7}")
    again = Closed(OCTOBER, card, (), (), Correction(0, date(2026, 12, 4), "wrong price"))
    correct(tmp_path, again, [before], USE)
    assert failures(validator, tmp_path / "2026-10.1" / "focus.csv") <= ONE_OF_TWO


def test_a_wrong_table_is_reported(validator: Path, tmp_path: Path) -> None:
    charges = bill(PRICES, OCTOBER, USE)
    table = tmp_path / "focus.csv"
    text = to_csv(Setting(PRICES, OCTOBER), charges).replace("Usage-Based", "Hourly")
    table.write_text(text, newline="")
    assert "ChargeFrequency-C-003-M" in failures(validator, table) - ONE_OF_TWO
