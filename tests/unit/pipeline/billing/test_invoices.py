"""The pages: what a customer reads, whatever tenants and topics are called."""

from __future__ import annotations

import csv
import io
import re
from datetime import date
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.pipeline.billing import invoices, overview
from gateway.pipeline.billing.adjustments import Adjustment, adjust
from gateway.pipeline.billing.amounts import Statement, Used, charge
from gateway.pipeline.billing.charts import Chart, Column, bars, ceiling
from gateway.pipeline.billing.figures import Completeness, Day, Topic, Use
from gateway.pipeline.billing.invoices import Invoice
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.overview import Overview
from gateway.pipeline.billing.prices import RateCard, read
from gateway.pipeline.billing.topics import MOST
from gateway.pipeline.billing.wording import bytes_text

GB = 10**9
OCTOBER, NOVEMBER = Month(2026, 10), Month(2026, 11)
ALL = Completeness(1000, 1000)
SOME = Completeness(990, 1000)
NONE = Completeness(0, 0)

PRICES = read(
    "version: 1\ncurrency: EUR\nissuer: Example & Sons\nnote: Ask us\n"
    "prices: {gb_in: {price: 0.5, tiers: [{above: 10, price: 0.25}]}}\n",
    Path("prices.yaml"),
)
BILL = read(
    "version: 1\ncurrency: EUR\nbill: {amount: 10, split: proportional, by: {bytes_in: 1}}\n",
    Path("prices.yaml"),
)
USED = Used("acme", 12 * GB, 3 * GB, 5000, 900)


class Page(HTMLParser):
    """A page as its elements and its text; it must be well-formed."""

    EMPTY = frozenset({"meta", "link"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "svg"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def days(completeness: Completeness = ALL) -> tuple[Day, ...]:
    return tuple(
        Day(day, day.day * 10**8, 10**8, day.day * 1000, 10, 3_600_000 * 5, completeness)
        for day in NOVEMBER.days()
    )


def invoice(
    completeness: Completeness = ALL,
    card: RateCard = PRICES,
    adjustments: tuple[Adjustment, ...] = (),
    name: str = "acme",
    topics: tuple[Topic, ...] = (),
) -> Invoice:
    used = Used(name, 12 * GB, 3 * GB, 5000, 900)
    statement = charge(card, [used]).of(name)
    assert statement is not None
    use = Use(completeness, days(completeness), topics)
    return Invoice(card, NOVEMBER, statement, use, adjustments)


def late() -> tuple[Adjustment, ...]:
    before, after = charge(PRICES, [Used("acme", 2 * GB)]), charge(PRICES, [Used("acme", GB)])
    return adjust(PRICES.currency, (OCTOBER, NOVEMBER), before.lines(), after.lines())


def read_page(made: Invoice) -> Page:
    return Page(invoices.to_html(made))


def test_an_invoice_has_lines_and_their_total() -> None:
    page = read_page(invoice())
    assert "Data in 10 GB 0.5 EUR 100 % 5.00 EUR" in page.text
    assert "Data in above 10 GB 2 GB 0.25 EUR 100 % 0.50 EUR" in page.text
    assert "Total 5.50 EUR" in page.text
    assert "Example & Sons" in page.text
    assert "Ask us" in page.text


def test_use_without_a_price_is_told() -> None:
    assert "Used, and without a price" in read_page(invoice()).text
    assert "deliver Data out 3 GB" in read_page(invoice()).text


def test_a_complete_month_has_no_warning_about_records() -> None:
    assert "all are there" in read_page(invoice()).text
    assert "not there yet" not in read_page(invoice()).text
    assert "records are missing" not in read_page(invoice()).text


def test_missing_records_are_explained_and_stand_beside_each_figure() -> None:
    page = read_page(invoice(SOME, topics=(Topic("t", 1, 1, 1, 1),)))
    assert "10 usage records are not there yet" in page.text
    assert "a later invoice has an adjustment" in page.text
    lines, topics, each_day = 2, 1, 30
    assert page.words.count("99 %") == lines + topics + each_day


def test_it_is_said_if_completeness_is_not_known() -> None:
    page = read_page(invoice(NONE))
    assert "It is not known whether records are missing" in page.text


def test_adjustments_are_in_the_total_and_refer_to_their_month() -> None:
    made = invoice(adjustments=late())
    assert str(made.total) == "5.00"
    page = read_page(made)
    assert "Data in of October 2026 \u22121 GB 1.00 EUR 0.50 EUR \u22120.50 EUR" in page.text
    assert "Sum of November 2026 5.50 EUR" in page.text
    assert "Total 5.00 EUR" in page.text


def test_a_part_of_a_bill_says_which_part() -> None:
    text = read_page(invoice(card=BILL)).text
    assert "Data in 12 GB 100 % 100 % 10.00 EUR" in text


def test_a_month_without_use_has_an_invoice() -> None:
    statement = Statement.empty("acme", PRICES.currency)
    page = read_page(Invoice(PRICES, NOVEMBER, statement, Use(ALL)))
    assert "Nothing is charged" in page.text
    assert "Total 0.00 EUR" in page.text


def test_the_day_of_issue_is_said_if_it_is_given() -> None:
    assert "Issued" not in read_page(invoice()).text
    made = invoice()._replace(issued=date(2026, 12, 3))
    assert "Issued 2026-12-03" in read_page(made).text


def test_the_largest_topics_are_shown() -> None:
    topics = tuple(Topic(f"t{it}", it * GB, 0, 1, 1) for it in range(15))
    text = read_page(invoice(topics=topics)).text
    assert f"The {MOST} largest by data, of 15." in text
    assert text.index("t14") < text.index("t5")
    assert "t4 " not in text


HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=20),
    st.text("<>&'\"=/!-[];\0\u202e a", min_size=1, max_size=20),
    st.sampled_from(
        ["<script>alert(1)</script>", "--></style><img src=x onerror=y>", "' onload='x", "]]>"]
    ),
).filter(lambda it: it != "__other__")


