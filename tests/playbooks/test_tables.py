"""The pages on protocols have the tables of the code, and the code's tables have everything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.contract import Direction
from gateway.wire.plugin import Mode
from gateway.wire.pulsar import frames, rights
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect
from gateway.wire.pulsar.fields import FREE, RIGHTS, Act, is_sent, kinds_with
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.table import COMMANDS
from tests.docs import regions, states
from tests.soak.largest import directions
from tests.support.commands import LIMITS, STOPS

from .frames import Fields, connect, read
from .grids import CONSUMERS, PRODUCERS
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, opening
from .services import BROKER_1, NAME_1, OWN

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "pulsar.md"

Row = list[str]


def section(heading: str) -> str:
    """Return the page's text under a heading."""
    parts = re.split(r"^#+ +", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(heading + "\n"))


def table(heading: str) -> list[Row]:
    """Return the rows of the first table under a heading, its head first."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


# -- what is generated -------------------------------------------------------------------------


@pytest.mark.parametrize("path", states.PAGES, ids=lambda path: path.name)
def test_the_tables_of_a_page_are_generated(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert page == regions.filled(page, states.TABLES), "make metrics"


def test_each_table_stands_once() -> None:
    pages = [path.read_text(encoding="utf-8") for path in states.PAGES]
    assert sorted(name for page in pages for name in regions.names(page)) == sorted(states.TABLES)


@pytest.mark.parametrize("direction", Direction)
def test_what_is_said_of_commands_is_of_those_that_the_gateway_reads(direction: Direction) -> None:
    assert states.WHAT[direction].keys() <= COMMANDS.rows[direction].keys()


def test_every_state_is_played() -> None:
    played = {*PRODUCERS.states, *CONSUMERS.states} - {"none"}
    assert played == {state.name.lower() for state in State}


# -- rights ------------------------------------------------------------------------------------

TYPES = set(BaseCommand.Type.DESCRIPTOR.values_by_number)


def test_the_page_has_what_is_needed_beside_and_which_lists_lose_topics() -> None:
    lines = section("Rights").splitlines()
    (beside,) = (line for line in lines if "initial_subscription_name" in line)
    also = {kind.name for kind in kinds_with(Direction.TO_BROKER, Act.FIRST_SUBSCRIPTION)}
    assert set(re.findall(r"\b[A-Z_]{5,}\b", beside)) == also
    (lists,) = (line for line in lines if line.startswith("- Lists of topics"))
    asked = {kind.name for kind in rights.LIST_REQUESTS}
    assert set(re.findall(r"`([A-Z_]+)`", lists)) == asked


def test_each_command_of_clients_needs_a_right_or_is_known_to_need_none() -> None:
    """A new release that has one more fails here, until somebody has looked at it."""
    of_clients = {kind for kind in Kind if Direction.TO_BROKER in directions(kind)}
    assert RIGHTS.keys() | FREE.keys() == of_clients
    assert RIGHTS.keys() & FREE.keys() == set()
    assert set(Kind) == TYPES
    for direction in Direction:
        assert all(is_sent(kind, direction) is (direction in directions(kind)) for kind in Kind)


def test_each_command_that_names_a_topic_needs_a_right() -> None:
    assert {*kinds_with(Direction.TO_BROKER, Act.TOPIC)} == RIGHTS.keys()
    assert {*kinds_with(Direction.TO_BROKER, Act.SUBSCRIPTION)} <= RIGHTS.keys()
    assert {*rights.LIST_REQUESTS} <= FREE.keys()


def test_the_scanner_knows_the_lists_of_topics() -> None:
    assert {*kinds_with(Direction.TO_CLIENT, Act.FILTERED)} == frames.LISTS
    assert {*kinds_with(Direction.TO_CLIENT, Act.HASH)} <= frames.LISTS


def test_what_is_authorized_or_filtered_stops_where_there_are_rules() -> None:
    stop = {way: STOPS[way] | LIMITS[way] for way in Direction}
    ours = (Act.TOPIC, Act.NAMESPACE, Act.HASH, Act.CLAIM, Act.EXPRESSION)
    assert {*kinds_with(Direction.TO_BROKER, *ours)} <= stop[Direction.TO_BROKER]
    assert stop[Direction.TO_CLIENT] >= frames.LISTS


def test_what_changes_for_each_listener_stops_always() -> None:
    ours = (Act.ADDRESS, Act.LEADS, Act.TEXT, Act.REMOVED, Act.IDENTITY)
    assert {*kinds_with(Direction.TO_CLIENT, *ours)} <= STOPS[Direction.TO_CLIENT]
    begun = (Act.ADDRESS, Act.IDENTITY)
    assert {*kinds_with(Direction.TO_BROKER, *begun)} <= STOPS[Direction.TO_BROKER]


# -- identity ----------------------------------------------------------------------------------

CLIENT_FIELDS: Fields = {"client_version": "Go-0.19.0", "protocol_version": 18}
PROXY_FIELDS: Fields = {
    "original_principal": "carol",
    "original_auth_data": "carol's token",
    "original_auth_method": "basic",
    "proxy_version": "another proxy",
}
MODES = {"pass-through": PASS_THROUGH, "verify": VERIFY, "verify and forward": FORWARD_TOO}

OURS = {"auth_method_name": OWN.method, "auth_data": OWN.data, "proxy_version": VERSION}
FORWARDED = {"original_auth_data": "alice's token", "original_auth_method": "token"}


def greetings(mode: Mode) -> tuple[CommandConnect, CommandConnect]:
    """What a client says, as much of it as it may, and what the broker is told."""
    may = CLIENT_FIELDS | (PROXY_FIELDS if mode is PASS_THROUGH else {})
    said = connect(auth_method=1, proxy_to_broker_url=NAME_1, **may)
    told = opening(mode).client_says(said).dials(BROKER_1).said_to_broker()
    return read(said).connect, told.connect


def stands(said: CommandConnect, told: CommandConnect, field: Any, whose: str) -> bool:
    if whose == "absent":
        return not told.HasField(field)
    meant: dict[str, object] = {
        "the client's": getattr(said, field),
        "the gateway's": OURS.get(field),
        "the verified principal": "alice",
        "the client's credential": FORWARDED.get(field),
    }
    return told.HasField(field) and bool(getattr(told, field) == meant[whose])


def test_the_broker_is_told_what_the_page_says() -> None:
    head, *rows = table("Identity")
    assert head[1:] == list(MODES)
    fields = [row for row in rows if row[0].startswith("`")]
    for row in fields:
        for mode, whose in zip(head[1:], row[1:], strict=True):
            said, told = greetings(MODES[mode])
            for name in re.findall(r"`([a-z_]+)`", row[0]):
                assert stands(said, told, name, whose), f"{name} under {mode}"
    named = {name for row in fields for name in re.findall(r"`([a-z_]+)`", row[0])}
    assert named == {field.name for field in CommandConnect.DESCRIPTOR.fields}
