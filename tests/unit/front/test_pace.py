"""How often an address may connect, by times that the tests give."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from gateway.listening import pace as module
from gateway.listening.pace import BURST, REMEMBERED, Pace
from gateway.wire.contract import EndReason
from tests.unit.tls.samples import House

from .fakes import hello, serving, until, welcome
from .test_proxied import TRUSTED

HOST, OTHER = "192.0.2.1", "192.0.2.2"

TIMES = [0.0, 1.0, 1e5 / 3, 7e8 / 9]
"""Monotonic seconds: of a machine that has just started, and of one that runs for years."""

RATES = [1.0, 2.0, 3.0, 7.0, 10.0, 50.0, 97.0, 1000.0]


def admitted(pace: Pace, number: int, now: float, host: str = HOST) -> int:
    """Return how many of so many connections at once may come."""
    return sum(pace.may_connect(host, now) for _ in range(number))


# -- bounds --


def test_there_is_no_bound_by_itself_and_nothing_is_remembered() -> None:
    pace = Pace(None)
    assert admitted(pace, 10_000, 1.0) == 10_000
    assert not pace._until


@pytest.mark.parametrize("now", TIMES, ids=["start", "second", "day", "years"])
@pytest.mark.parametrize("rate", RATES)
def test_two_seconds_of_the_rate_may_come_at_once_and_no_more(rate: float, now: float) -> None:
    pace = Pace(rate)
    assert admitted(pace, 5000, now) == int(BURST * rate)


@pytest.mark.parametrize("now", TIMES, ids=["start", "second", "day", "years"])
@pytest.mark.parametrize("rate", RATES)
def test_after_a_second_a_second_of_the_rate_may_come(rate: float, now: float) -> None:
    pace = Pace(rate)
    admitted(pace, 5000, now)
    for second in range(1, 20):
        assert admitted(pace, 5000, now + second) == int(rate)


@pytest.mark.parametrize("rate", RATES)
def test_after_a_pause_no_more_may_come_than_at_first(rate: float) -> None:
    pace = Pace(rate)
    admitted(pace, 5000, 100.0)
    assert admitted(pace, 5000, 1e6) == int(BURST * rate)


@pytest.mark.parametrize("rate", RATES)
def test_who_keeps_the_rate_is_never_refused(rate: float) -> None:
    pace = Pace(rate)
    assert all(pace.may_connect(HOST, 1e5 + number / rate) for number in range(5000))


def test_a_refused_try_costs_nothing() -> None:
    """Who tries without pause is served as often as one who keeps the rate."""
    pace = Pace(10)
    admitted(pace, 1000, 5.0)
    assert sum(admitted(pace, 10, 5 + number / 1000) for number in range(1, 10_001)) == 100


@given(st.lists(st.floats(0, 3), max_size=200), st.sampled_from([1.0, 3.0, 10.0]))
def test_no_window_holds_more_than_the_rate_allows(gaps: list[float], rate: float) -> None:
    """A connection may come half an interval early, so that rounding costs nobody one."""
    pace, now, came = Pace(rate), 1e5, list[float]()
    for gap in gaps:
        now += gap if gap > 1 else gap / rate
        if pace.may_connect(HOST, now):
            came.append(now)
    for first, began in enumerate(came):
        for last in range(first, len(came)):
            number, seconds = last - first + 1, came[last] - began
            assert number <= rate * (seconds + BURST) + 0.51


# -- addresses --


def test_one_address_takes_nothing_of_another() -> None:
    pace = Pace(5)
    admitted(pace, 100, 1.0)
    assert admitted(pace, 100, 1.0, OTHER) == 10


def test_a_network_of_ipv6_and_an_address_in_both_notations_count_as_one() -> None:
    pace = Pace(5)
    assert sum(pace.may_connect(f"2001:db8::{it:x}", 1.0) for it in range(1, 100)) == 10
    assert admitted(pace, 100, 1.0, "2001:db8:0:1::1") == 10
    assert admitted(pace, 8, 1.0) == 8
    assert admitted(pace, 8, 1.0, f"::ffff:{HOST}") == 2


# -- memory --


def test_no_more_addresses_are_remembered_than_the_bound() -> None:
    pace = Pace(1)
    for number in range(REMEMBERED + 1000):
        pace.may_connect(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1.0)
    assert len(pace._until) == REMEMBERED


def test_the_address_that_came_longest_ago_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    pace = Pace(2)
    for host in ("a", "b", "a", "c"):
        assert pace.may_connect(host, 1.0)
    assert admitted(pace, 9, 1.0, "a") == 2
    assert admitted(pace, 9, 1.0, "b") == 4, "forgotten"


# -- through a server --

REFUSED = EndReason.TOO_MANY_CONNECTS


async def test_one_connection_too_many_is_closed_without_a_word(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(connects=1) as running:
        for _ in range(2):
            await running.open()
        client = running.connect()
        assert await client.hear_all() == b""
        await until(lambda: running.ended == {REFUSED: 1})
        assert len(running.openings) == 0
        assert running.counts == (0, 2)
        await trio.sleep(1)
        await running.open()


async def test_a_connection_too_many_costs_no_handshake(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with serving(connects=1, tls=House(tmp_path).server()) as running:
        clients = [running.connect() for _ in range(5)]
        await until(lambda: running.ended == {REFUSED: 3})
        assert running.counts == (2, 0)
        for client in clients[2:]:
            assert await client.hear_all() == b""


async def test_each_client_behind_a_proxy_has_a_pace_of_its_own(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(connects=1, proxies=TRUSTED) as running:
        for number in (1, 2, 3, 1, 2, 3):
            client = running.connect()
            client.say(b"PROXY TCP4 10.0.0.%d 10.0.0.9 40000 6650\r\n" % number + hello())
            known = len(running.dialler.brokers)
            await until(lambda known=known: len(running.dialler.brokers) > known)  # type: ignore[misc]
            running.dialler.broker().say(welcome())
            assert await client.hear(len(welcome())) == welcome()
        late = running.connect()
        late.say(b"PROXY TCP4 10.0.0.1 10.0.0.9 40000 6650\r\n" + hello())
        await until(lambda: running.ended == {REFUSED: 1})
