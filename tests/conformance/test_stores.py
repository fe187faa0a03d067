"""What any store must do with a limit that processes share: the book in memory, a real server."""

from __future__ import annotations

from functools import partial
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.dimensions import Dimension
from gateway.policy.keys import Key
from gateway.policy.reservations import ACTIVE, RESERVATION_SECONDS, UnitRequest
from gateway.policy.supply import AT_ONCE
from tests.support.store import StoreServer

from .stores import Fleet, OpenFleet, book_fleet, good, saturated, valkey_fleet

ROUNDING = 1e-6
"""Of what is compared; a time is exact to a microsecond."""


@pytest.fixture(scope="session", params=["book", "valkey"])
def open_fleet(request: pytest.FixtureRequest) -> OpenFleet:
    if request.param == "book":
        return book_fleet
    return partial(valkey_fleet, request.getfixturevalue("server"))


# -- which limit ---------------------------------------------------------------------------------


async def test_a_limit_with_a_long_name_is_shared_as_others_are(open_fleet: OpenFleet) -> None:
    """A client chose the name."""
    long = Key("topics", Dimension.PUBLISH_MESSAGES, ("persistent://a/b/" + "x" * 4_000_000,))
    others = [f"limit {number}" for number in range(AT_ONCE - 1)]
    asks = [UnitRequest(key, 100.0, 10.0, 10.0) for key in (long.text, *others)]
    async with open_fleet(2) as fleet:
        for due in (0.0, 0.1, 0.2):
            for store in fleet.stores[:1]:
                responses = [good(it) for it in await store.reserve(asks)]
                assert responses == [pytest.approx((10, due))] * AT_ONCE
        assert good((await fleet.stores[1].reserve(asks[:1]))[0]).delay > 0


# -- how much ----------------------------------------------------------------------------------

RATES = [(1000.0, 100.0), (1000.0, 1.0), (3.0, 1.0), (0.7, 5.0), (2.5e8, 2.5e7), (10.0, 100.0)]


@pytest.mark.parametrize("processes", [1, 2, 7])
@pytest.mark.parametrize(("rate", "burst"), RATES)
async def test_all_together_never_get_more_than_rate_and_burst_and_miss_little(
    open_fleet: OpenFleet, processes: int, rate: float, burst: float
) -> None:
    seconds = 10.0
    async with open_fleet(processes) as fleet:
        shares = await saturated(fleet, seconds, rate=rate, burst=burst)
    totals = accumulate(share.units for share in shares)
    for share, total in zip(shares, totals, strict=True):
        assert total <= (rate * share.due + burst) * (1 + ROUNDING) + ROUNDING * rate
    given_out = sum(share.units for share in shares if share.due <= seconds)
    # What comes last is not usable yet: one lease, or a unit of each.
    assert (
        given_out >= rate * seconds + burst - max(rate * RESERVATION_SECONDS, burst, processes) - 1
    )


@pytest.mark.parametrize("processes", [2, 5])
@pytest.mark.parametrize(("rate", "burst"), [(1000.0, 100.0), (3.0, 1.0), (1e8, 1e7)])
async def test_who_wants_all_gets_an_equal_part(
    open_fleet: OpenFleet, processes: int, rate: float, burst: float
) -> None:
    async with open_fleet(processes) as fleet:
        await saturated(fleet, 2, rate=rate, burst=burst)  # they do not know each other at first
        shares = await saturated(fleet, 20, rate=rate, burst=burst)
    parts = [sum(it.units for it in shares if it.process == of) for of in range(processes)]
    one = max(1.0, rate * RESERVATION_SECONDS / processes)
    assert max(parts) - min(parts) <= 2 * one


async def test_one_alone_gets_the_whole_burst_at_once(open_fleet: OpenFleet) -> None:
    async with open_fleet(1) as fleet:
        assert await fleet.ask(0, 1000, burst=50) == (50, 0)


async def test_nobody_gets_more_than_was_asked_for(open_fleet: OpenFleet) -> None:
    async with open_fleet(1) as fleet:
        assert await fleet.ask(0, 3, burst=50) == (3, 0)


