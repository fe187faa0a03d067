"""The meter of a rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.gcra import Meter

RATES = st.floats(0.01, 1e9)
TIMES = st.floats(0, 1e7)


def test_a_new_meter_has_its_whole_burst() -> None:
    assert Meter(rate=10, burst=5).available(now=1000.0) == 5


def test_units_are_earned_at_the_rate_up_to_the_burst() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(5, now=0.0)
    assert [meter.available(now) for now in (0.0, 0.25, 0.5, 100.0)] == [0, 2.5, 5, 5]


def test_taking_more_units_than_available_leaves_debt() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(15, now=0.0)
    assert (meter.available(0.0), meter.available(1.0)) == (-10, 0)


def test_returned_units_are_available_again() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(5, now=0.0)
    meter.give_back(3, now=0.1)
    assert meter.available(0.1) == pytest.approx(4)


def test_returned_units_are_saved_up_to_the_burst() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(5, now=0.0)
    meter.give_back(3, now=10.0)
    meter.give_back(3, now=10.0)
    assert meter.available(10.0) == 5
    meter.take(5, now=10.0)
    assert meter.available(10.0) == pytest.approx(0)


def test_a_full_meter_is_as_good_as_a_new_one() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(5, now=0.0)
    assert meter.full_at(0.0) == 0.5
    assert meter.available(0.5) == 5


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (1, 0), (-1, 1), (float("nan"), 1)])
def test_a_meter_without_a_rate_or_a_burst_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Meter(rate, burst)


def test_saved_units_survive_a_change_of_the_rate() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(2, now=0.0)
    meter.change(rate=100, burst=50, now=0.0)
    assert meter.available(0.0) == pytest.approx(3)
    assert meter.available(0.1) == pytest.approx(13)
    meter.change(rate=1, burst=2, now=0.1)
    assert meter.available(0.1) == 2


def test_debt_survives_a_change_of_the_rate() -> None:
    meter = Meter(rate=10, burst=5)
    meter.take(55, now=0.0)
    meter.change(rate=100, burst=5, now=0.0)
    assert meter.available(0.0) == pytest.approx(-50)
    meter.change(rate=1, burst=5, now=0.0)
    assert meter.available(0.0) == pytest.approx(-50)


@given(RATES, st.floats(1, 1e6), st.floats(0, 1), TIMES)
def test_promised_units_are_available_at_their_time(
    rate: float, burst: float, part: float, now: float
) -> None:
    meter = Meter(rate, burst)
    meter.take(burst * 2, now)
    units = burst * part
    ready = meter.ready_at(units, now)
    assert ready >= now
    assert meter.available(ready) >= units


@given(
    st.floats(0.1, 1e6),
    st.floats(1, 1e6),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 3)), max_size=40),
)
def test_available_units_never_exceed_rate_and_burst(
    rate: float, burst: float, tries: list[tuple[float, float]]
) -> None:
    meter = Meter(rate, burst)
    now = 0.0
    taken = [(now, 0.0)]
    for pause, part in tries:
        now += pause
        units = min(meter.available(now), part * burst)
        meter.take(units, now)
        taken.append((now, units))
    for first, (begin, _) in enumerate(taken):
        total = 0.0
        for end, units in taken[first:]:
            total += units
            assert total <= (rate * (end - begin) + burst) * (1 + 1e-9)
