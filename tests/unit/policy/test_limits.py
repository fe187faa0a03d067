"""Leases, turns, debts and shadows of accounts under limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.policy.dimensions import Unit
from gateway.policy.keys import FORGOTTEN_AT_ONCE
from gateway.policy.limiter import OBSERVED_AT_ONCE, Limiter
from gateway.policy.limits import LEASE_SECONDS, MOST_AHEAD, MOST_STALE, LimitSpec, Member
from gateway.wire.account import Account, Action
from gateway.wire.counters import ENDLESS
from tests.support.subjects import subject_of
from tests.unit.policy.world import Frame, World, jain, messages, size

ONE = Frame(1, 100)


# -- cost ------------------------------------------------------------------------------------


def places_looked_at(producers: int) -> int:
    """Return the queue entries that ten rounds look at while so many producers wait."""

    class Counting(list[tuple[float, int, Member]]):
        looked = 0

        def __getitem__(self, at: Any) -> Any:
            Counting.looked += 1
            return super().__getitem__(at)

        def __iter__(self) -> Iterator[Any]:
            for it in super().__iter__():
                Counting.looked += 1
                yield it

    world = World()
    limit = messages(1000)
    for _ in range(producers):
        world.floods(ONE, world.opens(limit))
    (found,) = world.limiter.limits()
    found._queue = Counting(found._queue)
    before = world.rounds
    while world.rounds < before + 10:
        world.runs(0.01)
    return Counting.looked


def test_the_cost_of_a_round_does_not_grow_with_waiting_accounts() -> None:
    assert places_looked_at(8_000) <= 1.1 * places_looked_at(4_000)


# -- one account -----------------------------------------------------------------------------


def test_an_account_without_limits_is_not_held() -> None:
    world = World()
    producer = world.opens()
    assert all(world.sends(producer) for _ in range(1000))
    assert producer.account.messages_ceiling == producer.account.bytes_ceiling == ENDLESS
    assert world.limiter.next_time(world.now) is None


def test_an_account_below_its_limit_is_never_held() -> None:
    world = World()
    producer = world.opens(messages(100, burst=10))
    for _ in range(500):
        assert world.sends(producer)
        world.runs(0.01)
    assert world.rounds == 0


def test_a_burst_passes_at_once_and_then_the_rate() -> None:
    world = World()
    producer = world.opens(messages(10, burst=5))
    assert [world.sends(producer) for _ in range(8)] == [True] * 5 + [False] * 3
    at_first = producer.total
    world.runs(0.31)
    assert (at_first.messages, producer.total.messages) == (5, 8)


def test_a_frame_larger_than_the_units_left_passes_and_leaves_debt() -> None:
    world = World()
    producer = world.opens(messages(10, burst=5))
    assert world.sends(producer, count=25)
    assert not world.sends(producer)
    world.runs(1.9)
    assert producer.total.messages == 25
    world.runs(0.3)
    assert producer.total.messages == 26


def test_debt_is_earned_however_large_the_frame() -> None:
    world = World()
    producer = world.opens(messages(10, burst=5))
    world.sends(producer, count=10_005)
    world.sends(producer)
    world.runs(1000)
    assert producer.queue
    world.runs(1)
    assert not producer.queue


def test_a_lease_covers_the_frame_that_waits_so_that_one_passes_at_a_time() -> None:
    """However many wait: the next one gets its turn when the last one's cost is earned."""
    world = World()
    limit = size(100_000, burst=100_000)
    producers = [world.opens(limit, client="c") for _ in range(200)]
    for producer in producers:
        producer.account.needs = 1_000_000
        producer.cut = True  # it uses its lease late
        world.sends(producer, 1, 1_000_000)
    for second in range(0, 60, 10):
        assert sum(bool(it.granted or not it.queue) for it in producers) == 1 + second // 10
        world.runs(10)


def test_the_strictest_of_several_limits_wins() -> None:
    world = World()
    limits = (messages(1000, key="tenant"), size(1000, key="t"), messages(5, key="topic"))
    producer = world.opens(*limits)
    world.floods(ONE, producer)
    world.runs(20)
    assert producer.total.messages == pytest.approx(100, abs=2)