async def test_at_least_one_is_given_and_has_to_be_waited_for(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        assert await fleet.ask(0, 1, rate=2, burst=1) == (1, 0)
        units, delay = await fleet.ask(1, 0.001, rate=2, burst=1)
        assert units == 1
        assert delay == pytest.approx(0.5)


async def test_two_halve_what_is_saved_up(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        await fleet.ask(0, 1, burst=50)
        units, delay = await fleet.ask(1, 1000, burst=50)
    assert units == pytest.approx(24.5)
    assert delay == 0


# -- who shares --------------------------------------------------------------------------------


async def test_who_does_not_ask_any_more_is_not_shared_with(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        await _exhaust(fleet)
        fleet.clock.pass_by(ACTIVE - 0.01)
        assert (await fleet.ask(0, 1000)).units == pytest.approx(5)
        fleet.clock.pass_by(0.01)
        assert (await fleet.ask(0, 1000)).units == pytest.approx(10)


async def test_who_wants_nothing_is_not_shared_with(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        await _exhaust(fleet)
        await fleet.ask(1, 0, owed=1)
        assert (await fleet.ask(0, 1000)).units == pytest.approx(10)


async def _exhaust(fleet: Fleet) -> None:
    """Two processes have asked, and nothing is saved up."""
    for _ in range(10):
        await fleet.ask(0, 1000)
        await fleet.ask(1, 1000)


async def test_limits_do_not_know_each_other(open_fleet: OpenFleet) -> None:
    names = ["a", "b", "a}", "}", "{", "%7D", "a:asked", "ä €"]
    asks = [UnitRequest(name, 50, 5, 5) for name in names]
    async with open_fleet(1) as fleet:
        assert [good(it) for it in await fleet.stores[0].reserve(asks)] == [(5, 0)] * len(names)
        for response in await fleet.stores[0].reserve(asks):
            assert response == pytest.approx((5, 0.1))


async def test_nothing_is_answered_with_nothing(open_fleet: OpenFleet) -> None:
    async with open_fleet(1) as fleet:
        assert list(await fleet.stores[0].reserve([])) == []


# -- what is settled ---------------------------------------------------------------------------


async def test_what_is_owed_is_earned_first(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        units, delay = await fleet.ask(0, 0, owed=30)
        assert units == 0
        assert delay == pytest.approx(0.2)
        assert (await fleet.ask(1, 5)).delay == pytest.approx(0.25)


async def test_what_was_not_used_is_there_again(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        await fleet.ask(0, 10)
        await fleet.ask(0, 0, owed=-6)
        assert await fleet.ask(1, 6) == pytest.approx((6, 0))


async def test_giving_back_saves_no_more_than_the_burst(open_fleet: OpenFleet) -> None:
    async with open_fleet(1) as fleet:
        await fleet.ask(0, 0, owed=-1000)
        assert await fleet.ask(0, 1000) == (10, 0)


async def test_all_debt_is_charged(open_fleet: OpenFleet) -> None:
    async with open_fleet(2) as fleet:
        first = await fleet.ask(0, 0, owed=1e6)
        assert (await fleet.ask(1, 0, owed=1e6)).delay == pytest.approx(2 * first.delay, rel=1e-3)


async def test_a_limit_at_rest_is_as_a_new_one(open_fleet: OpenFleet) -> None:
    async with open_fleet(1) as fleet:
        fleet.clock.pass_by((await fleet.ask(0, 0, owed=1e6)).delay + 1)
        assert await fleet.ask(0, 1000) == (10, 0)


# -- all the same ------------------------------------------------------------------------------

numbers = st.floats(1e-3, 1e9)
pauses = st.one_of(st.just(0.0), st.floats(0, 0.2), st.floats(0, 15))
moves = st.tuples(
    st.integers(0, 3),
    pauses,
    st.one_of(st.just(0.0), numbers),
    st.one_of(st.just(0.0), numbers, numbers.map(lambda number: -number)),
)


@given(rate=numbers, seconds=st.floats(1e-3, 20), moves=st.lists(moves, max_size=30))
async def test_the_server_answers_as_the_book_does(
    server: StoreServer,
    rate: float,
    seconds: float,
    moves: list[tuple[int, float, float, float]],
) -> None:
    burst = max(1.0, rate * seconds)
    async with book_fleet(4) as book, valkey_fleet(server, 4) as valkey:
        for process, pause, units, owed in moves:
            for fleet in (book, valkey):
                fleet.clock.pass_by(pause)
            expected = await book.ask(process, units, rate=rate, burst=burst, owed=owed)
            response = await valkey.ask(process, units, rate=rate, burst=burst, owed=owed)
            assert response.units == pytest.approx(expected.units, rel=1e-6, abs=1e-6 * rate)
            assert response.delay == pytest.approx(expected.delay, rel=1e-6, abs=1e-6)
