"""Limits that processes share: exact in sum, fair among processes, and working without a store."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policy.limits import LimitSpec
from gateway.policy.supply import AGAIN, KEPT, OnLoss
from tests.unit.policy.fleet import Fleet, Process, shared
from tests.unit.policy.world import Frame, Producer, jain, messages, size

ONE = Frame(1, 100)


def flooding(fleet: Fleet, spec: LimitSpec, frame: Frame = ONE, producers: int = 2) -> None:
    for process in fleet.processes:
        for _ in range(producers):
            process.world.floods(frame, process.world.opens(spec))


def steady(fleet: Fleet, seconds: float = 10.0) -> list[int]:
    """Return what passes in each process, without the first two seconds."""
    fleet.runs(2.0)
    before = [it.passed for it in fleet.processes]
    fleet.runs(seconds)
    return [it.passed - then for it, then in zip(fleet.processes, before, strict=True)]


@pytest.mark.parametrize("processes", [1, 2, 4, 8])
@pytest.mark.parametrize("rate", [5, 50, 1000, 20_000])
@pytest.mark.parametrize("trip", [0.0005, 0.01])
def test_all_processes_have_the_rate_and_each_an_equal_part(
    processes: int, rate: float, trip: float
) -> None:
    fleet = Fleet(processes, trip)
    flooding(fleet, shared(messages(rate)))
    passed = steady(fleet)
    assert sum(passed) == pytest.approx(rate * 10, rel=0.01, abs=1)
    assert jain(passed) > 0.99


@pytest.mark.parametrize("rate", [1000, 20_000, 100_000])
def test_the_book_is_asked_ten_times_a_second_whatever_passes(rate: float) -> None:
    fleet = Fleet(4)
    flooding(fleet, shared(messages(rate)))
    fleet.runs(2)
    before = [it.calls for it in fleet.processes]
    fleet.runs(10)
    assert all(it.calls - then <= 105 for it, then in zip(fleet.processes, before, strict=True))


def test_limits_of_bytes_are_shared() -> None:
    fleet = Fleet(4)
    flooding(fleet, shared(size(1_000_000)), Frame(1, 10_000))
    assert sum(steady(fleet)) == pytest.approx(1000, rel=0.02)


def test_a_process_alone_has_all_of_the_rate_soon() -> None:
    fleet = Fleet(4)
    process, *_ = fleet.processes
    process.world.floods(ONE, process.world.opens(shared(messages(1000))))
    fleet.runs(1)
    assert 1000 <= process.passed <= 1101


def test_a_process_that_has_less_to_send_leaves_the_rest_to_others() -> None:
    fleet = Fleet(2)
    busy, quiet = fleet.processes
    limit = shared(messages(1000))
    busy.world.floods(ONE, busy.world.opens(limit))
    producer = quiet.world.opens(limit)
    for _ in range(100):
        fleet.runs(0.1)
        if not producer.queue:
            quiet.world.sends(producer)
    # At the beginning, a tenth of a second of the rate was saved up.
    assert fleet.passed == pytest.approx(1000 * 10 + 100, rel=0.02)
    assert quiet.passed >= 95


def test_batches_in_one_process_leave_the_other_its_share() -> None:
    fleet = Fleet(2)
    limit = shared(messages(1000))
    for process, count in zip(fleet.processes, (1, 100), strict=True):
        process.world.floods(Frame(count, 100), process.world.opens(limit))
    fleet.runs(60)
    assert jain([it.passed for it in fleet.processes]) >= 0.99


def test_a_client_that_opens_a_producer_for_each_batch_starves_no_other() -> None:
    fleet = Fleet(2)
    world = fleet.processes[0].world
    limit = shared(messages(1000))
    victim = world.opens(limit, client="victim")
    world.floods(Frame(1, 100), victim)
    neighbour = world.opens(limit, client="neighbour")
    for _ in range(6000):
        if not neighbour.queue:
            world.closes(neighbour)
            neighbour = world.opens(limit, client="neighbour")
            world.sends(neighbour, 1000)
        fleet.runs(0.01)
    assert victim.total.messages >= 0.4 * 60 * 1000


def test_a_process_that_starts_later_has_its_share() -> None:
    fleet = Fleet(2)
    first, second = fleet.processes
    limit = shared(messages(1000))
    first.world.floods(ONE, first.world.opens(limit))
    fleet.runs(5)
    second.world.floods(ONE, second.world.opens(limit))
    assert jain(steady(fleet)) > 0.99


def test_producers_below_the_limit_hardly_wait() -> None:
    fleet = Fleet(2)
    limit = shared(messages(1000))
    producers = [process.world.opens(limit) for process in fleet.processes]
    fleet.runs(0.1)
    waited = 0
    for _ in range(1000):
        fleet.runs(0.005)
        for process, producer in zip(fleet.processes, producers, strict=True):
            assert not producer.queue
            waited += not process.world.sends(producer)
    assert waited < 20


def test_unused_stock_is_given_back() -> None:
    fleet = Fleet(2)
    limit = shared(messages(10, burst=10))
    idle, other = fleet.processes
    idle.world.sends(idle.world.opens(limit))
    fleet.runs(KEPT * 4)
    assert all(it.meter.available(fleet.now) == 0 for it in idle.world.limiter.limits())
    other.world.floods(ONE, other.world.opens(limit))
    fleet.runs(0.1)
    assert other.passed >= 10


def test_a_new_rate_applies_in_all_processes() -> None:
    fleet = Fleet(2)
    flooding(fleet, shared(messages(1000)))
    fleet.runs(2)
    for process in fleet.processes:
        for producer in process.world.producers:
            process.world.reloads(producer, shared(messages(200)))
    passed = steady(fleet)
    assert sum(passed) == pytest.approx(2000, rel=0.01)
    assert jain(passed) > 0.99


def test_all_processes_wait_for_the_debt_of_a_large_frame() -> None:
    fleet = Fleet(2)
    first, second = fleet.processes
    limit = shared(messages(10))
    first.world.sends(first.world.opens(limit), 50)
    fleet.runs(0.1)
    second.world.floods(ONE, second.world.opens(limit))
    fleet.runs(4)
    assert second.passed <= 1
    fleet.runs(3)
    assert 15 <= second.passed <= 30


# -- while the store is lost -----------------------------------------------------------------


@pytest.mark.parametrize(("on_loss", "passed"), [("local_share", 1000), ("closed", 0)])
def test_without_a_store_limits_work_as_the_rule_says(on_loss: str, passed: int) -> None:
    fleet = Fleet(4)
    flooding(fleet, shared(messages(1000), OnLoss(on_loss)))
    fleet.runs(2)
    for process in fleet.processes:
        process.loses()
    fleet.runs(1)
    before = fleet.passed
    fleet.runs(10)
    assert fleet.passed - before == pytest.approx(passed * 10, rel=0.01, abs=1)


def test_an_open_limit_holds_nobody_without_a_store() -> None:
    fleet = Fleet(1)
    (process,) = fleet.processes
    producer = process.world.opens(shared(messages(10), OnLoss.OPEN))
    process.loses()
    assert all(process.world.sends(producer, 1000) for _ in range(10))


def test_an_open_limit_leaves_no_debt() -> None:
    fleet = Fleet(1)
    (process,) = fleet.processes
    producer = process.world.opens(shared(messages(10), OnLoss.OPEN))
    process.loses()
    assert all(process.world.sends(producer, 10) for _ in range(1000))
    process.regains()
    before = process.passed
    process.world.floods(ONE, producer)
    fleet.runs(5)
    # The last frame may still be charged: it is seen only now.
    assert process.passed - before >= 35


def test_a_new_rate_applies_without_a_store() -> None:
    fleet = Fleet(2)
    flooding(fleet, shared(messages(1000)))
    fleet.runs(2)
    for process in fleet.processes:
        process.loses()
    fleet.runs(1)
    for process in fleet.processes:
        for producer in process.world.producers:
            process.world.reloads(producer, shared(messages(200)))
    assert sum(steady(fleet)) == pytest.approx(2000, rel=0.02)


def test_a_process_that_lost_the_store_does_not_harm_the_others() -> None:
    fleet = Fleet(4)
    lonely, *_ = fleet.processes
    flooding(fleet, shared(messages(1000)))
    fleet.runs(2)
    lonely.loses()
    passed = steady(fleet)
    assert passed[0] == pytest.approx(2500, rel=0.02)
    assert sum(passed[1:]) == pytest.approx(10_000, rel=0.02)


@pytest.mark.parametrize("on_loss", ["local_share", "open", "closed"])
def test_limits_are_shared_again_when_the_store_answers_again(on_loss: str) -> None:
    fleet = Fleet(4)
    limit = shared(messages(1000), OnLoss(on_loss))
    if on_loss == "open":
        for process in fleet.processes:
            process.world.opens(limit)
    else:
        flooding(fleet, limit)
    fleet.runs(2)
    for process in fleet.processes:
        process.loses()
    fleet.runs(5)
    for process in fleet.processes:
        process.regains()
    if on_loss == "open":
        flooding(fleet, limit)
    passed = steady(fleet)
    assert sum(passed) == pytest.approx(10_000, rel=0.02)
    assert jain(passed) > 0.99


# -- while one limit has no answer -----------------------------------------------------------


def both(fleet: Fleet, on_loss: str = "local_share") -> tuple[list[Producer], list[Producer]]:
    """Return the producers under a limit without answers and under another one, in all
    processes."""
    spoilt, other = (
        [
            process.world.opens(shared(messages(1000, key=key), OnLoss(on_loss)))
            for process in fleet.processes
        ]
        for key in ("spoilt", "other")
    )
    for process, *producers in zip(fleet.processes, spoilt, other, strict=True):
        for producer in producers:
            process.world.floods(ONE, producer)
    return spoilt, other


def passed_by(fleet: Fleet, producers: list[Producer], seconds: float) -> int:
    before = sum(it.account.messages for it in producers)
    fleet.runs(seconds)
    return sum(it.account.messages for it in producers) - before


@pytest.mark.parametrize(("on_loss", "passed"), [("local_share", 1000), ("closed", 0)])
def test_a_limit_without_an_answer_falls_back_and_others_are_shared(
    on_loss: str, passed: int
) -> None:
    fleet = Fleet(4)
    fleet.spoilt.add("spoilt")
    spoilt, other = both(fleet, on_loss)
    fleet.runs(2)
    assert passed_by(fleet, spoilt, 5) == pytest.approx(passed * 5, rel=0.02, abs=1)
    assert passed_by(fleet, other, 5) == pytest.approx(1000 * 5, rel=0.02)
    assert not any(it.supply.lost for it in fleet.processes)


def test_an_open_limit_without_an_answer_holds_nobody() -> None:
    fleet = Fleet(1)
    fleet.spoilt.add("spoilt")
    (process,) = fleet.processes
    producer = process.world.opens(shared(messages(10, key="spoilt"), OnLoss.OPEN))
    fleet.runs(0.1)
    assert all(process.world.sends(producer, 1000) for _ in range(10))


@pytest.mark.parametrize("on_loss", ["local_share", "closed"])
def test_a_limit_with_an_answer_again_is_shared_again(on_loss: str) -> None:
    fleet = Fleet(4)
    spoilt, _ = both(fleet, on_loss)
    fleet.runs(1)
    fleet.spoilt.add("spoilt")
    fleet.runs(3)
    fleet.spoilt.clear()
    fleet.runs(2)
    assert passed_by(fleet, spoilt, 5) == pytest.approx(1000 * 5, rel=0.02)
    assert jain([it.account.messages for it in spoilt]) > 0.95


def test_a_used_limit_without_an_answer_is_asked_for_twice_a_second() -> None:
    fleet = Fleet(1)
    fleet.spoilt.add("spoilt")
    both(fleet)
    fleet.runs(10)
    assert 10 <= fleet.refused <= 10 / AGAIN + 1


def test_an_unused_limit_without_an_answer_is_not_asked_for() -> None:
    fleet = Fleet(1)
    fleet.spoilt.add("spoilt")
    (process,) = fleet.processes
    process.world.opens(shared(messages(1000, key="spoilt")))
    fleet.runs(10)
    assert fleet.refused == 1


# -- properties ------------------------------------------------------------------------------

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("opens"), st.integers(0, 2)),
        st.tuples(st.just("closes"), st.integers(0, 9)),
        st.tuples(st.just("sends"), st.integers(0, 9), st.integers(1, 3), st.integers(1, 40)),
        st.tuples(st.just("sends"), st.integers(0, 9), st.integers(1, 3), st.integers(1, 40)),
        st.tuples(st.just("waits"), st.floats(0, 0.7)),
    ),
    min_size=10,
    max_size=50,
)


@settings(max_examples=150)
@given(EVENTS, st.sampled_from([0.0, 0.001, 0.02]))
def test_no_more_passes_than_the_rate_the_burst_and_a_frame_each(
    events: list[tuple[str, ...]], trip: float
) -> None:
    limit = shared(messages(20, burst=5))
    fleet = Fleet(3, trip)
    opened: list[tuple[Process, Producer]] = []
    began, closed = fleet.now, 0
    for verb, *rest in events:
        numbers = [float(it) for it in rest]
        if verb == "waits":
            fleet.runs(numbers[0])
        elif verb == "opens":
            process = fleet.processes[int(numbers[0])]
            opened.append((process, process.world.opens(limit)))
        elif opened:
            process, producer = opened[int(numbers[0]) % len(opened)]
            if verb == "closes":
                opened.remove((process, producer))
                closed += producer.account.messages
                process.world.closes(producer)
                continue
            for _ in range(int(numbers[2])):
                if producer.queue:
                    break
                process.world.sends(producer, int(numbers[1]))
        # A frame of three messages may leave a debt of two in each of three processes.
        most = 20 * (fleet.now - began) + limit.metered_burst + 3 * 3
        assert fleet.passed + closed <= most + 1e-6
    fleet.runs(60)
    assert not any(producer.queue for _, producer in opened)
