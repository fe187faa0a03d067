"""Properties of limits whatever accounts do: how much passes, and that every wait ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policy.limits import LimitSpec
from gateway.wire.account import Account
from tests.unit.policy.world import Frame, Producer, World, messages, size

ONE = Frame(1, 100)


SPECS = [
    messages(20, burst=5, key="tenant"),
    messages(5, burst=1, key="topic"),
    size(2000, burst=500, key="tenant"),
    size(300, burst=1, key="topic"),
    messages(3, burst=1, key="shade", shadow=True),
]
CHOICES = st.lists(st.sampled_from(SPECS), unique=True, max_size=4)
FRAMES = st.tuples(st.integers(1, 10), st.integers(1, 1000))


def events_of(most_sends: int) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """Return a strategy of events; each producer may send so many frames in a row."""
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


def exceeds(world: World, spec: LimitSpec) -> float:
    """Return by how much the worst interval exceeds rate × time, the burst, the leases when it
    began, and one frame of each account that passed any."""
    entries = world.passed.get(spec, [])
    worst = 0.0
    for first, begin in enumerate(entries):
        start = spec.metered_burst + begin.lent[spec.unit]
        largest: dict[Account, int] = {}
        total = 0
        for entry in entries[first:]:
            units = entry.frame[spec.unit]
            total += units
            largest[entry.account] = max(units, largest.get(entry.account, 0))
            due = start + spec.rate * (entry.at - begin.at) + sum(largest.values())
            worst = max(worst, total - due)
    return worst


def play(world: World, opened: list[list[LimitSpec]], events: list[tuple[object, ...]]) -> None:
    """Play events; one of a missing producer does nothing. In the end no frame is cut."""
    for specs in opened:
        world.opens(*specs)
    for event in events:
        match event:
            case ("opens", list(specs)):
                world.opens(*specs)
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
        case "reloads", list(specs):
            world.reloads(producer, *specs)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), EVENTS, st.lists(st.floats(0, 0.05), min_size=1))
def test_in_no_interval_more_passes_than_the_bound(
    opened: list[list[LimitSpec]], events: list[tuple[object, ...]], late: list[float]
) -> None:
    world = World(late, records=True)
    play(world, opened, events)
    world.runs(2)
    assert all(exceeds(world, it) < 0.01 for it in SPECS if not it.shadow)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), events_of(most_sends=3))
def test_every_waiting_frame_passes_in_the_end(
    opened: list[list[LimitSpec]], events: list[tuple[object, ...]]
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
def test_units_left_leased_and_used_add_up_to_the_burst(
    events: list[tuple[object, ...]],
) -> None:
    world = World(records=True)
    stays = [WIDE] * 3
    play(world, stays, events)
    for limit in world.limiter.limits():
        unit = limit.spec.unit
        used = sum(it.frame[unit] for it in world.passed.get(limit.spec, []))
        left = limit.meter.available(world.now) + world.lent(limit.spec)[unit]
        unseen = sum(
            max(0, it.total[unit] - world.limiter._members[it.account]._paid[unit])
            for it in world.producers
        )
        burst = left + used - unseen
        assert burst == pytest.approx(limit.spec.metered_burst)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHOICES, min_size=1, max_size=5), EVENTS)
def test_closed_accounts_leave_nothing_behind(
    opened: list[list[LimitSpec]], events: list[tuple[object, ...]]
) -> None:
    world = World()
    play(world, opened, events)
    for producer in tuple(world.producers):
        world.closes(producer)
    limiter = world.limiter
    assert limiter.next_time(world.now) is None
    assert not any((limiter._members, limiter._shadowed, limiter._freed))
    assert not any(it.leased or it.waiting or it.accounts for it in limiter.limits())
