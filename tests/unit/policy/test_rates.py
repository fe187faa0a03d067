"""Rates and bursts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.rates import Burst, burst, byte_rate, number, rate
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("written", "each_second"),
    [("100/s", 100), ("6000/m", 100), ("36/h", 0.01), ("1.5/s", 1.5), ("100 / s", 100)],
)
def test_a_rate_is_read_as_units_per_second(written: str, each_second: float) -> None:
    assert rate(written) == pytest.approx(each_second)


@pytest.mark.parametrize("written", [100, None, True, "100", "100/d", "/s", "-1/s", "1e3/s", ""])
def test_a_value_that_is_not_a_rate_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        rate(written)


@pytest.mark.parametrize(
    ("written", "each_second"),
    [("10MB/s", 1e7), ("64KiB/s", 65536), ("60kb/m", 1000), ("1 GB/h", 1e9 / 3600), ("5B/s", 5)],
)
def test_a_rate_of_bytes_is_read_as_bytes_per_second(written: str, each_second: float) -> None:
    assert byte_rate(written) == pytest.approx(each_second)


@pytest.mark.parametrize("written", [100, "100/s", "10MB", "10blocks/s", "9" * 400 + "GB/s"])
def test_a_value_that_is_not_a_rate_of_bytes_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is not a rate of bytes"):
        byte_rate(written)


@pytest.mark.parametrize("written", ["0/s", "0.0/m", "9" * 400 + "/s"])
def test_a_rate_of_zero_or_infinity_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="cannot be a limit"):
        rate(written)


@pytest.mark.parametrize("written", [0, -1, 10**18])
def test_a_number_out_of_range_is_refused(written: int) -> None:
    with pytest.raises(ValueError, match="cannot be a limit"):
        number(written)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("500ms", Burst(seconds=0.5)),
        ("1m", Burst(seconds=60)),
        ("1MB", Burst(amount=1e6)),
        (2000, Burst(amount=2000)),
        ("64 KiB", Burst(amount=65536)),
    ],
)
def test_a_burst_is_a_time_or_an_amount(written: object, found: Burst) -> None:
    assert burst(written) == found


@pytest.mark.parametrize("written", [None, True, "500", "5 minutes", [1]])
def test_a_value_that_is_not_a_burst_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is not a burst"):
        burst(written)


@examples(100)
@given(st.floats(1e-6, 1e12), st.floats(0, 3600))
def test_a_burst_is_at_least_one_unit(each_second: float, seconds: float) -> None:
    found = Burst(seconds=seconds).of(each_second)
    assert found == max(1, each_second * seconds)


def test_a_burst_of_an_amount_does_not_depend_on_the_rate() -> None:
    assert [Burst(amount=20).of(each_second) for each_second in (1, 1000)] == [20, 20]
