"""The lines of the table computed from samples."""

import pytest

from tests.bench.figures import (
    Verdict,
    added_line,
    cpu_line,
    judged,
    latency_line,
    life_line,
    medians,
    times_line,
)
from tests.bench.rows import Kind, LifeFigure, Row

ROW = Row("send", "SEND", (), 1.4)
LATENCY = Row("latency", "added p50", (), 1.3, Kind.LATENCY)


@pytest.mark.parametrize(
    ("value", "goal", "verdict"),
    [
        (2.0, 2.0, Verdict.MET),
        (1.71, 2.0, Verdict.NEAR),
        (1.69, 2.0, Verdict.MISSED),
        (9.9, None, Verdict.NONE),
    ],
)
def test_more_is_better_for_a_lower_bound(
    value: float, goal: float | None, verdict: Verdict
) -> None:
    assert judged(value, goal, at_least=True) is verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(-1.0, Verdict.MET), (5.0, Verdict.MET), (5.8, Verdict.NEAR), (5.9, Verdict.MISSED)],
)
def test_less_is_better_for_an_upper_bound(value: float, verdict: Verdict) -> None:
    assert judged(value, 5.0, at_least=False) is verdict


def test_medians_are_taken_per_proxy() -> None:
    samples = [("a", 1.0), ("b", 9.0), ("a", 100.0), ("a", 2.0)]
    assert medians(samples) == {"a": 2.0, "b": 9.0}


def test_cpu_is_compared_with_haproxy() -> None:
    line = cpu_line(ROW, {"HAProxy": 0.7, "gateway": 0.5, "Java": 1.4})
    assert (line.measured, line.verdict) == ("1.40", Verdict.MET)
    assert line.cells == {"HAProxy": "0.700 us", "gateway": "0.500 us", "Java": "1.40 us (0.50)"}


def test_latency_is_what_a_proxy_adds_to_a_direct_connection() -> None:
    line = latency_line(LATENCY, {"direct": 15.0, "HAProxy": 35.0, "gateway": 47.0})
    assert (line.cells["gateway"], line.measured) == ("32.0 us", "1.60")
    assert line.verdict is Verdict.MISSED


def test_figures_of_a_life_have_their_own_units() -> None:
    pair = LifeFigure("pair", "idle pair", "KB", 1e-3, 5.0)
    line = life_line(pair, {"HAProxy": 3300.0, "gateway": 4500.0})
    assert (line.measured, line.goal, line.verdict) == ("4.50 KB", "<= 5 KB", Verdict.MET)


@pytest.mark.parametrize(
    ("goal", "told", "verdict"),
    [(0.03, "<= +3%", Verdict.MET), (0.01, "<= +1%", Verdict.MISSED), (None, "-", Verdict.NONE)],
)
def test_what_one_proxy_takes_more_than_another_is_compared_round_by_round(
    goal: float | None, told: str, verdict: Verdict
) -> None:
    """The second round is slower for both."""
    rounds = [("on", 1.02), ("off", 1.0), ("off", 2.0), ("on", 2.04), ("on", 1.1), ("off", 1.0)]
    line = added_line("SEND", [*rounds, ("HAProxy", 9.0)], ("on", "off"), goal)
    assert (line.measured, line.goal) == ("+2.0% (+2.0% to +10.0%)", told)
    assert line.cells == {"on": "1.10 us", "off": "1.00 us"}
    assert line.verdict is verdict


@pytest.mark.parametrize(
    ("goal", "told", "verdict"),
    [(3.0, ">= 3", Verdict.MET), (4.1, ">= 4.1", Verdict.MISSED), (None, "-", Verdict.NONE)],
)
def test_how_many_times_the_cpu_one_proxy_takes_is_compared_round_by_round(
    goal: float | None, told: str, verdict: Verdict
) -> None:
    """The second round is slower for both."""
    rounds = [("java", 4.0), ("ours", 1.0), ("ours", 2.0), ("java", 8.0), ("java", 6.0)]
    line = times_line("Produce", [*rounds, ("ours", 1.0)], ("java", "ours"), goal)
    assert (line.measured, line.goal) == ("4.00 (4.00 to 6.00)", told)
    assert line.cells == {"java": "6.00 us", "ours": "1.00 us"}
    assert line.verdict is verdict
