"""The type of the rows in `table`: what the gateway does with one command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from gateway.wire.contract import Direction, Effects
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind, actions
from gateway.wire.slices import Slices

Decide = Callable[[Any, BaseCommand, bytes, float], Effects]
"""Decides a stop frame: called with the session, the command, the frame and the time."""

DecideLong = Callable[[Any, bytes, float], Slices[Effects]]
"""Decides a stop frame that may take long: called with the session, the frame and the time."""


class Stops(Enum):
    """When a known command is a stop frame. A command without a row is forwarded unread."""

    ALWAYS = auto()
    LIMITED = auto()  # only if rules may limit clients
    ASKING = auto()  # the same; otherwise what it asks for is counted, and it passes
    COUNTED = auto()  # only if its account has no allowance; otherwise it is counted and passes


class Row(NamedTuple):
    """What the gateway does with one type of command in one direction.

    `decide`: returns what to do with the command; None: the command is forwarded, with broker
    addresses rewritten. `decide_long`: takes the place of `decide` for a command that may be long;
    it decodes the command, too.
    """

    direction: Direction
    kind: Kind
    stops: Stops
    decide: Decide | None = None
    decide_long: DecideLong | None = None


class Commands:
    """The table of what the gateway does with each command. `rows`: by direction and command type;
    the last of several."""

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
        """Return, by direction, the command types whose `Row.stops` has this value."""
        return {
            direction: frozenset(row.kind for row in rows.values() if row.stops is stops)
            for direction, rows in self.rows.items()
        }

    def actions(self, direction: Direction, *, unknown_pass: bool, limited: bool) -> bytes:
        """Return the scanner's action for each command type in a direction, as `frames.actions`
        does. `unknown_pass`: let unknown types pass. `limited`: rules may limit clients."""
        return self._actions[direction, unknown_pass, limited]

    def _for_scanner(self, direction: Direction, *, unknown_pass: bool, limited: bool) -> bytes:
        stopped = self.that_stop(Stops.ALWAYS)[direction]
        if limited:
            stopped |= self.that_stop(Stops.LIMITED)[direction]
            stopped |= self.that_stop(Stops.ASKING)[direction]
        counted = self.that_stop(Stops.COUNTED)[direction] | self.that_stop(Stops.ASKING)[direction]
        return actions(counted - stopped, stopped, unknown_pass=unknown_pass)
