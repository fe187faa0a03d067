"""Delays of addresses that try credentials, by an injected clock."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gateway.control import failures as module
from gateway.control.failures import (
    FIRST_DELAY,
    FORGIVEN,
    FREE,
    LONGEST_DELAY,
    REMEMBERED,
    Failures,
)

HOST, OTHER = "192.0.2.1", "192.0.2.2"


class Trial:
    """Failures at a time that the test sets."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.failures = Failures(lambda: self.now)

    def fail(self, times: int = 1, host: str = HOST, *, apart: float = 0.0) -> list[float]:
        """Fail this often; return the delays."""
        delays = []
        for _ in range(times):
            delays.append(self.failures.failed(host))
            self.now += apart
        return delays

    @property
    def remembered(self) -> int:
        return len(self.failures._of_address)


# -- growing --


@pytest.mark.parametrize("apart", [0.0, 0.001, 1.0])
def test_the_first_ten_failures_are_answered_at_once(apart: float) -> None:
    assert Trial().fail(FREE, apart=apart) == [0.0] * FREE


def test_each_further_failure_doubles_the_delay_up_to_the_longest() -> None:
    trial = Trial()
    trial.fail(FREE)
    assert trial.fail(8) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LONGEST_DELAY, LONGEST_DELAY]


def test_the_delay_never_gets_longer_than_the_longest() -> None:
    trial = Trial()
    trial.fail(5000)
    assert trial.fail(3) == [LONGEST_DELAY] * 3


def test_who_waits_for_each_answer_waits_ever_longer() -> None:
    trial, delays = Trial(), list[float]()
    for _ in range(FREE + 8):
        (delay,) = trial.fail()
        delays.append(delay)
        trial.now += delay
    assert all(before <= after for before, after in pairwise(delays))
    assert delays[-1] == LONGEST_DELAY


def test_a_guesser_is_held_to_a_pace_however_long_he_tries() -> None:
    """He waits for his responses, on one connection after the other."""
    trial, tries = Trial(), 0
    while trial.now < 1000.0 + 3600:
        tries += 1
        trial.now += trial.fail()[0]
        trial.now += 0.001
    assert tries < 3600 / LONGEST_DELAY * 4


# -- ending --


def test_the_delay_ends_when_the_failures_are_forgotten() -> None:
    trial = Trial()
    trial.fail(2 * FREE)
    trial.now += FORGIVEN
    (delay,) = trial.fail()
    assert delay == FIRST_DELAY, "half of them are left, and this one"
    trial.now += 10 * FORGIVEN
    assert trial.fail(FREE - 1) == [0.0] * (FREE - 1)


def test_a_client_that_fails_now_and_then_never_waits() -> None:
    assert set(Trial().fail(1000, apart=FORGIVEN / 5)) == {0.0}


@pytest.mark.parametrize("later", [1e6, 1e12, 1e300])
def test_a_failure_after_any_time_is_a_first_one(later: float) -> None:
    trial = Trial()
    trial.fail(1000)
    trial.now += later
    assert trial.fail() == [0.0]


# -- waiting before a try --


def test_the_next_try_waits_until_the_delay_of_the_last_failure_is_over() -> None:
    trial = Trial()
    trial.fail(FREE)
    assert trial.failures.wait(HOST) == 0.0
    trial.fail(2)
    assert trial.failures.wait(HOST) == pytest.approx(2 * FIRST_DELAY)
    trial.now += FIRST_DELAY
    assert trial.failures.wait(HOST) == pytest.approx(FIRST_DELAY)
    trial.now += 2 * FIRST_DELAY
    assert trial.failures.wait(HOST) == 0.0
    assert trial.failures.wait(OTHER) == 0.0


# -- by address --


def test_one_address_delays_no_other() -> None:
    trial = Trial()
    trial.fail(100)
    assert trial.fail(host=OTHER) == [0.0]


@pytest.mark.parametrize(
    "hosts",
    [
        [f"2001:db8::{number:x}" for number in range(1, FREE + 2)],
        [f"2001:db8::{number:x}:0:0:1" for number in range(1, FREE + 2)],
        [HOST, f"::ffff:{HOST}"] * FREE,
    ],
    ids=["a network's end", "a network's middle", "IPv4 in IPv6"],
)
def test_addresses_of_one_holder_fail_together(hosts: list[str]) -> None:
    trial = Trial()
    assert [trial.fail(host=host)[0] for host in hosts[:FREE]] == [0.0] * FREE
    assert trial.fail(host=hosts[FREE]) == [FIRST_DELAY]


def test_another_network_fails_by_itself() -> None:
    trial = Trial()
    trial.fail(100, "2001:db8::1")
    assert trial.fail(host="2001:db8:0:1::1") == [0.0]


# -- memory --


def test_no_more_addresses_are_remembered_than_the_bound() -> None:
    trial = Trial()
    for number in range(REMEMBERED + 100):
        trial.fail(host=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert trial.remembered == REMEMBERED


def test_the_address_that_failed_longest_ago_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    trial = Trial()
    for host in ("a", "b", "c"):
        trial.fail(FREE, host)
    assert trial.fail(host="a") == [FIRST_DELAY]
    trial.fail(host="d")
    assert trial.fail(host="a") == [2 * FIRST_DELAY]
    assert trial.fail(host="c") == [FIRST_DELAY]
    assert trial.fail(host="b") == [0.0], "forgotten"


def test_one_that_goes_on_failing_is_not_pushed_out_by_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 10)
    trial = Trial()
    trial.fail(FREE + 10)
    for number in range(100):
        trial.fail(host=f"198.51.100.{number}")
        assert trial.fail() == [LONGEST_DELAY]
