"""Damaged messages are found, on either side, however their frames are cut."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction, Drop, Refuse
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.playbooks.frames import producer, producer_success
from tests.playbooks.script import Play
from tests.support.commands import ACTIONS
from tests.support.frames import command, entry_of, frame, message, metadata_of, number, send, tail
from tests.support.subjects import subject_of


def damaged(of: bytes) -> bytes:
    """Return the frame with its last byte changed."""
    return of[:-1] + bytes((of[-1] ^ 1,))


@pytest.fixture
def account() -> Account:
    return Account(Action.PRODUCE, subject_of("a topic"))


@pytest.fixture
def to_broker(account: Account) -> ToBrokerScanner:
    scanner = ToBrokerScanner(ACTIONS[Direction.TO_BROKER, True], crc32c=crc32c)
    scanner.open_producer(1, account)
    return scanner


@pytest.fixture
def to_client(account: Account) -> ToClientScanner:
    scanner = ToClientScanner(
        ACTIONS[Direction.TO_CLIENT, True], Account(Action.CONSUME), crc32c=crc32c
    )
    scanner.open_consumer(1, account)
    return scanner


# -- to the broker -----------------------------------------------------------------------------


def test_undamaged_sends_pass(to_broker: ToBrokerScanner, account: Account) -> None:
    said = bytearray(b"".join(send(1, 300 + n) for n in range(20)))
    assert to_broker.scan(said, 0, len(said)) == len(said)
    assert (account.messages, account.damaged) == (20, 0)


@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_damaged_send_stops_before_any_of_it_has_passed(
    to_broker: ToBrokerScanner, before: int
) -> None:
    good = b"".join(send(1, 300 + n) for n in range(before))
    bad = damaged(send(1, 400))
    said = bytearray(good + bad + send(1, 401))
    assert to_broker.scan(said, 0, len(said)) == len(good)
    assert to_broker.stop == len(bad)
    assert to_broker.is_damaged(bad)


def test_a_send_without_a_checksum_passes(to_broker: ToBrokerScanner) -> None:
    bare = frame(
        command(6, number(1, 1) + number(2, 5)), tail(metadata_of(5), b"payload", checksum=False)
    )
    said = bytearray(bare)
    assert to_broker.scan(said, 0, len(said)) == len(said)
    assert not to_broker.is_damaged(bare)


def test_a_small_send_that_is_cut_is_waited_for(to_broker: ToBrokerScanner) -> None:
    whole = send(1, 300, bytes(1000))
    for cut in (20, 500, len(whole) - 1):
        assert to_broker.scan(bytearray(whole[:cut]), 0, cut) == 0
        assert not to_broker.stop
    assert to_broker.scan(bytearray(whole), 0, len(whole)) == len(whole)


LARGE = 64 * 1024


@pytest.mark.parametrize("piece", [1000, 5000, 40_000, 200_000])
def test_a_large_send_passes_as_it_comes(
    to_broker: ToBrokerScanner, account: Account, piece: int
) -> None:
    whole = send(1, 300, bytes(2 * LARGE))
    stream = whole + send(1, 301)
    at = 0
    while at < len(stream):
        chunk = bytearray(stream[at : at + piece])
        passed = to_broker.scan(chunk, 0, len(chunk))
        assert passed or piece < len(stream) - at
        at += passed
        piece += 0 if passed else 100
    assert account.messages == 2


@pytest.mark.parametrize("last", [1, 100, 40_000])
def test_the_end_of_a_large_damaged_send_never_passes(
    to_broker: ToBrokerScanner, last: int
) -> None:
    whole = damaged(send(1, 300, bytes(2 * LARGE)))
    first = bytearray(whole[:-last])
    assert to_broker.scan(first, 0, len(first)) == len(first)
    rest = bytearray(whole[-last:] + send(1, 301))
    with pytest.raises(PeerError, match="checksum"):
        to_broker.scan(rest, 0, len(rest))
    assert to_broker.owed == last


def test_a_damaged_send_is_refused_as_a_broker_refuses_it() -> None:
    play = Play(checksums=True)
    play.client(producer(1)).forwards()
    play.broker(producer_success()).forwards()
    drop, refuse = play.client(damaged(send(1, 7))).effects or ()
    assert drop == Drop()
    assert isinstance(refuse, Refuse)
    assert refuse.account is play.account
    told = BaseCommand.FromString(refuse.data[8:]).send_error
    assert (told.producer_id, told.sequence_id) == (1, 7)
    assert told.error == ServerError.ChecksumError
    assert (play.account.damaged, play.account.messages) == (1, 0)


def test_a_large_undamaged_send_goes_on() -> None:
    play = Play(checksums=True)
    play.client(producer(1)).forwards()
    play.broker(producer_success()).forwards()
    play.client(send(1, 7, bytes(LARGE))).passes()


# -- to the client -----------------------------------------------------------------------------

MESSAGES = {
    "small": message(1),
    "large": message(1, tail(metadata_of(5), bytes(range(256)) * 1000)),
    "with a broker's entry": message(1, tail(metadata_of(5), b"payload", entry=entry_of(index=7))),
    "with large metadata": message(
        1, tail(metadata_of(5, properties=[{"key": "k", "value": "v" * 100_000}]), b"payload")
    ),
}


@pytest.mark.parametrize("of", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("wrong", [False, True])
def test_messages_are_verified_as_they_pass(
    to_client: ToClientScanner, account: Account, of: bytes, wrong: bool
) -> None:
    stream = b"".join((of, damaged(of) if wrong else of, of, message(2)))
    noise = random.Random(7)
    rest, passed = stream, b""
    while rest:
        take = min(len(rest), noise.choice((1, 7, 40, 300, 5000, 70_000)))
        carry = 0
        while not (cleared := to_client.scan(bytearray(rest[: take + carry]), 0, take + carry)):
            carry += 1
        passed, rest = passed + rest[:cleared], rest[cleared:]
    assert passed == stream
    assert account.messages == 3
    assert account.damaged == wrong


def test_a_message_without_a_checksum_is_not_damaged(
    to_client: ToClientScanner, account: Account
) -> None:
    said = bytearray(message(1, tail(metadata_of(5), b"payload", checksum=False)))
    assert to_client.scan(said, 0, len(said)) == len(said)
    assert account.damaged == 0
