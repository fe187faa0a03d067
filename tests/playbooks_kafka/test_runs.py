"""Requests that follow one another in one form are counted like each by itself."""

from __future__ import annotations

from random import Random

import pytest

from gateway.wire.kafka import quick
from gateway.wire.kafka.records import HEAD

from .frames import batch, produce
from .script import KafkaServices, Play

VERSIONS = range(quick.FLEXIBLE[0], quick.BY_ID + 1)
BORDERS = (127, 128, 16_383, 16_384)
"""Bytes of a batch and of its length's one, at which the length takes a byte more."""

SIZES = [border + more for border in BORDERS for more in (-3, -2, -1, 0, 1)]


def sized(count: int, size: int) -> bytes:
    """Return a batch of so many bytes."""
    found = batch(count, size - HEAD)
    assert len(found) == size
    return found


@pytest.mark.parametrize("acks", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_lengths_of_all_sizes_follow_one_another(version: int, acks: int) -> None:
    random = Random(version)
    play = Play(known=("a",))
    batches = [sized(random.randrange(1, 9), random.choice((HEAD, *SIZES))) for _ in range(200)]
    counts = [int.from_bytes(it[57:61]) for it in batches]
    stream = b"".join(produce(version, 1, acks, a=it) for it in batches)
    assert play.client(stream) == stream
    account = play.account("a")
    assert account.messages == sum(counts)
    assert account.frames == len(batches)
    assert account.bytes == sum(map(len, batches))
    assert account.receipts == (0 if acks else len(batches))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_length_that_takes_more_bytes_than_it_needs_is_counted_too(version: int) -> None:
    play = Play(known=("a",))
    usual = produce(version, 1, 0, a=sized(3, 100))
    at = len(usual) - quick.TAIL - 100 - 1
    assert usual[at] == 101
    longer = usual[4:at] + b"\xe5\x00" + usual[at + 1 :]
    stream = usual + len(longer).to_bytes(4) + longer + usual
    assert play.client(stream) == stream
    assert play.account("a").messages == 9
    assert play.account("a").bytes == 300


def test_a_run_ends_where_the_allowance_does() -> None:
    services = KafkaServices()
    play = Play(services, known=("a",))
    request = produce(9, 1, 0, a=sized(2, 100))
    play.client(request)
    account = play.account("a")
    account.hold()
    account.grant(messages=5)
    assert play.client(request * 10) == request * 3
    assert account.messages == 2 + 6
    assert play.is_waiting