def test_a_limit_of_bytes_does_not_limit_messages() -> None:
    world = World()
    producer = world.opens(size(1_000_000, burst=10_000))
    assert world.sends(producer, count=50_000, size=100)
    assert producer.account.messages_ceiling == ENDLESS


def test_an_account_that_was_not_admitted_keeps_its_own_allowance() -> None:
    world = World()
    other = Account(Action.PRODUCE, subject_of("t"))
    assert world.limiter.wants(other, world.now)
    other.hold()
    assert not world.limiter.wants(other, world.now)


# -- several accounts ------------------------------------------------------------------------


def test_an_unused_lease_goes_to_waiting_accounts() -> None:
    world = World()
    limit = messages(100, burst=1)
    idle, busy = world.opens(limit), world.opens(limit)
    assert world.sends(idle)
    assert world.lent(limit).messages > 0
    world.floods(ONE, busy)
    world.runs(1)
    assert idle.account.held
    assert world.lent(limit).messages == 0
    total = idle.total.messages + busy.total.messages
    assert total == pytest.approx(limit.metered_burst + 100, abs=1 + 100 * limit.step)


def test_an_account_that_closes_returns_its_lease() -> None:
    world = World()
    limit = messages(100, burst=1)
    first = world.opens(limit)
    world.sends(first)
    assert world.lent(limit).messages > 0
    world.closes(first)
    second = world.opens(limit)
    world.floods(ONE, second)
    assert first.total.messages + second.total.messages == int(limit.metered_burst)


def test_an_account_that_closes_while_it_waits_is_never_served() -> None:
    world = World()
    limit = messages(10)
    first, second = world.opens(limit), world.opens(limit)
    world.floods(ONE, first, second)
    world.closes(first)
    before = first.total
    world.runs(10)
    assert first.total == before
    assert second.total.messages == pytest.approx(100, abs=2)
    world.closes(second)
    assert world.limiter.next_time(world.now) is None


def test_opening_a_producer_again_gives_no_new_burst() -> None:
    world = World()
    limit = messages(1, burst=10)
    passed = 0
    for _ in range(20):
        producer = world.opens(limit)
        while world.sends(producer):
            passed += 1
        world.closes(producer)
    assert passed == 10


def test_full_limits_without_accounts_are_forgotten() -> None:
    world = World()
    for topic in range(100):
        producer = world.opens(messages(10, burst=10, key=topic))
        world.sends(producer)
        world.closes(producer)
    assert len(world.limiter) == 100
    world.now += 2
    another = messages(10, key="another")
    for _ in range(2):
        world.opens(another)
    assert len(world.limiter) == 1


def test_admitting_an_account_does_not_forget_its_own_limit() -> None:
    world = World()
    old, new = messages(10, key="old"), messages(10, key="new")
    world.closes(world.opens(old))
    world.now += 100
    world.closes(world.opens(old, new))
    world.now += 100
    world.opens(old, new)
    assert len(world.limiter) == 2


def test_a_new_account_does_not_overtake_waiting_ones() -> None:
    world = World()
    limit = messages(10)
    first = world.opens(limit)
    world.floods(ONE, first)
    waiting = len(first.queue)
    world.now += 0.15
    assert not world.sends(world.opens(limit))
    assert waiting == len(first.queue)


@pytest.mark.parametrize("rate", [5, 100, 20_000])
def test_equal_demands_get_equal_shares(rate: int) -> None:
    world = World(late=(0.0, 0.004, 0.001))
    limit = messages(rate)
    producers = [world.opens(limit) for _ in range(50)]
    world.floods(ONE, *producers)
    world.runs(1)
    before = [it.total.messages for it in producers]
    world.runs(4000 / rate if rate < 1000 else 2)
    passed = [it.total.messages - was for it, was in zip(producers, before, strict=True)]
    assert jain(passed) >= 0.99


def test_large_and_small_messages_get_equal_bytes() -> None:
    world = World(late=(0.0, 0.002))
    limit = size(1_000_000)
    small = [world.opens(limit) for _ in range(10)]
    large = [world.opens(limit) for _ in range(10)]
    world.floods(Frame(1, 1000), *small)
    world.floods(Frame(1, 100_000), *large)
    world.runs(200)
    assert jain([it.total.bytes for it in small + large]) >= 0.99