def shape(html: str) -> list[tuple[str, list[str]]]:
    """Return the elements of a page and the names of their attributes."""
    return [(tag, sorted(attributes)) for tag, attributes in Page(html).elements]


@settings(max_examples=40)
@given(HOSTILE, HOSTILE)
def test_no_name_changes_what_a_page_is_made_of(tenant: str, topic: str) -> None:
    def made(tenant: str, topic: str) -> str:
        return invoices.to_html(invoice(name=tenant, topics=(Topic(topic, 1, 1, 1, 1),)))

    html = made(tenant, topic)
    assert shape(html) == shape(made("acme", "t"))
    assert html.encode("utf-8")


@settings(max_examples=40)
@given(HOSTILE)
def test_no_name_changes_what_the_overview_is_made_of(tenant: str) -> None:
    def made(tenant: str) -> str:
        charges = charge(PRICES, [Used(tenant, 12 * GB, GB), Used("", GB)])
        return overview.to_html(Overview(PRICES, NOVEMBER, charges, ALL, has_links=True))

    assert shape(made(tenant)) == shape(made("acme"))


@pytest.mark.parametrize("html", [invoices.to_html(invoice(SOME, adjustments=late()))])
def test_a_page_asks_for_nothing_and_runs_nothing(html: str) -> None:
    page = Page(html)
    assert not {"script", "img", "iframe", "object", "form"} & {it for it, _ in page.elements}
    sources = [it["href"] for _, it in page.elements if "href" in it]
    assert sources == ["data:,"]
    assert not re.search(r"url\(|@import|https?:", html)
    (policy,) = [it for it in page.all("meta") if "http-equiv" in it]
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_a_page_is_accessible() -> None:
    page = read_page(invoice(SOME, adjustments=late(), topics=(Topic("t", 1, 1, 1, 1),)))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert len(page.all("caption")) == len(page.all("table")) > 3
    assert {it.get("scope") for it in page.all("th")} == {"row", "col"}
    plots = [it for it in page.all("svg") if it.get("class") != "small"]
    assert len(plots) == 3
    ids = [it["id"] for _, it in page.elements if "id" in it]
    assert len(ids) == len(set(ids))
    for plot in plots:
        assert plot["role"] == "img"
        assert set((plot["aria-labelledby"] or "").split()) <= set(ids)
    assert len(page.all("desc")) == 3


