"""docs/protocols/pulsar.md and the code: the page's tables are read, and played."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from gateway.wire.account import Action
from gateway.wire.contract import Direction
from gateway.wire.plugin import FRAME_PADDING, Mode
from gateway.wire.pulsar import frames, rights
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect
from gateway.wire.pulsar.chase import HOPS
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import COMMAND_BOUND, Kind
from gateway.wire.pulsar.incarnations import UNANSWERED
from gateway.wire.pulsar.states import State
from tests.support.commands import COUNTED, LIMITS, STOPS

from .frames import (
    Fields,
    close_consumer,
    close_producer,
    connect,
    error,
    message,
    migrated,
    producer,
    producer_success,
    queued,
    read,
    receipt,
    send,
    send_error,
    subscribe,
    success,
    unsubscribe,
)
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, VERSION, Play, opening
from .services import BROKER_1, NAME_1, OWN

PAGE = Path(__file__).parents[2] / "docs" / "protocols" / "pulsar.md"

Row = list[str]


def table(heading: str) -> list[Row]:
    """The rows of the first table under a heading, its head first."""
    section = re.split(r"^#+ +", PAGE.read_text(), flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(heading + "\n"))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def commands(rows: list[Row]) -> set[Kind]:
    """What stands in backticks in the first column."""
    return {Kind[name] for row in rows[1:] for name in re.findall(r"`([A-Z_]+)`", row[0])}


@pytest.mark.parametrize(
    ("direction", "heading"),
    [
        (Direction.TO_BROKER, "What stops on its way to the broker"),
        (Direction.TO_CLIENT, "What stops on its way to the client"),
    ],
)
def test_the_page_names_every_command_that_stops(direction: Direction, heading: str) -> None:
    assert commands(table(heading)) == STOPS[direction]


@pytest.mark.parametrize(
    ("direction", "heading"),
    [
        (Direction.TO_BROKER, "What stops where limits may hold"),
        (Direction.TO_CLIENT, "What stops where topics may hide"),
    ],
)
def test_the_page_names_what_stops_only_where_there_are_rules(
    direction: Direction, heading: str
) -> None:
    assert commands(table(heading)) == LIMITS[direction]


def test_the_page_names_every_command_that_is_counted() -> None:
    rows = table("What is counted as it passes")
    for direction, word in ((Direction.TO_BROKER, "broker"), (Direction.TO_CLIENT, "client")):
        assert (
            commands([rows[0], *(row for row in rows[1:] if row[1] == word)]) == COUNTED[direction]
        )


def test_each_command_stands_in_one_row() -> None:
    for direction in ("broker", "client"):
        rows = table(f"What stops on its way to the {direction}")
        named = [name for row in rows[1:] for name in re.findall(r"`([A-Z_]+)`", row[0])]
        assert len(named) == len(set(named))


# -- the tables of states ----------------------------------------------------------------------

Said = Callable[[Play], str]
"""Has a peer say a frame; answers what became of it, in the words of the page."""

OPENING, LEAVING, CLOSING = 11, 12, 13
"""The requests of the incarnation that is played; the one before was opened by request 1."""


def by_client(frame: bytes) -> Said:
    return lambda play: play.client(frame).words


def by_broker(frame: bytes) -> Said:
    return lambda play: play.broker(frame).words


def many(*said: Said) -> Said:
    return lambda play: "".join(each(play) for each in said)


def our_close(response: Callable[[int], bytes]) -> Said:
    """The broker answers a close of the gateway, if there is one."""

    return lambda play: play.broker(response(play.our_close)).words


def leave(play: Play) -> str:
    return play.leave().words


def reset(play: Play) -> str:
    if not play.services.admitted:
        return "nothing"
    step = play.reset()
    return "nothing" if step.effects is None else step.words or "wait"


OPENED_BEFORE = many(by_client(producer(1, request=1)), by_broker(producer_success(1)))
OPEN_PRODUCER = by_client(producer(1, request=OPENING))
CLOSE_PRODUCER = by_client(close_producer(1, request=CLOSING))
PRODUCER_READY = by_broker(producer_success(OPENING))

PRODUCER_STATES: dict[str, Said] = {
    "none": many(),
    "opening": OPEN_PRODUCER,
    "reopening": many(OPENED_BEFORE, OPEN_PRODUCER),
    "queued": many(OPEN_PRODUCER, by_broker(queued(OPENING))),
    "open": many(OPEN_PRODUCER, PRODUCER_READY),
    "closing": many(OPEN_PRODUCER, PRODUCER_READY, CLOSE_PRODUCER),
    "closed": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), by_broker(close_producer(1))),
    "abandoned": many(OPENED_BEFORE, OPEN_PRODUCER, by_broker(error(OPENING))),
    "resetting": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), reset),
    "leaving": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), leave),
    "moving": many(OPEN_PRODUCER, PRODUCER_READY, leave),
}

PRODUCER_EVENTS: dict[str, Said] = {
    "client: PRODUCER": by_client(producer(1, request=99)),
    "client: SEND": by_client(send(1)),
    "client: CLOSE_PRODUCER": CLOSE_PRODUCER,
    "broker: PRODUCER_SUCCESS, ready": PRODUCER_READY,
    "broker: PRODUCER_SUCCESS, not ready": by_broker(queued(OPENING)),
    "broker: ERROR to PRODUCER": by_broker(error(OPENING)),
    "broker: SUCCESS to CLOSE_PRODUCER": by_broker(success(CLOSING)),
    "broker: ERROR to CLOSE_PRODUCER": by_broker(error(CLOSING)),
    "broker: SUCCESS or ERROR to our close": our_close(success),
    "broker: CLOSE_PRODUCER": by_broker(close_producer(1)),
    "broker: TOPIC_MIGRATED, withheld": by_broker(migrated(1, 0)),
    "broker: SEND_RECEIPT": by_broker(receipt(1)),
    "broker: SEND_ERROR": by_broker(send_error(1)),
    "gateway: reset": reset,
}

SUBSCRIBED_BEFORE = many(by_client(subscribe(1, request=1)), by_broker(success(1)))
SUBSCRIBE = by_client(subscribe(1, request=OPENING))
SUBSCRIBED = by_broker(success(OPENING))
UNSUBSCRIBE = by_client(unsubscribe(1, request=LEAVING))
CLOSE_CONSUMER = by_client(close_consumer(1, request=CLOSING))

CONSUMER_STATES: dict[str, Said] = {
    "none": many(),
    "opening": SUBSCRIBE,
    "reopening": many(SUBSCRIBED_BEFORE, by_client(close_consumer(1, request=2)), SUBSCRIBE),
    "renewing": many(SUBSCRIBED_BEFORE, SUBSCRIBE),
    "open": many(SUBSCRIBE, SUBSCRIBED),
    "unsubscribing": many(SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE),
    "closing": many(SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE, CLOSE_CONSUMER),
    "abandoned": many(
        SUBSCRIBED_BEFORE,
        by_client(close_consumer(1, request=2)),
        SUBSCRIBE,
        by_broker(error(OPENING)),
    ),
    "moving": many(SUBSCRIBE, SUBSCRIBED, leave),
}

CONSUMER_EVENTS: dict[str, Said] = {
    "client: SUBSCRIBE": by_client(subscribe(1, request=99)),
    "client: UNSUBSCRIBE": UNSUBSCRIBE,
    "client: CLOSE_CONSUMER": CLOSE_CONSUMER,
    "broker: SUCCESS to SUBSCRIBE": SUBSCRIBED,
    "broker: ERROR to SUBSCRIBE": by_broker(error(OPENING)),
    "broker: SUCCESS to UNSUBSCRIBE": by_broker(success(LEAVING)),
    "broker: ERROR to UNSUBSCRIBE": by_broker(error(LEAVING)),
    "broker: SUCCESS to CLOSE_CONSUMER": by_broker(success(CLOSING)),
    "broker: ERROR to CLOSE_CONSUMER": by_broker(error(CLOSING)),
    "broker: SUCCESS or ERROR to our close": our_close(error),
    "broker: CLOSE_CONSUMER": by_broker(close_consumer(1)),
    "broker: TOPIC_MIGRATED, withheld": by_broker(migrated(1, 1)),
    "broker: MESSAGE": by_broker(message(1)),
}

GRIDS = {
    "The states of a producer": (Action.PRODUCE, PRODUCER_STATES, PRODUCER_EVENTS),
    "The states of a consumer": (Action.CONSUME, CONSUMER_STATES, CONSUMER_EVENTS),
}


def played(action: Action, state: Said, event: Said) -> str:
    """What an event does in a state, as the page writes it: effects, and the next state if new."""
    play = Play()
    state(play)
    before = play.state(action)
    effects = event(play)
    after = play.state(action)
    name = "none" if after is None else after.name.lower()
    return effects if before is after and "discard" not in effects else f"{effects} → {name}"


def exceptions(cell: str) -> dict[str, str]:
    """What the last column says, by state: `open, closing: drop; none: forward`."""
    parts = (part.partition(": ") for part in cell.split("; ") if ": " in part)
    return {state: what for states, _, what in parts for state in states.split(", ")}


def cells() -> Iterator[tuple[str, str, str, str]]:
    for heading, (_, states, _) in GRIDS.items():
        for event, usual, others in table(heading)[1:]:
            for state in states:
                yield heading, event, state, exceptions(others).get(state, usual)


@pytest.mark.parametrize(("heading", "event", "state", "cell"), list(cells()))
def test_what_the_page_says_of_a_state_is_what_happens(
    heading: str, event: str, state: str, cell: str
) -> None:
    action, states, events = GRIDS[heading]
    assert played(action, states[state], events[event]) == cell


@pytest.mark.parametrize("heading", GRIDS)
def test_the_page_has_every_state_and_every_event(heading: str) -> None:
    _, states, events = GRIDS[heading]
    _, *rows = table(heading)
    assert [row[0] for row in rows] == list(events)
    assert {state for row in rows for state in exceptions(row[2])} <= set(states)


def test_every_state_is_on_the_page() -> None:
    named = {*PRODUCER_STATES, *CONSUMER_STATES} - {"none"}
    assert named == {state.name.lower() for state in State}


# -- rights ------------------------------------------------------------------------------------

NAMING = re.compile("topic|(.*_)?topics|namespace|partitions|(.*_)?subscription(_name)?")
"""The texts that name a topic, or what belongs to one."""

FILTERED = {Kind.GET_TOPICS_OF_NAMESPACE, Kind.WATCH_TOPIC_LIST, Kind.WATCH_SCALABLE_TOPICS}
"""Requests about a whole namespace, whose responses lose what the client may not know of."""

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


def test_the_page_has_the_right_that_each_command_needs() -> None:
    _, *rows = table("Rights")
    said = {(kind, row[1]) for row in rows for kind in commands([[], row])}
    assert said == {(kind, need.right.value) for kind, need in rights.NEEDS.items()}
    assert len(said) == len(rights.NEEDS)


def test_the_page_says_whether_the_subscription_counts() -> None:
    _, *rows = table("Rights")
    for row in rows:
        for kind in commands([[], row]):
            message = getattr(BaseCommand(), rights.NEEDS[kind].field)
            assert ("subscription" in texts(message.DESCRIPTOR)) == ("subscription" in row[2])


def test_the_page_has_what_is_needed_beside_and_which_lists_lose_topics() -> None:
    section = PAGE.read_text().partition("\n## Rights\n")[2].partition("\n## ")[0]
    (beside,) = (line for line in section.splitlines() if "initial_subscription_name" in line)
    assert set(re.findall(r"`([A-Z_]+)`", beside)) == {Kind(kind).name for kind in rights.ALSO}
    (lists,) = (line for line in section.splitlines() if line.startswith("- From the lists"))
    assert set(re.findall(r"`([A-Z_]+)`", lists)) == {Kind(kind).name for kind in rights.LISTINGS}


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
        "who was verified": "alice",
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


def test_the_page_has_the_bounds_as_they_are() -> None:
    defaults = " ".join(row[1] for row in table("Bounds"))
    bounds = Bounds()
    counted = (bounds.handles, bounds.lookups, bounds.rounds, bounds.fields, bounds.names)
    for number in (*counted, UNANSWERED, HOPS):
        assert f"{number:,}" in defaults
    for size in (
        bounds.collected,
        bounds.all_collected,
        bounds.lookup_bytes,
        bounds.command,
        bounds.handle_names,
    ):
        assert f"{size >> 20} MiB" in defaults
    for size in (FRAME_PADDING, COMMAND_BOUND):
        assert f"{size >> 10} KiB" in defaults