def test_an_account_that_was_alone_keeps_its_turn_when_others_come() -> None:
    world = World()
    limit = messages(1000, burst=5000)
    first = world.opens(limit)
    world.floods(ONE, first)
    assert first.total.messages == 5000
    others = [world.opens(limit) for _ in range(9)]
    world.floods(ONE, *others)
    world.runs(2)
    assert first.total.messages - 5000 == pytest.approx(200, abs=1000 * LEASE_SECONDS)


def test_an_idle_account_saves_up_no_turns() -> None:
    world = World()
    limit = messages(100)
    first, late = [world.opens(limit) for _ in range(3)], world.opens(limit)
    world.floods(ONE, *first)
    world.runs(20)
    before = sum(it.total.messages for it in first)
    world.floods(ONE, late)
    world.runs(10)
    assert sum(it.total.messages for it in first) - before == pytest.approx(750, rel=0.02)


def test_no_frame_is_so_large_that_its_account_waits_for_ever() -> None:
    world = World()
    limit = messages(10)
    large, small = world.opens(limit), world.opens(limit)
    world.sends(large, count=10_000)
    world.floods(ONE, large, small)
    world.runs(2000 + MOST_AHEAD)
    assert large.total.messages > 10_000


def test_batches_do_not_starve_single_messages() -> None:
    world = World()
    limit = messages(1000)
    single, batched = world.opens(limit), world.opens(limit)
    world.floods(ONE, single)
    world.floods(Frame(100, 10_000), batched)
    world.runs(30)
    assert jain([it.total.messages for it in (single, batched)]) >= 0.99


def test_an_account_under_a_stricter_limit_leaves_the_rest_to_others() -> None:
    world = World()
    tenant, topic = messages(100, key="tenant"), messages(20, key="topic")
    strict, free = world.opens(tenant, topic), world.opens(tenant)
    world.floods(ONE, strict, free)
    world.runs(30)
    assert strict.total.messages == pytest.approx(600, rel=0.02)
    assert free.total.messages == pytest.approx(2400, rel=0.02)


def test_a_second_limit_that_is_no_stricter_costs_no_turns() -> None:
    world = World()
    tenant = messages(100, key="tenant")
    producers = [world.opens(tenant, messages(60, key="topic")), world.opens(tenant)]
    world.floods(ONE, *producers)
    world.runs(60)
    assert jain([it.total.messages for it in producers]) >= 0.99
    assert sum(it.total.messages for it in producers) >= 0.99 * 6000


@pytest.mark.parametrize("rate", [1, 10, 300, 5_000, 100_000])
@pytest.mark.parametrize("count", [1, 7])
def test_a_saturated_limit_gives_all_of_its_rate(rate: int, count: int) -> None:
    world = World(late=(0.0, 0.001, 0.02, 0.0005))
    limit = messages(rate)
    producers = [world.opens(limit) for _ in range(count)]
    world.floods(ONE, *producers)
    seconds = 1000 / rate if rate < 1000 else 1
    before = sum(it.total.messages for it in producers)
    start = world.now
    world.runs(seconds)
    passed = sum(it.total.messages for it in producers) - before
    assert 0.99 * rate * (world.now - start) - 1 <= passed <= rate * (world.now - start) + 1


@pytest.mark.parametrize("rate", [5, 100, 10_000])
def test_the_wait_of_an_account_that_is_always_held_is_counted_in_full(rate: int) -> None:
    world = World()
    producer = world.opens(messages(rate))
    world.floods(ONE, producer)
    world.runs(10)
    world.closes(producer)
    (limit,) = world.limiter.limits()
    assert limit.waited == pytest.approx(10, abs=0.3)


# -- shadow ----------------------------------------------------------------------------------


def test_a_shadow_holds_nothing_and_counts_what_it_would_have_held() -> None:
    world = World()
    producer = world.opens(messages(10, burst=1, shadow=True))
    for _ in range(200):
        assert world.sends(producer)
        world.now += 0.05
        world.limiter.observe(world.now)
    (limit,) = world.limiter.limits()
    assert limit.held == pytest.approx(200 - 10 * 10 - limit.spec.metered_burst, abs=1)
    assert limit.waited == pytest.approx(10, rel=0.1)


