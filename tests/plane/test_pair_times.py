"""Frames are timed from their chunk to the chunk of their receipt."""

from __future__ import annotations

import pytest

from gateway.telemetry.latency import SlowSends, TenantLatencies
from gateway.wire.account import Account
from gateway.wire.contract import Direction
from gateway.wire.stopwatch import Stopwatch
from tests.support.durations import durations

from .harness import Opened, Plane, held
from .protocol import FakeSession, counted, passing, stop


class Timed:
    """A pair whose account 1 is timed."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.latencies = TenantLatencies(SlowSends())
        session = FakeSession()
        session.stopwatch = self.stopwatch = Stopwatch(lambda _: 0)
        self.pair: Opened = plane.open(session)
        self.account: Account = self.pair.session.account(1)
        self.stopwatch.opened(self.account, self.latencies)

    def is_told(self) -> bool:
        """Return whether the stopwatch is told of chunks to the client."""
        return self.pair.pair.pumps[Direction.TO_CLIENT].note is not None

    def sends(self, data: bytes) -> None:
        self.pair.client.say(data)
        self.plane.turn()

    def is_answered(self, receipts: int = 1) -> None:
        self.account.receipts += receipts
        self.pair.broker.say(passing(b"receipt"))
        self.plane.turn()


@pytest.fixture
def timed(plane: Plane) -> Timed:
    return Timed(plane)


def test_a_frame_lasts_until_its_receipt(timed: Timed) -> None:
    timed.sends(counted(1, b"message"))
    timed.plane.clock.now += 0.2
    timed.is_answered()
    assert durations(timed.latencies.send) == {0.25: 1}
    assert durations(timed.latencies.own) == {0.0001: 1}


def test_a_frame_behind_others_is_timed_too(timed: Timed) -> None:
    timed.pair.session.response = lambda direction, frame: ()
    timed.sends(stop() + counted(1) + stop())
    timed.plane.clock.now += 0.2
    timed.is_answered()
    assert durations(timed.latencies.send) == {0.25: 1}


def test_what_waits_for_its_limit_waits_in_the_gateway(timed: Timed) -> None:
    (timed.account,) = held(timed.pair, 1)
    timed.stopwatch.opened(timed.account, timed.latencies)
    timed.sends(counted(1, b"message"))
    assert timed.account.messages == 0
    timed.plane.clock.now += 2.0
    timed.plane.reactor.grant(timed.account, 10, 1000)
    timed.plane.clock.now += 2.0
    timed.is_answered()
    assert durations(timed.latencies.own) == {2.5: 1}
    assert durations(timed.latencies.send) == {5.0: 1}


def test_other_chunks_are_skipped(timed: Timed) -> None:
    timed.plane.reactor.sampler.skips = 2
    for _ in range(3):
        timed.sends(counted(1))
    assert timed.stopwatch.under_way == 1
    timed.is_answered(3)
    assert sum(timed.latencies.send.counts) == 1


def test_nothing_is_told_while_nothing_is_awaited(timed: Timed) -> None:
    assert not timed.is_told()
    timed.sends(counted(1))
    assert timed.is_told()
    timed.is_answered()
    assert not timed.is_told()


def test_the_first_message_of_a_consumer_is_timed(timed: Timed) -> None:
    consumer = timed.pair.session.account(2)
    timed.stopwatch.subscribed(consumer, lambda: timed.latencies, timed.plane.clock.now)
    timed.plane.clock.now += 0.2
    timed.pair.broker.say(passing(b"something else"))
    timed.plane.turn()
    assert not durations(timed.latencies.first_message)
    consumer.messages += 1
    timed.pair.broker.say(passing(b"message"))
    timed.plane.turn()
    assert durations(timed.latencies.first_message) == {0.25: 1}


def test_a_pair_that_ended_is_told_nothing(timed: Timed) -> None:
    """Its stopwatch would keep it in memory until the garbage collector comes."""
    timed.sends(counted(1))
    timed.pair.client.close()
    timed.plane.turn()
    assert timed.pair.pair.over
    assert timed.stopwatch.watched is not timed.pair.pair
    timed.stopwatch.watched.listen()
    assert timed.pair.pair.session.stopwatch is timed.stopwatch
