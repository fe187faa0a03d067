"""Who may go on, how much, and when."""

from __future__ import annotations

import gc
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policy.gcra import MOST_DEBT
from gateway.policy.limits import LEASE, Applied
from gateway.wire.contract import ENDLESS, Account, Action
from tests.unit.policy.world import Frame, Producer, World, jain, messages, size

ONE = Frame(1, 100)


# -- one account -----------------------------------------------------------------------------


def test_an_account_under_no_limit_is_not_held() -> None:
    world = World()
    producer = world.opens()
    assert all(world.sends(producer) for _ in range(1000))
    assert producer.account.messages_ceiling == producer.account.bytes_ceiling == ENDLESS
    assert world.limiter.next_time(world.now) is None


def test_below_its_limit_an_account_is_never_held() -> None:
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


def test_a_frame_that_is_larger_than_what_is_left_passes_and_leaves_debt() -> None:
    world = World()
    producer = world.opens(messages(10, burst=5))
    assert world.sends(producer, count=25)
    assert not world.sends(producer)
    world.runs(1.9)
    assert producer.total.messages == 25
    world.runs(0.3)
    assert producer.total.messages == 26


def test_debt_ends_after_a_while_however_large_the_frame() -> None:
    world = World()
    producer = world.opens(messages(10, burst=5))
    world.sends(producer, count=100_000)
    world.sends(producer)
    world.runs(MOST_DEBT + 1)
    assert not producer.queue


def test_the_strictest_of_several_limits_wins() -> None:
    world = World()
    limits = (messages(1000, key="tenant"), size(1000, key="t"), messages(5, key="topic"))
    producer = world.opens(*limits)
    world.floods(ONE, producer)
    world.runs(20)
    assert producer.total.messages == pytest.approx(100, abs=2)


def test_a_limit_of_bytes_leaves_the_messages_unlimited() -> None:
    world = World()
    producer = world.opens(size(1_000_000, burst=10_000))
    assert world.sends(producer, count=50_000, size=100)
    assert producer.account.messages_ceiling == ENDLESS


def test_a_stranger_may_do_as_its_allowance_says() -> None:
    world = World()
    stranger = Account("t", Action.PRODUCE)
    assert world.limiter.wants(stranger, world.now)
    stranger.hold()
    assert not world.limiter.wants(stranger, world.now)


# -- several accounts ------------------------------------------------------------------------


def test_a_lease_that_is_not_used_comes_to_those_who_wait() -> None:
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
    assert total == pytest.approx(limit.saved + 100, abs=1 + 100 * limit.step)


def test_an_account_that_closes_returns_its_lease() -> None:
    world = World()
    limit = messages(100, burst=1)
    first = world.opens(limit)
    world.sends(first)
    assert world.lent(limit).messages > 0
    world.closes(first)
    second = world.opens(limit)
    world.floods(ONE, second)
    assert first.total.messages + second.total.messages == int(limit.saved)


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


def test_whoever_opens_a_producer_anew_has_no_new_burst() -> None:
    world = World()
    limit = messages(1, burst=10)
    passed = 0
    for _ in range(20):
        producer = world.opens(limit)
        while world.sends(producer):
            passed += 1
        world.closes(producer)
    assert passed == 10


def test_limits_that_nobody_needs_are_forgotten() -> None:
    world = World()
    for topic in range(100):
        producer = world.opens(messages(10, burst=10, key=topic))
        world.sends(producer)
        world.closes(producer)
    assert len(world.limiter) == 100
    world.now += 2
    world.opens(messages(10, key="another"))
    assert len(world.limiter) == 1


def test_a_limit_that_is_needed_again_is_not_forgotten_in_that_moment() -> None:
    world = World()
    old, new = messages(10, key="old"), messages(10, key="new")
    world.closes(world.opens(old))
    world.now += 100
    world.closes(world.opens(old, new))
    world.now += 100
    world.opens(old, new)
    assert len(world.limiter) == 2


def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    world = World()
    limit = messages(10)
    first = world.opens(limit)
    world.floods(ONE, first)
    waiting = len(first.queue)
    world.now += 0.15
    assert not world.sends(world.opens(limit))
    assert waiting == len(first.queue)


@pytest.mark.parametrize("rate", [5, 100, 20_000])
def test_all_who_want_the_same_get_the_same(rate: int) -> None:
    world = World(late=(0.0, 0.004, 0.001))
    limit = messages(rate)
    producers = [world.opens(limit) for _ in range(50)]
    world.floods(ONE, *producers)
    world.runs(1)
    before = [it.total.messages for it in producers]
    world.runs(4000 / rate if rate < 1000 else 2)
    passed = [it.total.messages - was for it, was in zip(producers, before, strict=True)]
    assert jain(passed) >= 0.99


def test_large_messages_do_not_starve_small_ones_nor_the_reverse() -> None:
    world = World(late=(0.0, 0.002))
    limit = size(1_000_000)
    small = [world.opens(limit) for _ in range(10)]
    large = [world.opens(limit) for _ in range(10)]
    world.floods(Frame(1, 1000), *small)
    world.floods(Frame(1, 100_000), *large)
    world.runs(200)
    assert jain([it.total.bytes for it in small + large]) >= 0.99


