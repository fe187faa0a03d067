"""What the gateway does with a command: the shape of the rows of `table`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from gateway.wire.contract import Direction, Effects
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind, actions

Decide = Callable[[Any, BaseCommand, bytes, float], Effects]
"""Decides a stopped command: of the session, with the frame and the time."""

Names = Callable[[BaseCommand], tuple[str, ...]]
"""Returns the names in a client's command, the topic's first."""

Rewrite = Callable[[Any, BaseCommand], bool]
"""Replaces the brokers' addresses in a command by a veil's; returns whether there were any."""


class Stops(Enum):
    """When a known command stops, to be decided. All that have no row pass unread."""

    ALWAYS = auto()
    LIMITED = auto()  # where rules may limit what clients do
    COUNTED = auto()  # where its account does not let it pass; it is counted as it passes


class Row(NamedTuple):
    """A command of one direction.

    `decide`: None if it goes on, with the brokers in it hidden. `names`: those by whose topic
    something is decided. `addresses`: replaces those of brokers. `text`: the message and the field
    of an error text, which loses the brokers that it names.
    """

    direction: Direction
    kind: Kind
    stops: Stops
    decide: Decide | None = None
    names: Names | None = None
    addresses: Rewrite | None = None
    text: tuple[str, str] | None = None


class Commands:
    """All rows. `rows`: by direction and command type."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[Direction, dict[int, Row]] = {direction: {} for direction in Direction}
        for row in rows:
            self.rows[row.direction][row.kind] = row
        self._actions = {
            (direction, unknown_pass, limited): self._for_scanner(
                direction, unknown_pass=unknown_pass, limited=limited
            )
            for direction in Direction
            for unknown_pass in (False, True)
            for limited in (False, True)
        }

    def that_stop(self, stops: Stops) -> Mapping[Direction, frozenset[Kind]]:
        """Return the commands that stop in this case."""
        return {
            direction: frozenset(row.kind for row in rows.values() if row.stops is stops)
            for direction, rows in self.rows.items()
        }

    def actions(
        self, direction: Direction, *, unknown_pass: bool, limited: bool
    ) -> tuple[int, ...]:
        """Return what a scanner does with each command type. All pairs share them."""
        return self._actions[direction, unknown_pass, limited]

    def _for_scanner(
        self, direction: Direction, *, unknown_pass: bool, limited: bool
    ) -> tuple[int, ...]:
        stopped = self.that_stop(Stops.ALWAYS)[direction]
        if limited:
            stopped |= self.that_stop(Stops.LIMITED)[direction]
        return actions(self.that_stop(Stops.COUNTED)[direction], stopped, unknown_pass=unknown_pass)
