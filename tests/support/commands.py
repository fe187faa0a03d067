"""Columns of the command table in the form that tests use."""

from gateway.wire.contract import Direction
from gateway.wire.pulsar.fields import Act, kinds_with
from gateway.wire.pulsar.rows import Stops
from gateway.wire.pulsar.table import COMMANDS

STOPS = COMMANDS.that_stop(Stops.ALWAYS)
_ASKING = COMMANDS.that_stop(Stops.ASKING)
COUNTED = {way: kinds | _ASKING[way] for way, kinds in COMMANDS.that_stop(Stops.COUNTED).items()}
LIMITS = {way: kinds | _ASKING[way] for way, kinds in COMMANDS.that_stop(Stops.LIMITED).items()}

ACTIONS = {
    (direction, unknown_pass): COMMANDS.actions(direction, unknown_pass=unknown_pass, limited=False)
    for direction in Direction
    for unknown_pass in (False, True)
}

ADDRESSES = set(kinds_with(Direction.TO_CLIENT, Act.ADDRESS, Act.REMOVED))
TEXTS = set(kinds_with(Direction.TO_CLIENT, Act.TEXT))
