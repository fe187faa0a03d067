"""HTML that is escaped unless it was made here: text becomes markup by `tag` alone.

A template language would do the same with a dependency more; with this, forgetting to escape a name
is not possible, because a plain `str` never stands on a page as it is.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from gateway.usage.texts import visible

if TYPE_CHECKING:
    from collections.abc import Iterable


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


Content = str | Markup | int | None

_EMPTY: Final = frozenset({"meta", "link", "br", "hr", "col"})
"""Elements that have no end tag in HTML."""


def tag(element: str, /, *content: Content, **attributes: str | int | None) -> Markup:
    """Return an element. A name like `class_` or `stroke_width` becomes `class`, `stroke-width`;
    an attribute that is None is left out, one that is "" has no value."""
    given = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None
    )
    if element in _EMPTY:
        return Markup(f"<{element}{given}>")
    return Markup(f"<{element}{given}>{join(content)}</{element}>")


def _attribute(key: str, value: str | int) -> str:
    shown = key.rstrip("_").replace("_", "-")
    return f' {shown}="{html.escape(str(value))}"' if value != "" else f" {shown}"


def join(content: Iterable[Content]) -> Markup:
    """Return contents one after another; texts are escaped."""
    return Markup("".join(map(_escaped, content)))


def _escaped(content: Content) -> str:
    if content is None:
        return ""
    return content if isinstance(content, Markup) else html.escape(str(content))


def name(text: str) -> Markup:
    """Return a name that others chose: all of its characters are seen, and one that is written
    from right to left does not turn what stands beside it."""
    return tag("bdi", visible(text))
