"""Invoices and overviews in a real browser, as customers look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from gateway.pipeline import invoicing
from gateway.pipeline.billing.amounts import Used
from gateway.pipeline.billing.figures import Completeness, Day, Topic, Use
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import read
from gateway.pipeline.chargeback import MonthlyUse
from gateway.pipeline.demo.showing import PRICES
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip
from tests.support.browsing import DESK, PHONE, Page, opened, programs

MONTH = Month(2026, 10)
MARKUP = "<img src=x onerror=alert(1)><script>document.title='gone'</script>\u202e"
HOSTILE = MARKUP + "W" * 300
TENANTS = ("acme", HOSTILE)


@pytest.fixture(scope="module")
def browser(say: Say) -> Iterator[Chrome]:
    with opened(or_skip(programs, say)) as driver:
        yield driver


def written(folder: Path, use: MonthlyUse) -> list[Path]:
    """Write the pages of a month; return them."""
    invoicing.write(folder, MONTH, read(PRICES, Path("prices.yaml")), use)
    return sorted((folder / str(MONTH)).glob("*.html"))


def used(*tenants: str) -> MonthlyUse:
    """Return a month in which all use the same, and some records are missing."""
    some = Completeness(990, 1000)
    figures = (123_456_789_012, 98_765_432_109, 1_234_567, 987_654)
    days = tuple(Day(it, *figures, 3_600_000, some) for it in MONTH.days())
    topics = tuple(Topic(f"persistent://t/n/{MARKUP}{'x' * it}", *figures) for it in (0, 1, 200))
    uses = {it: Use(some, days, topics) for it in tenants}
    sums = tuple(Used(it, figures[0], figures[1], figures[2], figures[3]) for it in uses)
    return MonthlyUse(sums, uses, some)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("tenants", [TENANTS, ()], ids=["hostile names", "an empty month"])
def test_pages_fit_their_window_and_run_nothing(
    browser: Chrome, tmp_path: Path, tenants: tuple[str, ...], size: tuple[int, int]
) -> None:
    paths = written(tmp_path, used(*tenants))
    assert len(paths) == len(tenants) + 1
    for path in paths:
        page = Page(browser, path.as_uri(), size)
        # The page itself never scrolls sideways; a wide table does, within its frame.
        assert page.run("return document.documentElement.scrollWidth") <= size[0]
        assert page.all("script, main img") == []
        assert "October 2026" in page.text("body")
        assert page.violations() == []
        assert page.complaints() == []


def test_amounts_are_seen_on_a_phone(browser: Chrome, tmp_path: Path) -> None:
    """Of a table that is too wide the last column stays in sight."""
    written(tmp_path, used("acme"))
    page = Page(browser, (tmp_path / str(MONTH) / "invoice-acme.html").as_uri(), PHONE)
    script = "return document.querySelector('tr.total td:last-child').getBoundingClientRect().right"
    assert page.run(script) <= PHONE[0]
    assert page.run("return document.querySelector('.scroll').scrollWidth") > PHONE[0]
