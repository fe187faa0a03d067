"""Parts of a made-up month: windows of topics, durations, rhythm, and who lives in it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.demo.cast import FEWEST_TENANTS, NAMES, Window, cast_of, roles_of
from gateway.pipeline.demo.dice import dice
from gateway.pipeline.demo.durations import MEDIANS, histogram
from gateway.pipeline.demo.load import DAY_MS, rhythm
from gateway.telemetry.latency import BOUNDS
from gateway.usage.records import What

HOUR = 3_600_000


@given(first=st.integers(0, 59), cuts=st.sets(st.integers(1, HOUR - 1), max_size=5), data=st.data())
def test_a_window_is_as_long_in_parts_of_an_hour_as_in_all(
    first: int, cuts: set[int], data: st.DataObject
) -> None:
    window = Window(first, data.draw(st.integers(1, 60 - first)))
    edges = [0, *sorted(cuts), HOUR]
    begin = 1_795_521_600_000
    parts = [window.overlap_ms(begin + low, high - low) for low, high in pairwise(edges)]
    assert sum(parts) == window.minutes * 60_000 == window.overlap_ms(begin, HOUR)


@given(
    seed=st.integers(0, 1000),
    what=st.sampled_from(sorted(MEDIANS)),
    number=st.integers(0, 10**7),
    slower=st.floats(0.5, 20.0),
)
def test_a_histogram_has_about_the_number_and_a_sum_that_its_buckets_allow(
    seed: int, what: What, number: int, slower: float
) -> None:
    counts, sum_us = histogram(dice(seed, "test"), what, number, slower)
    assert len(counts) == len(BOUNDS) + 1
    assert abs(sum(counts) - number) <= len(counts) + number * 1e-4
    lows, highs = (0.0, *BOUNDS), (*BOUNDS, math.inf)
    least = sum(c * low for c, low in zip(counts, lows, strict=True))
    most = sum(c * high for c, high in zip(counts, highs, strict=True) if c)
    assert least * 1e6 - 1 <= sum_us <= most * 1e6 + 1


def test_a_weekday_has_the_mean_load_and_a_weekend_less() -> None:
    tenant = cast_of(1, 4)[0]
    monday = 1_793_577_600_000  # 2026-11-02
    days = [
        sum(rhythm(tenant, monday + day * DAY_MS + hour * HOUR) for hour in range(24)) / 24
        for day in range(7)
    ]
    assert days[:5] == pytest.approx([1.0] * 5)
    assert days[5:] == pytest.approx([tenant.weekend] * 2)
    assert tenant.weekend < 1


@pytest.mark.parametrize("tenants", range(FEWEST_TENANTS, len(NAMES) + 1))
def test_roles_that_do_not_agree_are_of_different_tenants(tenants: int) -> None:
    roles, cast = roles_of(tenants), cast_of(3, tenants)
    assert [it.name for it in cast] == list(NAMES[:tenants])
    assert roles.limited not in {roles.growing, *roles.noisy, roles.launching}
    assert roles.growing not in roles.noisy
    active = {it for role in roles[:-1] for it in (role if isinstance(role, tuple) else (role,))}
    assert roles.idle not in active
    for noisy in roles.noisy:
        victims = [it for it in cast if it.topics and it.listener == cast[noisy].listener]
        assert len(victims) > 1


@pytest.mark.parametrize("seed", range(20))
def test_tenants_are_of_the_promised_size(seed: int) -> None:
    cast = cast_of(seed, 20)
    rates = [it.rate for it in cast]
    assert rates == sorted(rates, reverse=True)
    busiest = max(topic.rate for it in cast for topic in it.topics)
    assert 0.5 < busiest / sum(rates) < 0.55
    for it in cast[:-1]:
        assert 1 <= len(it.topics) <= 8
        assert 1 <= len({topic.namespace for topic in it.topics}) <= 3
        principals = {some.client.principal for some in it.connections} - {it.fleet}
        assert 1 <= len(principals) <= 6
        names = [topic.name for topic in it.topics]
        assert len(set(names)) == len(names)
