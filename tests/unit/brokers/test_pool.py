from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.brokers.pool import FIRST_BACK_OFF, LONGEST_BACK_OFF, BrokerPool, Endpoint
from gateway.wire.address import Address

NAMED = Address("brokers.example", 6650)


def endpoint(number: int) -> Endpoint:
    return Endpoint(Address(f"10.0.0.{number}", 6650), NAMED)


ONE, TWO, THREE = endpoint(1), endpoint(2), endpoint(3)


@pytest.fixture
def pool() -> BrokerPool:
    pool = BrokerPool()
    pool.replace([ONE, TWO, THREE])
    return pool


def test_endpoints_rotate(pool: BrokerPool) -> None:
    firsts = Counter(pool.candidates(0.0)[0] for _ in range(300))
    assert firsts == {ONE: 100, TWO: 100, THREE: 100}


def test_each_candidate_comes_once(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    pool.record_failure(TWO.address, 0.0)
    assert sorted(pool.candidates(0.1)) == [ONE, TWO, THREE]


def test_healthy_endpoints_come_before_down_and_waiting_ones(pool: BrokerPool) -> None:
    pool.record_failure(ONE.address, 1.0)
    pool.record_failure(TWO.address, 0.0)
    pool.record_success(THREE.address, 0.0)
    for _ in range(4):
        assert pool.candidates(1.1) == (THREE, TWO, ONE)


def test_untried_endpoints_get_their_share(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    assert Counter(pool.candidates(0.0)[0] for _ in range(3)) == {ONE: 1, TWO: 1, THREE: 1}


def test_the_share_of_a_dead_endpoint_goes_to_all_others(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    pool.record_success(TWO.address, 0.0)
    pool.record_failure(THREE.address, 0.0)
    assert Counter(pool.candidates(0.1)[0] for _ in range(100)) == {ONE: 50, TWO: 50}


def test_when_all_wait_all_are_tried(pool: BrokerPool) -> None:
    for each in (ONE, TWO, THREE):
        pool.record_failure(each.address, 0.0)
    assert sorted(pool.candidates(0.1)) == [ONE, TWO, THREE]
    assert not pool.ready


def test_the_back_off_doubles_to_its_bound(pool: BrokerPool) -> None:
    now, waits = 0.0, []
    for _ in range(9):
        pool.record_failure(ONE.address, now)
        retry_at = pool.statistics()[0].retry_at
        waits.append(retry_at - now)
        now = retry_at
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_failures_during_the_back_off_do_not_lengthen_it(pool: BrokerPool) -> None:
    for _ in range(100):
        pool.record_failure(ONE.address, 10.0)
    assert pool.statistics()[0] == (ONE, False, 1, 10.0 + FIRST_BACK_OFF)


def test_a_success_ends_the_back_off(pool: BrokerPool) -> None:
    pool.record_failure(ONE.address, 0.0)
    pool.record_success(ONE.address, 0.1)
    assert pool.statistics()[0].healthy
    pool.record_failure(ONE.address, 0.2)
    assert pool.statistics()[0].retry_at == 0.2 + FIRST_BACK_OFF


def test_only_changes_are_reported(pool: BrokerPool) -> None:
    assert pool.record_failure(ONE.address, 0.0)
    assert not pool.record_failure(ONE.address, 0.1)
    assert not pool.record_failure(ONE.address, 1.0)
    assert pool.record_success(ONE.address, 2.0)
    assert not pool.record_success(ONE.address, 3.0)
    assert pool.record_failure(ONE.address, 4.0)


def test_a_silent_endpoint_comes_last_even_if_probes_succeed(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    assert pool.record_silence(ONE.address, 1.0)
    pool.record_success(ONE.address, 2.0)
    assert pool.ready
    assert {pool.candidates(8.9)[-1] for _ in range(6)} == {ONE}
    assert Counter(pool.candidates(9.0)[0] for _ in range(6)) == {ONE: 2, TWO: 2, THREE: 2}


def test_silences_in_a_row_count_for_longer(pool: BrokerPool) -> None:
    assert pool.record_silence(ONE.address, 0.0)
    assert not pool.record_silence(ONE.address, 1.0)  # the same silence
    assert not pool.record_silence(ONE.address, 8.0)
    assert pool.candidates(23.9)[-1] == ONE
    assert not pool.record_silence(ONE.address, 24.0)
    assert pool.candidates(24.0 + LONGEST_BACK_OFF - 0.1)[-1] == ONE
    assert pool.record_silence(ONE.address, 24.0 + 2 * LONGEST_BACK_OFF + 0.1)  # long forgotten


def test_an_unknown_address_is_ignored(pool: BrokerPool) -> None:
    stranger = Address("10.9.9.9", 6650)
    assert not pool.record_success(stranger, 0.0)
    assert not pool.record_failure(stranger, 0.0)
    assert not pool.record_silence(stranger, 0.0)
    assert len(pool.statistics()) == 3


def test_ready_needs_a_connection(pool: BrokerPool) -> None:
    assert not pool.ready
    pool.record_success(TWO.address, 0.0)
    assert pool.ready


def test_health_survives_a_new_resolution(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    pool.record_failure(TWO.address, 0.0)
    pool.replace([TWO, ONE, endpoint(4), ONE])
    assert [(each.endpoint, each.healthy, each.failures) for each in pool.statistics()] == [
        (TWO, False, 1),
        (ONE, True, 0),
        (endpoint(4), False, 0),
    ]


def test_an_empty_pool_has_no_candidates() -> None:
    assert BrokerPool().candidates(0.0) == ()
    assert not BrokerPool()


def test_probes_are_due_by_health(pool: BrokerPool) -> None:
    pool.record_success(ONE.address, 0.0)
    pool.record_failure(TWO.address, 0.0)
    assert pool.due(0.1, 10.0) == (THREE,)
    assert pool.due(0.5, 10.0) == (TWO, THREE)
    assert pool.due(10.0, 10.0) == (ONE, TWO, THREE)
    pool.record_success(ONE.address, 10.0)
    assert ONE not in pool.due(19.0, 10.0)


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.floats(0.0, 100.0))))
def test_candidates_are_complete_after_any_events(events: list[tuple[int, bool, float]]) -> None:
    pool, now = BrokerPool(), 0.0
    pool.replace([ONE, TWO, THREE])
    for number, works, seconds in events:
        now += seconds
        (pool.record_success if works else pool.record_failure)(endpoint(number).address, now)
        assert sorted(pool.candidates(now)) == [ONE, TWO, THREE]
        assert all(each.retry_at <= now + LONGEST_BACK_OFF for each in pool.statistics())
        assert all(not (each.healthy and each.failures) for each in pool.statistics())
