"""The pages on protocols have the tables of the code, and the code's tables have everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from gateway.wire.contract import Direction
from gateway.wire.plugin import Mode
from gateway.wire.pulsar import frames, rights
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.table import COMMANDS
from tests.docs import regions, states
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

NAMING = re.compile("topic|(.*_)?topics|namespace|partitions|(.*_)?subscription(_name)?")
"""The texts that name a topic, or what belongs to one."""

FILTERED = {Kind.GET_TOPICS_OF_NAMESPACE, Kind.WATCH_TOPIC_LIST, Kind.WATCH_SCALABLE_TOPICS}
"""Requests about a whole namespace, whose answers lose what the client may not know of."""

OF_BROKERS = {
    *(Kind.CONNECTED, Kind.SEND_RECEIPT, Kind.SEND_ERROR, Kind.MESSAGE, Kind.SUCCESS, Kind.ERROR),
    *(Kind.PRODUCER_SUCCESS, Kind.REACHED_END_OF_TOPIC, Kind.ACTIVE_CONSUMER_CHANGE),
    *(Kind.AUTH_CHALLENGE, Kind.TOPIC_MIGRATED),
    *(Kind.WATCH_TOPIC_LIST_SUCCESS, Kind.WATCH_TOPIC_UPDATE, Kind.SCALABLE_TOPIC_UPDATE),
    *(Kind.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, Kind.WATCH_SCALABLE_TOPICS_UPDATE),
    Kind.WATCH_TC_ASSIGNMENTS_UPDATE,
    *(kind for kind in Kind if kind.name.endswith("_RESPONSE") and kind != Kind.AUTH_RESPONSE),
}
"""Commands that only brokers send."""

TYPES = set(BaseCommand.Type.DESCRIPTOR.values_by_number)


def texts(message: Descriptor | None, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all texts of a message, those of nested messages included."""
    for field in () if message is None else message.fields:
        if field.type == field.TYPE_STRING:
            yield field.name
        elif field.message_type is not None and field.message_type.full_name not in inside:
            yield from texts(field.message_type, (*inside, field.message_type.full_name))


def naming() -> set[int]:
    """The commands in whose schema something names a topic, or what belongs to one."""
    return {
        field.number
        for field in BaseCommand.DESCRIPTOR.fields
        if any(map(NAMING.fullmatch, texts(field.message_type)))
    }


def test_the_page_has_what_is_needed_beside_and_which_lists_lose_topics() -> None:
    lines = section("Rights").splitlines()
    (beside,) = (line for line in lines if "initial_subscription_name" in line)
    assert set(re.findall(r"\b[A-Z_]{5,}\b", beside)) == {Kind(kind).name for kind in rights.ALSO}
    (lists,) = (line for line in lines if line.startswith("- Lists of topics"))
    asked = {Kind(kind).name for kind in rights.LIST_REQUESTS}
    assert set(re.findall(r"`([A-Z_]+)`", lists)) == asked


def test_each_command_of_clients_needs_a_right_or_is_known_to_need_none() -> None:
    assert rights.NEEDS.keys() | rights.FREE.keys() == TYPES - OF_BROKERS
    assert rights.NEEDS.keys() & rights.FREE.keys() == set()
    assert set(Kind) == TYPES


def test_each_command_that_names_a_topic_needs_a_right_or_is_filtered() -> None:
    assert naming() - OF_BROKERS == rights.NEEDS.keys() | FILTERED
    assert rights.FREE.keys() >= FILTERED
    assert rights.ALSO.keys() <= rights.NEEDS.keys()


def test_each_answer_that_lists_topics_is_filtered() -> None:
    assert naming() & OF_BROKERS == rights.LISTINGS.keys()


@pytest.mark.parametrize("kind", rights.LISTINGS, ids=lambda kind: Kind(kind).name)
def test_each_list_of_names_in_an_answer_is_filtered(kind: int) -> None:
    listing = rights.LISTINGS[kind]
    message = getattr(BaseCommand(), listing.field).DESCRIPTOR
    assert set(listing.lists) == set(lists_of_texts(message))


def lists_of_texts(message: Descriptor) -> Iterator[str]:
    for field in message.fields:
        if field.message_type is not None:
            yield from (f"{field.name}.{path}" for path in lists_of_texts(field.message_type))
        elif field.is_repeated and field.type == field.TYPE_STRING:
            yield field.name


def test_the_scanner_knows_the_lists_of_topics() -> None:
    assert rights.LISTINGS.keys() == frames.LISTS


def test_what_needs_a_right_stops_where_there_are_rules() -> None:
    assert rights.NEEDS.keys() <= STOPS[Direction.TO_BROKER] | LIMITS[Direction.TO_BROKER]
    assert rights.LISTINGS.keys() <= STOPS[Direction.TO_CLIENT] | LIMITS[Direction.TO_CLIENT]


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
