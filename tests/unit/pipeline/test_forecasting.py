"""When a mark is reached, and how sure that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.forecasting import HORIZON, LEAST, MOST, error, forecast, trend_of


def grown(days: int, start: float = 100, slope: float = 10) -> list[float]:
    return [start + slope * day for day in range(days)]


def test_a_straight_line_goes_on() -> None:
    found = forecast(grown(30), 490)
    assert found is not None
    assert found.trend.slope == 10
    assert found.days == 10  # the last day has 390
    assert found.error == pytest.approx(0)


def test_a_mark_that_is_passed_already_is_reached_tomorrow() -> None:
    found = forecast(grown(30), 5)
    assert found is not None
    assert found.days == 1


def test_what_does_not_grow_reaches_nothing() -> None:
    found = forecast([100.0] * 30, 101)
    assert found is not None
    assert found.days is None
    slow = forecast(grown(30, slope=0.001), 1000)
    assert slow is not None
    assert slow.days is None
    assert HORIZON == 365


def test_a_week_is_no_growth() -> None:
    week = [100, 110, 120, 130, 140, 20, 10]
    found = forecast([float(week[day % 7]) for day in range(35)], 145)
    assert found is not None
    assert found.trend.slope == 0
    assert found.days is None
    assert [found.trend.at(ahead) for ahead in range(1, 8)] == week
    assert found.error == pytest.approx(0)


def test_the_busiest_weekday_reaches_a_mark_first() -> None:
    series = [(500.0 if day % 7 == 3 else 100.0) + day for day in range(28)]
    found = forecast(series, 530)
    assert found is not None
    assert (27 + found.days if found.days else 0) % 7 == 3


def test_a_day_of_an_incident_moves_a_forecast_hardly() -> None:
    series = grown(42)
    series[30] *= 10
    found = forecast(series, 1000)
    usual = forecast(grown(42), 1000)
    assert found is not None
    assert usual is not None
    assert found.days is not None
    assert usual.days is not None
    assert abs(found.days - usual.days) <= 2


def test_a_short_series_says_nothing() -> None:
    assert forecast(grown(LEAST - 1), 1000) is None
    found = forecast(grown(LEAST), 1000)
    assert found is not None
    assert found.error is None


def test_a_series_that_changes_has_an_error() -> None:
    assert (error([100.0] * 21 + [200.0] * 14) or 0) > 0.2


@given(st.lists(st.floats(0, 1e15), min_size=LEAST, max_size=40), st.floats(0.001, 1e15))
def test_any_series_has_a_forecast(series: list[float], mark: float) -> None:
    found = forecast(series, mark)
    assert found is not None
    assert found.days is None or 1 <= found.days <= HORIZON
    assert all(found.trend.at(ahead) >= 0 for ahead in range(20))
    assert found.error is None or found.error >= 0


def test_only_the_latest_days_count() -> None:
    assert trend_of([1e9] * 50 + grown(MOST)) == trend_of(grown(MOST))
