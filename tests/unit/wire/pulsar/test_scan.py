"""What changes while a scanner is in use: ids that come and go, allowances, and its bounds.

How it judges streams is the matter of `tests/conformance`.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.idtable import Key, key
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.support.commands import ACTIONS
from tests.support.frames import (
    command,
    data,
    frame,
    message,
    metadata_of,
    number,
    receipt,
    send,
    simple,
    tail,
)
from tests.support.subjects import subject_of


@pytest.fixture
def to_broker() -> ToBrokerScanner:
    return ToBrokerScanner(ACTIONS[Direction.TO_BROKER, True])


@pytest.fixture
def to_client() -> ToClientScanner:
    return ToClientScanner(ACTIONS[Direction.TO_CLIENT, True], Account(Action.CONSUME))


def producing() -> Account:
    return Account(Action.PRODUCE, subject_of("a topic"))


def scan(scanner: ToBrokerScanner | ToClientScanner, *frames: bytes) -> int:
    """Return how many of these bytes may go on."""
    chunk = bytearray(b"".join(frames))
    return scanner.scan(chunk, 0, len(chunk))


def run(producer_id: int, first: int = 300, many: int = 5) -> bytes:
    """Return SENDs that differ only in their sequence ids."""
    return b"".join(send(producer_id, first + n) for n in range(many))


# -- producers that come and go ----------------------------------------------------------------


def test_a_producer_that_is_forgotten_stops_in_the_midst_of_a_run(
    to_broker: ToBrokerScanner,
) -> None:
    account = producing()
    to_broker.open_producer(1, account)
    assert scan(to_broker, run(1)) == len(run(1))
    to_broker.close_producer(1)
    assert scan(to_broker, run(1)) == 0
    assert to_broker.stop == len(send(1, 300))
    assert account.messages == 5


def test_a_producer_that_is_forgotten_stops_among_others(to_broker: ToBrokerScanner) -> None:
    gone, other = producing(), producing()
    to_broker.open_producer(1, gone)
    to_broker.open_producer(2, other)
    scan(to_broker, send(1, 300), send(2, 300), send(1, 301), send(2, 301))
    to_broker.close_producer(1)
    assert scan(to_broker, send(2, 302), send(2, 303), send(1, 302)) == 2 * len(send(2, 302))
    assert (gone.messages, other.messages) == (2, 4)


def test_a_producer_that_is_opened_again_has_the_new_account(to_broker: ToBrokerScanner) -> None:
    before, after = producing(), producing()
    to_broker.open_producer(1, before)
    scan(to_broker, run(1))
    to_broker.open_producer(1, after)
    scan(to_broker, run(1))
    assert (before.messages, after.messages) == (5, 5)


def test_a_producer_that_is_opened_between_others_does_not_disturb_them(
    to_broker: ToBrokerScanner,
) -> None:
    one, two = producing(), producing()
    to_broker.open_producer(1, one)
    scan(to_broker, run(1))
    to_broker.open_producer(2, two)
    assert scan(to_broker, run(1), run(2), run(1)) == len(run(1) + run(2) + run(1))
    assert (one.messages, two.messages) == (15, 5)


def test_forgetting_a_producer_that_is_not_open_changes_nothing(to_broker: ToBrokerScanner) -> None:
    to_broker.open_producer(1, producing())
    scan(to_broker, run(1))
    to_broker.close_producer(2)
    assert scan(to_broker, run(1)) == len(run(1))


def test_producers_of_one_topic_may_share_an_account(to_broker: ToBrokerScanner) -> None:
    account = producing()
    account.messages_ceiling = 7
    to_broker.open_producer(1, account)
    to_broker.open_producer(2, account)
    assert scan(to_broker, run(1), run(2)) == len(run(1) + run(2, many=2))
    assert account.messages == 7


def test_the_same_id_in_other_bytes_is_the_same_producer(to_broker: ToBrokerScanner) -> None:
    account = producing()
    to_broker.open_producer(1, account)
    padded = frame(command(Kind.SEND, number(1, 1, 4) + number(2, 300)))
    assert scan(to_broker, run(1), padded * 3, run(1)) == len(run(1) + padded * 3 + run(1))
    assert account.messages == 13
    to_broker.close_producer(1)
    assert scan(to_broker, padded) == 0


# -- allowances --------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", range(7))
def test_a_run_stops_at_the_first_frame_without_an_allowance(
    to_broker: ToBrokerScanner, allowed: int
) -> None:
    account = producing()
    to_broker.open_producer(1, account)
    scan(to_broker, run(1))
    account.hold()
    account.grant(messages=allowed)
    size = len(send(1, 300))
    assert scan(to_broker, run(1)) == min(allowed, 5) * size
    assert to_broker.stop == (size if allowed < 5 else 0)
    assert account.messages == 5 + min(allowed, 5)


@pytest.mark.parametrize("more", range(-1, 3))
@pytest.mark.parametrize("frames", range(4))
def test_a_run_stops_at_the_first_frame_without_bytes(
    to_broker: ToBrokerScanner, frames: int, more: int
) -> None:
    account, size = producing(), len(send(1, 300))
    to_broker.open_producer(1, account)
    scan(to_broker, run(1))
    account.bytes_ceiling = account.bytes + frames * size + more
    passing = max(0, frames + (more > 0))
    assert scan(to_broker, run(1)) == passing * size
    assert account.bytes == (5 + passing) * size


def test_a_batch_passes_whole_while_anything_is_left(to_broker: ToBrokerScanner) -> None:
    account = producing()
    account.messages_ceiling = 3
    to_broker.open_producer(1, account)
    batch = send(1, 300, num_messages=1000)
    assert scan(to_broker, send(1, 299), batch, batch) == len(send(1, 299) + batch)
    assert (account.messages, account.frames) == (1001, 2)
    account.grant(messages=998)
    assert scan(to_broker, batch) == 0, "there is debt"
    account.grant(messages=1)
    assert scan(to_broker, batch) == len(batch)


def test_other_producers_pass_behind_one_that_is_held(to_broker: ToBrokerScanner) -> None:
    held, free = producing(), producing()
    to_broker.open_producer(1, held)
    to_broker.open_producer(2, free)
    scan(to_broker, run(1), run(2), send(1, 300), send(2, 300))
    held.hold()
    assert scan(to_broker, run(2), send(1, 301), run(2)) == len(run(2))
    assert to_broker.stop == len(send(1, 301))
    assert scan(to_broker, run(2)) == len(run(2))


# -- what follows a frame that waits -------------------------------------------------------------


def following(scanner: ToBrokerScanner, account: Account, *frames: bytes) -> int:
    """Return how many bytes must wait behind the first of these frames, which halts the scan."""
    chunk = bytearray(b"".join(frames))
    assert scanner.scan(chunk, 0, len(chunk)) == 0
    return scanner.following(account, chunk, scanner.stop, len(chunk)) - scanner.stop


def test_frames_of_one_producer_wait_together(to_broker: ToBrokerScanner) -> None:
    held, free = producing(), producing()
    to_broker.open_producer(1, held)
    to_broker.open_producer(2, free)
    held.hold()
    same = send(1, 300)
    assert following(to_broker, held, same, same, same, send(2, 300), same) == 2 * len(same)
    assert following(to_broker, held, same, same[:-1]) == 0, "one is not all here"
    batch = send(1, 300, num_messages=7)
    assert following(to_broker, held, same, batch, same) == len(batch + same)
    assert following(to_broker, held, same) == 0
    assert held.messages == 0


def test_frames_of_another_producer_do_not_wait_too(to_broker: ToBrokerScanner) -> None:
    held, other = producing(), producing()
    to_broker.open_producer(1, held)
    to_broker.open_producer(2, other)
    held.hold()
    other.hold()
    assert following(to_broker, other, send(1, 300), send(1, 301)) == 0
    assert following(to_broker, held, send(1, 300), send(2, 301)) == 0


def test_whole_frames_that_were_held_are_scanned_like_any_other(to_broker: ToBrokerScanner) -> None:
    account = producing()
    to_broker.open_producer(1, account)
    account.hold()
    held = send(1, 300)
    assert scan(to_broker, held) == 0
    account.grant()
    assert scan(to_broker, held) == len(held)
    assert to_broker.owed == to_broker.stop == 0


@pytest.mark.parametrize("frames", range(5))
def test_the_bytes_of_frames_without_a_payload_count(
    to_broker: ToBrokerScanner, frames: int
) -> None:
    account, bare = producing(), frame(command(Kind.SEND, number(1, 1) + number(2, 300)))
    to_broker.open_producer(1, account)
    account.bytes_ceiling = frames * len(bare)
    assert scan(to_broker, bare * 4) == frames * len(bare)


@pytest.mark.parametrize("allowed", range(6))
def test_producers_in_turn_stop_each_at_its_own_limit(
    to_broker: ToBrokerScanner, allowed: int
) -> None:
    first, second = producing(), producing()
    to_broker.open_producer(1, first)
    to_broker.open_producer(2, second)
    turns = [send(id, 300 + n) for n in range(5) for id in (1, 2)]
    second.messages_ceiling = allowed
    assert scan(to_broker, *turns) == (2 * min(allowed, 5) + (allowed < 5)) * len(turns[0])
    assert second.messages == min(allowed, 5)
    to_broker.close_producer(1)
    to_broker.close_producer(2)
    to_broker.open_producer(1, first)
    to_broker.open_producer(2, second)
    second.grant()
    first.bytes_ceiling = first.bytes + allowed * len(turns[0])
    assert scan(to_broker, *turns) == 2 * min(allowed, 5) * len(turns[0])


# -- consumers and receipts --------------------------------------------------------------------


def test_a_consumer_that_closes_while_its_message_passes_is_still_counted(
    to_client: ToClientScanner,
) -> None:
    account = Account(Action.CONSUME, subject_of("a topic"))
    to_client.open_consumer(1, account)
    metadata = metadata_of(1, num_messages_in_batch=9) + data(4, bytes(20_000))
    whole = bytearray(message(1, tail(metadata)))
    assert to_client.scan(whole, 0, 15_000) == 15_000
    to_client.close_consumer(1)
    assert to_client.owed == len(whole) - 15_000
    to_client.scan(whole, 15_000, len(whole))
    assert (account.messages, account.bytes) == (9, len(whole))


def test_a_receipt_reduces_what_is_outstanding(to_client: ToClientScanner) -> None:
    account = producing()
    account.messages = 2
    to_client.open_producer(1, account)
    scan(to_client, receipt(1), receipt(2))
    assert account.outstanding == 1


def test_messages_of_closed_consumers_are_counted_apart(to_client: ToClientScanner) -> None:
    assert scan(to_client, message(7)) == len(message(7))
    assert to_client.unknown.messages == 1


# -- faults ------------------------------------------------------------------------------------


def test_a_message_with_a_wrong_length_counts_for_one_account_however_it_is_cut() -> None:
    """The broker is at fault; the account that is charged must not depend on the network."""
    rest = tail(b"", bytes(20), checksum=False, length=1 << 30)
    lying = frame(command(Kind.MESSAGE, number(1, 1) + number(5, 9, 9)), rest)
    bills = []
    for first in (len(lying), len(lying) - 15):
        scanner = ToClientScanner(ACTIONS[Direction.TO_CLIENT, True], Account(Action.CONSUME))
        account = Account(Action.CONSUME, subject_of("a topic"))
        scanner.open_consumer(1, account)
        chunk = bytearray(lying)
        passed = scanner.scan(chunk, 0, first)
        if passed < len(chunk):
            scanner.scan(chunk, passed, len(chunk))
        bills.append((account.messages, account.bytes))
    assert bills[0] == bills[1]


@pytest.mark.parametrize("lie", [bytes(10), b"\xff" * 10])
def test_what_is_owed_survives_a_violation(to_client: ToClientScanner, lie: bytes) -> None:
    """The plane must know whether the pair ends within a frame."""
    whole = message(1, tail(metadata_of(), bytes(100)))
    half = bytearray(whole[:-20])
    assert to_client.scan(half, 0, len(half)) == len(half)
    with pytest.raises(PeerError):
        scan(to_client, whole[-20:], lie)
    assert to_client.owed == 20


@pytest.mark.parametrize("total", range(13))
@pytest.mark.parametrize("producers", [1, 2])
def test_a_frame_of_a_run_that_ends_before_its_command_is_refused(
    to_broker: ToBrokerScanner, producers: int, total: int
) -> None:
    for id in range(producers):
        to_broker.open_producer(id, producing())
    turns = [send(n % producers, 300) for n in range(6)]
    lie = total.to_bytes(4) + turns[-1][4:]
    assert lie[7] + 4 == 13, "the least total"
    with pytest.raises(PeerError):
        scan(to_broker, *turns, lie, *turns)
    with pytest.raises(PeerError):
        scan(to_broker, lie)


def test_a_frame_that_stops_is_known_by_its_first_ten_bytes(to_broker: ToBrokerScanner) -> None:
    producer = simple(Kind.PRODUCER, topic="t" * 300, producer_id=1, request_id=1)
    assert scan(to_broker, producer[:9]) == 0
    assert to_broker.stop == 0
    assert scan(to_broker, producer[:10]) == 0
    assert to_broker.stop == len(producer)


def test_a_huge_send_is_handed_on_before_it_has_come(to_broker: ToBrokerScanner) -> None:
    """If the scanner waited, the bytes of a slow client would be copied again for each byte."""
    huge = frame(command(Kind.SEND, number(2, 1) * 20_000))
    assert scan(to_broker, huge[:20]) == 0
    assert to_broker.stop == len(huge)


def test_bytes_that_pass_are_looked_at_once(to_broker: ToBrokerScanner) -> None:
    """A payload that looks like frames is not scanned."""
    to_broker.open_producer(1, producing())
    whole = send(1, 300, send(2, 1) * 10)
    chunk = bytearray(whole)
    assert to_broker.scan(chunk, 0, 40) == 40
    assert to_broker.owed == len(whole) - 40
    assert to_broker.scan(chunk, 40, 60) == 60
    assert to_broker.scan(chunk, 60, len(chunk)) == len(chunk)
    assert to_broker.owed == to_broker.stop == 0


# -- what consumers ask for --------------------------------------------------------------------


@pytest.fixture
def consumer() -> Account:
    return Account(Action.CONSUME, subject_of("a topic"))


@pytest.fixture
def asked(consumer: Account) -> ToBrokerScanner:
    """A scanner of what the client of consumers 1 and 2000 says."""
    consumers: dict[Key, Account] = {key(1): consumer, key(2000): consumer}
    return ToBrokerScanner(ACTIONS[Direction.TO_BROKER, True], consumers=consumers)


def asking(permits: int, id: int = 1) -> bytes:
    return simple(Kind.FLOW, consumer_id=id, messagePermits=permits)


def test_what_a_consumer_asks_for_is_counted(asked: ToBrokerScanner, consumer: Account) -> None:
    flows = asking(1000), asking(500, 2000), asking(1)
    assert scan(asked, *flows) == sum(map(len, flows))
    assert consumer.asked == 1501


def test_what_it_got_is_not_wanted_any_more(asked: ToBrokerScanner, consumer: Account) -> None:
    scan(asked, asking(10))
    consumer.count(4)
    assert consumer.wanted == 6
    consumer.count(100)  # a batch may be larger than what was asked for
    assert consumer.wanted == 0


@pytest.mark.parametrize("cut", range(1, len(asking(1000))))
def test_a_cut_request_is_counted_once(asked: ToBrokerScanner, consumer: Account, cut: int) -> None:
    flow = asking(1000)
    passed = scan(asked, flow[:cut])
    assert scan(asked, flow[passed:]) == len(flow) - passed
    assert consumer.asked == 1000


def test_what_a_consumer_that_is_not_open_asks_for_passes(
    asked: ToBrokerScanner, consumer: Account
) -> None:
    assert scan(asked, asking(1000, 2)) == len(asking(1000, 2))
    assert consumer.asked == 0


def test_a_request_with_much_else_in_it_passes_uncounted(
    asked: ToBrokerScanner, consumer: Account
) -> None:
    """Walking a thousand fields would take the loop a millisecond."""
    flow = frame(command(Kind.FLOW, number(2, 1000) * 1000 + number(1, 1)))
    assert scan(asked, flow) == len(flow)
    assert consumer.asked == 0


def test_requests_stop_where_limits_may_hold(consumer: Account) -> None:
    actions = COMMANDS.actions(Direction.TO_BROKER, unknown_pass=True, limited=True)
    scanner = ToBrokerScanner(actions)
    assert scan(scanner, asking(1000)) == 0
    assert scanner.stop == len(asking(1000))


# -- messages that come again --------------------------------------------------------------------

PARTS = (1, 30, 60, 90)
"""Sizes of the pieces in which a stream comes, beside all at once."""


def again(count: int, **fields: Any) -> bytes:
    return message(1, redelivery_count=count, **fields)


@pytest.fixture
def consuming(to_client: ToClientScanner) -> Account:
    account = Account(Action.CONSUME, subject_of("a topic"))
    to_client.open_consumer(1, account)
    return account


@pytest.mark.parametrize(
    ("frames", "number"),
    [
        ([message(1)] * 5, 0),
        ([message(1), again(1), message(1), again(1), again(300), message(1)], 3),
        ([again(1)] * 4, 4),
        ([again(0), again(1), again(0), again(256), again(128), again(0)], 3),
        ([again(0, consumer_epoch=0), again(2, consumer_epoch=0)] * 2, 2),
        ([message(1, consumer_epoch=1), again(1, consumer_epoch=1)] * 3, 3),
        ([message(1, ack_set=[7]), again(1, ack_set=[7])] * 3, 3),
        ([message(1, ack_set=[7] * 40), again(2, ack_set=[7] * 40)], 1),
        ([message(1, tail(b"", length=100)), again(1)], 1),
    ],
    ids=[
        "none",
        "some",
        "all",
        "zeros",
        "zeros and epochs",
        "epochs",
        "sets",
        "long commands",
        "metadata that lies",
    ],
)
@pytest.mark.parametrize("size", [*PARTS, None])
def test_what_comes_again_is_counted_however_it_is_cut(
    frames: list[bytes],
    number: int,
    size: int | None,
    to_client: ToClientScanner,
    consuming: Account,
) -> None:
    stream = b"".join(frames)
    left, size = b"", size or len(stream)
    for at in range(0, len(stream), size):
        chunk = bytearray(left + stream[at : at + size])
        left = bytes(chunk[to_client.scan(chunk, 0, len(chunk)) :])
    assert not left
    assert (consuming.redelivered, consuming.frames) == (number, len(frames))


def test_a_consumer_in_place_of_another_has_its_own_account(
    to_client: ToClientScanner, consuming: Account
) -> None:
    scan(to_client, message(1), message(1))
    other = Account(Action.CONSUME, subject_of("a topic"))
    to_client.open_consumer(1, other)
    scan(to_client, message(1), again(1))
    to_client.close_consumer(1)
    scan(to_client, message(1))
    assert (consuming.messages, consuming.redelivered) == (2, 0)
    assert (other.messages, other.redelivered) == (2, 1)
    assert to_client.unknown.messages == 1


# -- lengths of two bytes ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.SEND, Kind.MESSAGE, Kind.SEND_RECEIPT])
def test_a_length_of_two_bytes_is_not_read_as_one(
    to_broker: ToBrokerScanner, to_client: ToClientScanner, kind: Kind
) -> None:
    """A decoder would read another length than the first byte, and other fields behind it."""
    to_broker.open_producer(8, producing())
    fields = number(1, 8) + number(2, 1) + bytes(126)
    body = bytes((8, kind, kind << 3 | 2, 136)) + fields
    lying = frame(body[: 136 + 4], bytes(2000))
    if kind is Kind.SEND:
        assert scan(to_broker, lying) == 0
        assert to_broker.stop == len(lying)
        assert to_broker.following(producing(), bytearray(lying), 0, len(lying)) == 0
    else:
        with pytest.raises(PeerError):
            scan(to_client, lying)
