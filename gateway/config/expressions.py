"""Regular expressions by RE2, which takes time only in proportion to the length of the text.
Clients choose the names that are matched, and for some names other engines would take minutes. RE2
is imported only if a file has an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

NEEDED = "needs a package that is not installed: pip install 'broker-gateway[regex]'"


class Match(Protocol):
    """One match of an expression, with the groups in it."""

    def groups(self) -> Sequence[str | None]: ...

    def groupdict(self) -> Mapping[str, str | None]: ...


class Expression(Protocol):
    """A compiled regular expression, with the number and names of its groups."""

    @property
    def groups(self) -> int: ...

    @property
    def groupindex(self) -> Mapping[str, int]: ...

    def fullmatch(self, text: str, /) -> Match | None: ...


def compiled(text: str) -> Expression:
    """Return a compiled regular expression. Raises `ValueError`, whose text says what is wrong with
    it."""
    try:
        import re2
    except ModuleNotFoundError:
        raise ValueError(NEEDED) from None
    options = re2.Options()
    options.log_errors = False
    try:
        expression: Any = re2.compile(text, options)
    except re2.error as error:
        said = error.args[0]
        why = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"is not a regular expression: {why}") from None
    result: Expression = expression
    return result
