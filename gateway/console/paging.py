"""Pages of tables: what a query asks for, and the rows that match it, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_ROWS = 1000
"""Most rows of one response."""

_LONGEST_SEARCH = 200


class BadQueryError(Exception):
    """A query that cannot be answered. The error's text is sent to the client."""


class Page(NamedTuple):
    """The part of a table that a query asks for: search, order, and range of rows."""

    search: str = ""
    sort: str = ""
    descending: bool = True
    limit: int = 100
    offset: int = 0


class Table(NamedTuple):
    """The fields of a table. `orders`: fields by which its rows can be sorted; the first is the
    default. `searched`: fields in which a search looks for the text."""

    orders: tuple[str, ...]
    searched: tuple[str, ...]


CONNECTIONS = Table(
    (
        *("seconds", "id", "listener", "client", "principal", "library", "method", "broker"),
        *("tls", "producers", "consumers", "held_bytes"),
    ),
    ("client", "principal", "library", "broker"),
)
TOPICS = Table(
    (
        *("bytes_in", "topic", "tenant", "cluster", "producers", "consumers", "subscriptions"),
        *("messages_in", "messages_out", "bytes_out", "held_bytes", "wait_seconds"),
    ),
    ("topic", "tenant"),
)


def page_of(query: Mapping[str, str], table: Table) -> Page:
    """Return which part of a table a query asks for. Raises `BadQueryError` for a bad query."""
    descending = query.get("descending", "true")
    if descending not in ("true", "false"):
        raise BadQueryError("descending: is neither true nor false")
    sort = query.get("sort", "")
    if sort and sort not in table.orders:
        raise BadQueryError(f"sort: is not one of {', '.join(table.orders)}")
    return Page(
        query.get("search", "")[:_LONGEST_SEARCH],
        sort,
        descending == "true",
        _whole(query, "limit", 100, MOST_ROWS),
        _whole(query, "offset", 0, 1 << 31),
    )


def matching(rows: list[dict[str, Any]], page: Page, table: Table) -> list[dict[str, Any]]:
    """Return the rows that match the page's search, sorted as the page asks. All of them are
    returned: `limit` and `offset` are not applied."""
    text, order = page.search.casefold(), page.sort or table.orders[0]
    matched = rows
    if text:
        matched = [
            row
            for row in rows
            if any(text in str(row[name] or "").casefold() for name in table.searched)
        ]
    is_text = any(isinstance(row[order], str) for row in matched)
    none: Any = "" if is_text else -1
    return sorted(
        matched,
        key=lambda row: none if row[order] is None else row[order],
        reverse=page.descending,
    )


def _whole(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise BadQueryError(f"{name}: is not a whole number from 0 to {most}")
    return int(text)
