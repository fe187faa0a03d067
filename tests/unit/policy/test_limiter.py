"""Accounts under other limits than before, grants on their way, and what a round costs."""

from __future__ import annotations

import gc
import sys

import pytest

from gateway.policy.limits import Applied
from gateway.wire.account import ENDLESS
from tests.unit.policy.world import Frame, World, messages

ONE = Frame(1, 100)


# -- reload ----------------------------------------------------------------------------------


def test_a_limit_that_did_not_change_keeps_its_state() -> None:
    world = World()
    producer = world.opens(messages(1, burst=10))
    for _ in range(10):
        assert world.sends(producer)
    world.reloads(producer, *producer.applied)
    assert not world.sends(producer)


def test_another_rate_holds_at_once() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.floods(ONE, producer)
    world.runs(10)
    before = producer.total.messages
    world.reloads(producer, messages(100))
    world.runs(10)
    assert producer.total.messages - before == pytest.approx(1000, rel=0.02)


def test_a_limit_that_is_gone_frees_its_accounts_and_nothing_overtakes() -> None:
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


def test_an_account_that_does_not_wait_is_free_at_once() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.sends(producer)
    world.reloads(producer)
    assert world.limiter.next_time(world.now) is None
    assert world.sends(producer, count=100_000)
    assert world.sends(producer)


def test_an_account_that_becomes_limited_is_so_from_its_next_frame() -> None:
    world = World()
    producer = world.opens()
    world.sends(producer, count=1000)
    world.reloads(producer, messages(10, burst=3))
    assert [world.sends(producer) for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_limit_that_becomes_a_shadow_holds_nobody_any_more() -> None:
    world = World()
    producer = world.opens(messages(10))
    world.floods(ONE, producer)
    producer.frame = None
    world.reloads(producer, messages(10, shadow=True))
    world.holds_a_round()
    assert not producer.queue
    assert all(world.sends(producer) for _ in range(1000))


def test_who_waits_goes_on_waiting_under_other_limits() -> None:
    world = World()
    producer = world.opens(messages(10, key="old"))
    world.floods(ONE, producer)
    world.reloads(producer, messages(100, key="new"))
    before = producer.total.messages
    world.runs(10)
    assert producer.total.messages - before == pytest.approx(1000, rel=0.03)


# -- grants on their way ---------------------------------------------------------------------


def test_a_grant_that_waits_for_the_end_of_a_frame_is_given_once() -> None:
    world = World()
    producer = world.opens(messages(100))
    world.floods(ONE, producer)
    producer.frame, producer.cut = None, True
    world.runs(10)
    assert len(producer.granted) == 1
    world.completes(producer)
    assert not producer.queue


@pytest.mark.parametrize("applied", [[messages(10, key="new")], []], ids=["limited", "free"])
def test_whose_frames_wait_goes_by_a_round_though_a_grant_is_on_its_way(
    applied: list[Applied],
) -> None:
    """The one of rules that are no more: nobody gives it any more."""
    world = World()
    producer = world.opens(messages(10, key="old"))
    world.floods(ONE, producer)
    producer.cut = True
    world.limiter.admit(producer.account, [], world.now)
    world.runs(1)
    assert len(producer.granted) == 1
    producer.account.queued = 100
    world.limiter.admit(producer.account, applied, world.now)
    assert producer.account.held
    world.runs(1)
    assert len(producer.granted) == 2


# -- what it costs ---------------------------------------------------------------------------


def calls_of_a_round(limits: int) -> int:
    """How many functions a round calls where one of so many accounts waits, each under a limit."""
    world = World()
    for topic in range(limits):
        world.sends(world.opens(messages(10, key=topic)))
    world.floods(ONE, world.producers[0])
    world.now += 0.2
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    gc.disable()  # a collection calls whoever listens to it
    sys.setprofile(count)
    grants = list(world.limiter.lease(world.now))
    sys.setprofile(None)
    gc.enable()
    assert len(grants) == 1
    return calls


def test_a_round_costs_by_those_who_wait_and_not_by_the_limits() -> None:
    assert calls_of_a_round(limits=2000) == calls_of_a_round(limits=2)
