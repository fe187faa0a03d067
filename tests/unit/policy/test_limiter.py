"""Reloads of limits, grants that take effect late, and the cost of a round."""

from __future__ import annotations

import gc
import sys

import pytest

from gateway.policy.limits import LimitSpec
from gateway.wire.counters import ENDLESS
from tests.unit.policy.world import Frame, World, messages

ONE = Frame(1, 100)


# -- reload ----------------------------------------------------------------------------------


def test_an_unchanged_limit_keeps_its_state() -> None:
    world = World()
    producer = world.opens(messages(1, burst=10))
    for _ in range(10):
        assert world.sends(producer)
    world.reloads(producer, *producer.specs)
    assert not world.sends(producer)


def test_a_new_rate_takes_effect_at_once() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.floods(ONE, producer)
    world.runs(10)
    before = producer.total.messages
    world.reloads(producer, messages(100))
    world.runs(10)
    assert producer.total.messages - before == pytest.approx(1000, rel=0.02)


def test_a_removed_limit_frees_its_accounts_and_no_frame_overtakes() -> None:
    world = World()
    producer = world.opens(messages(10))
    for number in range(20):
        world.sends(producer, size=number)
    world.reloads(producer)
    assert world.limiter.next_time(world.now) == world.now
    assert not world.sends(producer)
    world.holds_a_round()
    assert not producer.queue
    assert producer.total.messages == 21
    assert world.sends(producer)
    assert producer.account.messages_ceiling == producer.account.bytes_ceiling == ENDLESS


def test_an_account_that_does_not_wait_is_freed_at_once() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.sends(producer)
    world.reloads(producer)
    assert world.limiter.next_time(world.now) is None
    assert world.sends(producer, count=100_000)
    assert world.sends(producer)


def test_a_new_limit_applies_from_the_next_frame() -> None:
    world = World()
    producer = world.opens()
    world.sends(producer, count=1000)
    world.reloads(producer, messages(10, burst=3))
    assert [world.sends(producer) for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_limit_that_becomes_a_shadow_frees_its_accounts() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.floods(ONE, producer)
    producer.frame = None
    world.reloads(producer, messages(10, shadow=True))
    world.holds_a_round()
    assert not producer.queue
    assert all(world.sends(producer) for _ in range(1000))


def test_a_waiting_account_keeps_waiting_under_other_limits() -> None:
    world = World()
    producer = world.opens(messages(10, key="old"))
    world.floods(ONE, producer)
    world.reloads(producer, messages(100, key="new"))
    before = producer.total.messages
    world.runs(10)
    assert producer.total.messages - before == pytest.approx(1000, rel=0.03)


# -- late grants -----------------------------------------------------------------------------


def test_a_grant_that_waits_for_the_end_of_a_frame_is_given_once() -> None:
    world = World()
    producer = world.opens(messages(100))
    world.floods(ONE, producer)
    producer.frame, producer.cut = None, True
    world.runs(10)
    assert len(producer.granted) == 1
    world.completes(producer)
    assert not producer.queue


@pytest.mark.parametrize("specs", [[messages(10, key="new")], []], ids=["limited", "free"])
def test_an_account_with_queued_frames_gets_a_new_grant_after_a_reload(
    specs: list[LimitSpec],
) -> None:
    """The grant of the old rules, still on its way, is void."""
    world = World()
    producer = world.opens(messages(10, key="old"))
    world.floods(ONE, producer)
    producer.cut = True
    world.limiter.admit(producer.account, [], world.now)
    world.runs(1)
    assert len(producer.granted) == 1
    producer.account.queued = 100
    world.limiter.admit(producer.account, specs, world.now)
    assert producer.account.held
    world.runs(1)
    assert len(producer.granted) == 2


# -- cost ------------------------------------------------------------------------------------


def calls_of_a_round(limits: int) -> int:
    """Return the function calls of a round where one of so many accounts, each under a limit,
    waits.
    """
    world = World()
    for topic in range(limits):
        world.sends(world.opens(messages(10, key=topic)))
    world.floods(ONE, world.producers[0])
    world.now += 0.2
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    gc.disable()  # a collection runs callbacks
    sys.setprofile(count)
    grants = list(world.limiter.hold_round(world.now))
    sys.setprofile(None)
    gc.enable()
    assert len(grants) == 1
    return calls


def test_the_cost_of_a_round_does_not_grow_with_the_number_of_limits() -> None:
    assert calls_of_a_round(limits=2000) == calls_of_a_round(limits=2)
