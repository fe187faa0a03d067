"""Command types, and what is done with each."""

from __future__ import annotations

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import COUNT, PASS, STOP, Kind, actions, kind_name
from tests.support.commands import ACTIONS, COUNTED, STOPS


def test_every_command_type_is_named() -> None:
    assert {kind.name: kind.value for kind in Kind} == dict(BaseCommand.Type.items())


def test_a_type_has_the_number_of_its_commands_field() -> None:
    """That a command is canonical can be told from two numbers only because they are equal."""
    fields = {field.number for field in BaseCommand.DESCRIPTOR.fields if field.name != "type"}
    assert fields == set(Kind)


def test_all_types_have_one_byte() -> None:
    assert max(Kind) < 128


def test_a_type_that_is_not_known_passes_or_stops() -> None:
    nothing: frozenset[Kind] = frozenset()
    assert actions(nothing, nothing, unknown_pass=True)[100] == PASS
    assert actions(nothing, nothing, unknown_pass=False)[100] == STOP
    assert actions(nothing, nothing, unknown_pass=False)[Kind.PING] == PASS


def test_each_direction_counts_and_stops_what_its_tables_say() -> None:
    for (direction, _), table in ACTIONS.items():
        assert {kind for kind in Kind if table[kind] == COUNT} == COUNTED[direction]
        assert {kind for kind in Kind if table[kind] == STOP} == STOPS[direction]
    assert set(ACTIONS) == {
        (direction, known) for direction in Direction for known in (True, False)
    }


def test_nothing_is_both_counted_and_stopped() -> None:
    assert not any(COUNTED[direction] & STOPS[direction] for direction in Direction)


def test_a_type_that_is_not_known_is_called_by_its_number() -> None:
    assert kind_name(Kind.SEND) == "SEND"
    assert kind_name(100) == "command 100"