def test_a_rarely_observed_shadow_counts_all_above_its_rate() -> None:
    world = World()
    producer = world.opens(messages(10, burst=1, shadow=True))
    for _ in range(10):
        for _ in range(1000):
            world.sends(producer)
        world.now += 10
        world.limiter.observe(world.now)
    (limit,) = world.limiter.limits()
    assert limit.held == pytest.approx(10_000 - 10 * 100 - limit.spec.metered_burst)


def test_a_rarely_observed_shadow_counts_nothing_below_its_rate() -> None:
    world = World()
    producer = world.opens(messages(10, burst=1, shadow=True))
    for _ in range(10):
        for _ in range(9):
            world.sends(producer)
        world.now += 1
        world.limiter.observe(world.now)
    (limit,) = world.limiter.limits()
    assert (limit.held, limit.waited) == (0, 0)


def test_a_shadow_beside_a_limit_takes_nothing_away() -> None:
    world = World()
    producer = world.opens(messages(50), messages(1, shadow=True))
    world.floods(ONE, producer)
    world.runs(10)
    assert producer.total.messages == pytest.approx(500, rel=0.02)


def test_a_shadow_counts_accounts_that_closed_before_it_was_observed() -> None:
    world = World()
    limit = messages(1, burst=1, shadow=True)
    stays = world.opens(limit)
    goes = world.opens(limit)
    for _ in range(8):
        world.sends(goes)
    world.closes(goes)
    world.limiter.observe(world.now)
    (shadow,) = world.limiter.limits()
    assert shadow.held == pytest.approx(8 - limit.metered_burst)
    assert not stays.account.held


def test_limits_are_forgotten_step_by_step() -> None:
    limiter, many = Limiter(), 2000
    account = Account(Action.PRODUCE, subject_of("t"))
    for number in range(many):
        limiter.admit(account, (LimitSpec(number, Unit.MESSAGES, 1.0, 1.0),), 0.0)
        assert limiter.wants(account, 0.0)
        account.messages += 10
        limiter.release(account, 0.0)
    assert len(limiter) == many
    limiter.admit(account, (), 100.0)
    assert many - len(limiter) == FORGOTTEN_AT_ONCE
    for _ in range(2 * many // FORGOTTEN_AT_ONCE):
        limiter.admit(account, (), 100.0)
    assert len(limiter) == 0


def test_stale_queue_entries_do_not_pile_up() -> None:
    """A limit in debt serves nobody, and meanwhile accounts may come and go in its queue."""
    limiter, spec = Limiter(), LimitSpec("k", Unit.MESSAGES, 1.0, 1.0)
    accounts = [Account(Action.PRODUCE, subject_of("t")) for _ in range(3 * MOST_STALE)]
    for account in accounts:
        limiter.admit(account, (spec,), 0.0)
    first = accounts[0]
    limiter.wants(first, 0.0)
    first.messages += 10_000
    assert not limiter.wants(first, 0.0)
    for account in accounts[1:4]:
        assert not limiter.wants(account, 0.0)
    for _ in range(20):
        for account in accounts[4:]:
            limiter.admit(account, (spec,), 0.0)
            assert not limiter.wants(account, 0.0)
            limiter.release(account, 0.0)
    (limit,) = limiter.limits()
    assert limit.waiting == 4
    assert len(limit._queue) <= limit.waiting + MOST_STALE + 1


def test_observing_shadows_in_steps_gives_the_same_figures() -> None:
    def observed(*, by_steps: bool) -> tuple[list[float], int]:
        limiter, steps = Limiter(), 1
        each = [LimitSpec(n, Unit.MESSAGES, 1.0, 1.0, shadow=True) for n in range(1500)]
        everybody = LimitSpec("all", Unit.MESSAGES, 100.0, 100.0, shadow=True)
        for number, spec in enumerate(each):
            account = Account(Action.PRODUCE, subject_of("t"))
            limiter.admit(account, (spec, everybody), 0.0)
            account.messages += number % 7
        if by_steps:
            while limiter.observe_some(1.0):
                steps += 1
        else:
            limiter.observe(1.0)
        return [limit.held for limit in limiter.limits()], steps

    held, steps = observed(by_steps=True)
    assert held == observed(by_steps=False)[0]
    assert sum(held) > 0
    assert steps >= 2 * 1500 // OBSERVED_AT_ONCE
