"""What the tables have."""

from __future__ import annotations

from tests.docs.tables import PAGE, written


def test_the_page_of_all_columns_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == written()