def test_a_table_has_all_that_the_page_has() -> None:
    made = invoice(SOME, adjustments=late())
    found = list(csv.DictReader(io.StringIO(invoices.to_csv(made), newline="")))
    kinds = [(it["Kind"], it["Charge"], it["Amount"]) for it in found]
    assert kinds == [
        ("charge", "bytes_in", "5.00"),
        ("charge", "bytes_in", "0.50"),
        ("adjustment", "bytes_in", "-0.50"),
        ("unpriced", "bytes_out", ""),
        ("unpriced", "msgs_out", ""),
        ("total", "", "5.00"),
    ]
    assert found[0]["Completeness"] == "0.99"
    assert found[2]["OriginalMonth"] == "2026-10"


# The overview.


def test_the_overview_shows_all_tenants_and_what_is_nobodys() -> None:
    charges = charge(
        PRICES, [Used("b", GB), Used("a", 4 * GB, GB), Used("", 2 * GB), Used("c", -1)]
    )
    text = Page(overview.to_html(Overview(PRICES, NOVEMBER, charges, SOME))).text
    of_a = text.index("a used operations without a price 2.00 EUR 99 % 2.00 EUR")
    assert of_a < text.index("b 0.50 EUR 99 % 0.50 EUR")
    assert "Unallocated 1.00 EUR" in text
    assert "The whole 3.50 EUR" in text
    assert "1 row is not billed" in text
    assert "10 usage records are not there yet" in text


def test_a_tenant_with_an_adjustment_alone_is_in_the_overview() -> None:
    made = Overview(PRICES, NOVEMBER, charge(PRICES, []), ALL, late())
    text = Page(overview.to_html(made)).text
    assert "acme 0.00 EUR \u22120.50 EUR 100 % \u22120.50 EUR" in text
    assert "Invoices 1" in text


def test_links_lead_to_the_files_of_invoices() -> None:
    charges = charge(PRICES, [Used("../x", GB), Used("acme", GB)])
    page = Page(overview.to_html(Overview(PRICES, NOVEMBER, charges, ALL, has_links=True)))
    found = [it["href"] or "" for it in page.all("a")]
    assert "invoice-acme.html" in found
    assert all(re.fullmatch(r"invoice-[A-Za-z0-9_.-]+", it) and "/" not in it for it in found)


# Plots.


@given(st.integers(0, 10**40))
def test_a_scale_ends_at_a_round_number_above_all(most: int) -> None:
    end = ceiling(most)
    assert end >= max(most, 1)
    assert end % 4 == 0
    assert end <= max(2 * most, 4)


@given(st.lists(st.tuples(st.integers(0, 10**20), st.integers(0, 5)), max_size=31))
def test_each_bar_is_inside_and_what_is_not_zero_is_seen(values: list[tuple[int, int]]) -> None:
    columns = [Column("1", "title", it, is_marked=False) for it in values]
    page = Page(bars(Chart("k", "t", "d", ("in", "out"), columns, bytes_text)))
    found = page.all("rect")
    assert len(found) == sum(bool(it) for pair in values for it in pair)
    for bar in found:
        x, y, width, height = (float(bar[it] or 0) for it in ("x", "y", "width", "height"))
        assert height >= 1
        assert x >= 0
        assert y >= 10
        assert x + width <= 720


def test_completeness_is_a_part_between_none_and_all() -> None:
    assert Completeness(5, 4).part == 1
    assert Completeness(-1, 4).part == 0
    assert Completeness(1, 3).part == Fraction(1, 3)
    assert (Completeness(5, 4).missing, Completeness(1, 3).missing) == (0, 2)
