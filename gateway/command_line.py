"""The parser of command lines: options and arguments come in any order, in all commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser whose options and arguments come in any order, as in `init edge --tls edge.yaml`.
    Before Python 3.12 the base class takes all arguments with the first one, so an argument behind
    an option gets its default.

    Parsers of commands are of this class too.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._has_commands = self._is_parsing = False

    def add_subparsers(  # type: ignore[override]
        self, **options: Any
    ) -> argparse._SubParsersAction[argparse.ArgumentParser]:
        """See the base class."""
        self._has_commands = True
        return super().add_subparsers(**options)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """See the base class."""
        if self._has_commands or self._is_parsing:
            return super().parse_known_args(args, namespace)
        self._is_parsing = True  # the base parses options, and then the rest, by this method
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_parsing = False
