"""Whatever bytes a peer makes a command of, the fault is found to be its own."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.errors import PeerError
from gateway.wire.contract import Direction
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.frames import KNOWN, Kind
from tests.support.commands import STOPS
from tests.support.effects import at_once

from .frames import connect, connected, framed, lookup, raw, redirect_to, varint
from .script import Play, Talk, opening
from .services import BROKER_2, URL_1, URL_2

CALM = settings(max_examples=150, derandomize=True, deadline=None)

NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, (1 << 64) - 1))
PIECES = st.one_of(st.binary(max_size=6), st.sampled_from([URL_1.encode(), b"\xff", b"token"]))


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


FIELDS = st.lists(
    st.one_of(
        st.builds(number_field, st.integers(1, 12), NUMBERS),
        st.builds(bytes_field, st.integers(1, 12), PIECES),
    ),
    max_size=6,
).map(b"".join)
NESTED = st.one_of(FIELDS, st.builds(bytes_field, st.integers(1, 12), FIELDS), PIECES)
"""What often is a message, with fields of the wrong types and texts that are none."""

LOOSE = st.builds(lambda parts: framed(b"".join(parts)), st.lists(FIELDS, min_size=1, max_size=3))


def frames(kinds: frozenset[Kind]) -> st.SearchStrategy[bytes]:
    return st.one_of(st.builds(raw, st.sampled_from(sorted(kinds)), NESTED), LOOSE)


@CALM
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just(Direction.TO_BROKER), frames(STOPS[Direction.TO_BROKER] | {Kind.SEND})
            ),
            st.tuples(st.just(Direction.TO_CLIENT), frames(STOPS[Direction.TO_CLIENT])),
        ),
        max_size=12,
    ),
    st.sampled_from(Mode),
    st.booleans(),
)
def test_of_an_open_pair(
    said: list[tuple[Direction, bytes]], mode: Mode, unknown_pass: bool
) -> None:
    play = Play(mode, unknown_pass=unknown_pass)
    for direction, frame in said:
        with contextlib.suppress(PeerError):
            at_once(play.session.decide(direction, frame, 0.0))
    play.session.close()
    assert play.services.live == []


@CALM
@given(frames(frozenset({Kind.CONNECT, Kind.PING})), st.sampled_from(Mode))
@example(raw(Kind.CONNECT, bytes_field(6, b"\xff")), Mode.PASS_THROUGH)
@example(raw(Kind.CONNECT, bytes_field(5, b"\xff")), Mode.VERIFY)
def test_of_a_client_that_connects(said: bytes, mode: Mode) -> None:
    opening(mode).client_says(said)


@CALM
@given(frames(KNOWN), st.sampled_from(Mode))
@example(raw(Kind.ERROR, bytes_field(3, b"\xff")), Mode.VERIFY)
def test_of_a_broker_that_is_connected_to(said: bytes, mode: Mode) -> None:
    talk = opening(mode).client_says(connect(auth_data=b"alice's token")).dials(None)
    talk.said_to_broker()
    talk.broker_says(said)


@CALM
@given(frames(KNOWN), st.booleans())
@example(raw(Kind.ERROR, bytes_field(3, b"\xff")), True)
def test_of_a_broker_that_is_asked_again(said: bytes, greeted: bool) -> None:
    play = Play()
    play.client(lookup(1)).forwards()
    chase, _ = play.broker(redirect_to(URL_2, 1)).started()
    talk = Talk(chase.converse()).dials(BROKER_2)
    talk.said_to_broker()
    if greeted:
        talk.broker_says(connected()).said_to_broker()
    with contextlib.suppress(PeerError):
        talk.broker_says(said)
