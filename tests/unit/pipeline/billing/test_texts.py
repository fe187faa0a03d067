"""Names that others chose, in tables, pages and names of files."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.billing.file_names import file_stem
from gateway.pipeline.billing.markup import join, name, tag
from gateway.pipeline.billing.tables import csv_text
from gateway.usage.texts import LONGEST, harmless, visible

NAMES = st.text(st.characters(exclude_categories=()), max_size=30)
HOSTILE = st.one_of(
    NAMES,
    st.text("<>&'\"=+-@/\\.*\r\n\t\u202e\0 ab", max_size=30),
    st.sampled_from(["=1+1", "../../x", "</style><script>", "CON", "a" * 500]),
)


@pytest.mark.parametrize("first", list("=+-@\uff1d\uff0b\uff0d\uff20"))
@pytest.mark.parametrize("before", ["", " "])
def test_a_formula_becomes_a_text(first: str, before: str) -> None:
    assert harmless(f"{before}{first}cmd|'/c calc'!A1").startswith("'")


@pytest.mark.parametrize("plain", ["acme", "2026-11/acme", "a=b", ""])
def test_other_texts_stay(plain: str) -> None:
    assert harmless(plain) == plain


def test_numbers_are_never_changed() -> None:
    text = csv_text(["a", "b", "c", "d"], [[Decimal("-1.50"), Fraction(-1, 3), -7, None]])
    assert text == "a,b,c,d\r\n-1.50,-0.333333333333,-7,\r\n"


@given(st.lists(st.lists(HOSTILE, min_size=2, max_size=2), max_size=4))
def test_a_table_is_read_back_as_it_was(rows: list[list[str]]) -> None:
    text = csv_text(["a", "b"], rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], *rows]


@given(st.lists(st.lists(HOSTILE, min_size=2, max_size=2), max_size=4))
def test_a_table_for_spreadsheets_has_no_formulas(rows: list[list[str]]) -> None:
    text = csv_text(["a", "b"], rows, for_spreadsheets=True)
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [["a", "b"], *[[harmless(it) for it in row] for row in rows]]
    assert all(not it.lstrip().startswith(("=", "+", "-", "@")) for row in found for it in row)
    assert text.encode("utf-8")


@given(HOSTILE)
def test_each_character_of_a_name_is_seen(text: str) -> None:
    assert visible(text).isprintable()
    assert len(visible(text)) <= LONGEST + 13


@given(HOSTILE, HOSTILE)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)
    assert (file_stem(one) == file_stem(other)) == (one == other)


def test_a_name_that_spells_an_escape_is_not_the_character() -> None:
    assert visible("\\u202e") != visible("\u202e")


def test_names_that_differ_in_case_alone_have_different_files() -> None:
    assert file_stem("Acme").lower() != file_stem("acme").lower()


@given(HOSTILE)
def test_the_name_of_a_file_is_no_path(text: str) -> None:
    stem = file_stem(text)
    assert stem.startswith("invoice-")
    assert set(stem) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
    assert len(stem) < 100


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(HOSTILE)
def test_a_name_never_becomes_markup(text: str) -> None:
    reader = Reader()
    reader.feed(tag("p", name(text), title=visible(text) + "x"))
    reader.close()
    assert reader.tags == [("p", [("title", visible(text) + "x")]), ("bdi", [])]
    assert reader.text == visible(text)


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", join(("<", tag("b", "&")))) == "<p>&lt;<b>&amp;</b></p>"
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