def test_who_used_a_limit_alone_has_its_turn_when_others_come() -> None:
    world = World()
    limit = messages(1000, burst=5000)
    first = world.opens(limit)
    world.floods(ONE, first)
    assert first.total.messages == 5000
    others = [world.opens(limit) for _ in range(9)]
    world.floods(ONE, *others)
    world.runs(2)
    assert first.total.messages - 5000 == pytest.approx(200, abs=1000 * LEASE)


def test_who_comes_late_has_no_right_to_what_it_did_not_use() -> None:
    world = World()
    limit = messages(100)
    first, late = [world.opens(limit) for _ in range(3)], world.opens(limit)
    world.floods(ONE, *first)
    world.runs(20)
    before = sum(it.total.messages for it in first)
    world.floods(ONE, late)
    world.runs(10)
    assert sum(it.total.messages for it in first) - before == pytest.approx(750, rel=0.02)


def test_a_frame_that_is_forgiven_costs_its_account_no_endless_freeze() -> None:
    world = World()
    limit = messages(10)
    large, small = world.opens(limit), world.opens(limit)
    world.sends(large, count=10_000)
    world.floods(ONE, large, small)
    world.runs(3 * MOST_DEBT)
    assert large.total.messages > 10_000


def test_batches_do_not_starve_single_messages() -> None:
    world = World()
    limit = messages(1000)
    single, batched = world.opens(limit), world.opens(limit)
    world.floods(ONE, single)
    world.floods(Frame(100, 10_000), batched)
    world.runs(30)
    assert jain([it.total.messages for it in (single, batched)]) >= 0.99


def test_who_is_under_a_stricter_limit_too_leaves_the_rest_to_the_others() -> None:
    world = World()
    tenant, topic = messages(100, key="tenant"), messages(20, key="topic")
    strict, free = world.opens(tenant, topic), world.opens(tenant)
    world.floods(ONE, strict, free)
    world.runs(30)
    assert strict.total.messages == pytest.approx(600, rel=0.02)
    assert free.total.messages == pytest.approx(2400, rel=0.02)


def test_a_limit_of_its_own_that_is_no_stricter_costs_nobody_a_turn() -> None:
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
def test_who_is_held_all_the_time_waits_all_the_time(rate: int) -> None:
    world = World()
    producer = world.opens(messages(rate))
    world.floods(ONE, producer)
    world.runs(10)
    world.closes(producer)
    (limit,) = world.met or tuple(world.limiter.limits())
    assert limit.waited == pytest.approx(10, abs=0.3)


# -- shadow ----------------------------------------------------------------------------------


def test_a_shadow_never_holds_and_counts_what_would_have_been_held() -> None:
    world = World()
    producer = world.opens(messages(10, burst=1, shadow=True))
    for _ in range(200):
        assert world.sends(producer)
        world.now += 0.05
        world.limiter.observe(world.now)
    (limit,) = world.limiter.limits()
    assert limit.held == pytest.approx(200 - 10 * 10 - limit.applied.saved, abs=1)
    assert limit.waited == pytest.approx(10, rel=0.1)


def test_a_shadow_that_is_seldom_looked_at_misses_nothing_above_its_rate() -> None:
    world = World()
    producer = world.opens(messages(10, burst=1, shadow=True))
    for _ in range(10):
        for _ in range(1000):
            world.sends(producer)
        world.now += 10
        world.limiter.observe(world.now)
    (limit,) = world.limiter.limits()
    assert limit.held == pytest.approx(10_000 - 10 * 100 - limit.applied.saved)


def test_a_shadow_that_is_seldom_looked_at_counts_nothing_below_its_rate() -> None:
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


def test_what_an_account_did_counts_under_a_shadow_when_it_closed_before_anybody_looked() -> None:
    world = World()
    limit = messages(1, burst=1, shadow=True)
    stays = world.opens(limit)
    goes = world.opens(limit)
    for _ in range(8):
        world.sends(goes)
    world.closes(goes)
    world.limiter.observe(world.now)
    (shadow,) = world.limiter.limits()
    assert shadow.held == pytest.approx(8 - limit.saved)
    assert not stays.account.held


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
    grants = world.limiter.lease(world.now)
    sys.setprofile(None)
    gc.enable()
    assert len(grants) == 1
    return calls


def test_a_round_costs_by_those_who_wait_and_not_by_the_limits() -> None:
    assert calls_of_a_round(limits=2000) == calls_of_a_round(limits=2)


# -- whatever happens ------------------------------------------------------------------------

APPLIED = [
    messages(20, burst=5, key="tenant"),
    messages(5, burst=1, key="topic"),
    size(2000, burst=500, key="tenant"),
    size(300, burst=1, key="topic"),
    messages(3, burst=1, key="shade", shadow=True),
]
CHOICES = st.lists(st.sampled_from(APPLIED), unique=True, max_size=4)
FRAMES = st.tuples(st.integers(1, 10), st.integers(1, 1000))


def events_of(most_sends: int) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """What happens to producers; each may send so many frames in a row."""
    times = st.integers(1, most_sends)
    return st.lists(
        st.one_of(
            st.tuples(st.just("opens"), CHOICES),
            st.tuples(st.just("closes"), st.integers(0, 9)),
            st.tuples(st.just("sends"), st.integers(0, 5), FRAMES, times),
            st.tuples(st.just("sends"), st.integers(0, 1), FRAMES, times),
            st.tuples(st.just("cuts"), st.integers(0, 9)),
            st.tuples(st.just("completes"), st.integers(0, 9)),
            st.tuples(st.just("reloads"), st.integers(0, 9), CHOICES),
            st.tuples(st.just("waits"), st.floats(0, 0.5)),
        ),
        min_size=10,
        max_size=40,
    )


EVENTS = events_of(most_sends=40)


def exceeds(world: World, applied: Applied) -> float:
    """By how much the worst interval is beyond rate × time, the burst, what was on lease when it
    began, one frame of each account that passed any, and what was forgiven."""
    entries = world.passed.get(applied, [])
    worst = 0.0
    for first, begin in enumerate(entries):
        start = applied.saved + begin.lent[applied.dimension] + world.forgiven(applied)
        largest: dict[Account, int] = {}
        total = 0
        for entry in entries[first:]:
            units = entry.frame[applied.dimension]
            total += units
            largest[entry.account] = max(units, largest.get(entry.account, 0))
            due = start + applied.rate * (entry.at - begin.at) + sum(largest.values())
            worst = max(worst, total - due)
    return worst


def play(world: World, opened: list[list[Applied]], events: list[tuple[object, ...]]) -> None:
    """Whoever is not there does nothing. In the end no frame is cut."""
    for applied in opened:
        world.opens(*applied)
    for event in events:
        match event:
            case ("opens", list(applied)):
                world.opens(*applied)
            case ("waits", float(seconds)):
                world.runs(seconds)
            case (str(does), int(which), *rest) if which < len(world.producers):
                act(world, world.producers[which], does, rest)
    for producer in world.producers:
        world.completes(producer)


def act(world: World, producer: Producer, does: str, rest: list[object]) -> None:
    match does, *rest:
        case "sends", (int(count), int(length)), int(times):
            for _ in range(times):
                world.sends(producer, count, length)
        case "closes", *_:
            world.closes(producer)
        case "cuts", *_:
            producer.cut = True
        case "completes", *_:
            world.completes(producer)
        case "reloads", list(applied):
            world.reloads(producer, *applied)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), EVENTS, st.lists(st.floats(0, 0.05), min_size=1))
def test_over_no_interval_more_passes_than_the_bound(
    opened: list[list[Applied]], events: list[tuple[object, ...]], late: list[float]
) -> None:
    world = World(late, records=True)
    play(world, opened, events)
    world.runs(2)
    assert all(exceeds(world, it) < 0.01 for it in APPLIED if not it.shadow)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), events_of(most_sends=3))
def test_whatever_waits_passes_in_the_end_and_then_nobody_waits(
    opened: list[list[Applied]], events: list[tuple[object, ...]]
) -> None:
    world = World()
    play(world, opened, events)
    world.runs(600)
    assert not any(it.queue for it in world.producers)
    assert world.limiter.next_time(world.now) is None
    assert not any(limit.waiting for limit in world.limiter.limits())


WIDE = [messages(2000, burst=200, key="wide"), size(100_000, burst=10_000, key="wide")]
AT_ONCE = st.lists(
    st.one_of(
        st.tuples(st.just("sends"), st.integers(0, 4), FRAMES, st.integers(1, 40)),
        st.tuples(st.just("reloads"), st.integers(0, 4), st.just(WIDE)),
        st.tuples(st.just("closes"), st.integers(0, 4)),
        st.tuples(st.just("opens"), st.just(WIDE)),
        st.tuples(st.just("waits"), st.just(0.0)),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(AT_ONCE)
def test_what_is_left_and_lent_and_used_is_together_the_burst(
    events: list[tuple[object, ...]],
) -> None:
    world = World(records=True)
    stays = [WIDE] * 3
    play(world, stays, events)
    for limit in world.limiter.limits():
        dimension = limit.applied.dimension
        used = sum(it.frame[dimension] for it in world.passed.get(limit.applied, []))
        left = limit.meter.available(world.now) + world.lent(limit.applied)[dimension]
        unseen = sum(
            max(0, it.total[dimension] - world.limiter._members[it.account]._paid[dimension])
            for it in world.producers
        )
        assert left + used - unseen - limit.meter.forgiven == pytest.approx(limit.applied.saved)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), EVENTS)
def test_when_all_have_closed_nothing_is_remembered_of_them(
    opened: list[list[Applied]], events: list[tuple[object, ...]]
) -> None:
    world = World()
    play(world, opened, events)
    for producer in tuple(world.producers):
        world.closes(producer)
    limiter = world.limiter
    assert limiter.next_time(world.now) is None
    assert not any((limiter._members, limiter._shaded, limiter._freed))
    assert not any(it.leased or it.waiting or it.accounts for it in limiter.limits())
