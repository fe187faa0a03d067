"""A real Redis or Valkey that does what servers do: it stops, freezes, forgets, refuses."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import model
from gateway.fleet.store import Store, StoreError
from gateway.fleet.stores import store_of
from gateway.fleet.valkey import ValkeyStore
from gateway.policy.reservations import Reserved, UnitRequest
from tests.support.certificates import self_signed
from tests.support.store import HOST, StoreServer, free_port

from .stores import Deaf, Fleet, an_ask, good, opened, valkey_fleet

SOON = 0.2
"""Seconds for a call that is not to be answered."""

StartServer = Callable[..., StoreServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Starts a server that a test may ill-treat."""
    started: list[StoreServer] = []

    def start(*options: str) -> StoreServer:
        started.append(StoreServer(tmp_path, *options))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.stop()


async def _ask(store: Store, units: float = 1e6, **how: float) -> Reserved:
    (response,) = await store.reserve([an_ask(units, **how)])
    return good(response)


# -- faults ------------------------------------------------------------------------------------


async def test_a_store_that_is_not_there_is_told_and_found_when_it_is(start: StartServer) -> None:
    server = start()
    server.stop()
    async with opened(server) as store:
        with pytest.raises(StoreError, match=r"^cannot be reached: connection refused$"):
            await _ask(store)
        with pytest.raises(StoreError, match=r"^cannot be reached: connection refused$"):
            await store.beat()
        server.start()
        assert await _until_answered(store) == (10, 0)


async def _until_answered(store: Store, units: float = 1e6, **how: float) -> Reserved:
    """Ask as a gateway does that was told no: now and then."""
    while True:
        try:
            return await _ask(store, units, **how)
        except StoreError:
            await trio.sleep(0.01)


async def test_a_restart_is_noticed_by_nobody(start: StartServer) -> None:
    server = start()
    async with opened(server) as store:
        assert await _ask(store) == (10, 0)
        server.stop()
        server.start()
        assert await _ask(store) == (10, 0)
        assert (await _ask(store)).delay > 0


async def test_a_store_that_is_frozen_is_not_waited_for_and_answers_afterwards(
    start: StartServer,
) -> None:
    server = start()
    async with opened(server, patience=SOON) as store:
        await _until_answered(store)
        server.freeze()
        for _ in range(3):
            with pytest.raises(StoreError, match=r"^does not answer within 200 ms$"):
                await _ask(store)
        server.thaw()
        assert (await _until_answered(store)).units == 10


async def test_a_call_that_was_cancelled_leaves_a_store_that_answers(start: StartServer) -> None:
    server = start()
    async with opened(server) as store:
        await _ask(store)
        server.freeze()
        for _ in range(100):  # more than a pool of connections has places
            with trio.move_on_after(0.001):
                await _ask(store)
        server.thaw()
        assert (await _ask(store)).units == 10


async def test_what_a_frozen_store_was_asked_is_not_owed_afterwards(start: StartServer) -> None:
    """Each of these reserves ten seconds of the limit, where the store carries it out."""
    server = start()
    async with opened(server, patience=SOON) as store:
        await _until_answered(store, 1, rate=0.1, burst=1)
        server.freeze()
        for _ in range(5):
            with pytest.raises(StoreError):
                await _ask(store, 1, rate=0.1, burst=1)
        server.thaw()
        _, delay = await _until_answered(store, 1, rate=0.1, burst=1)
    assert delay <= 10


async def test_a_server_that_lost_the_script_is_sent_it_again(start: StartServer) -> None:
    server = start()
    async with opened(server) as store:
        await _ask(store)
        assert server.ask("SCRIPT", "FLUSH") == "+OK"
        _, delay = await _ask(store)
        assert 0 < delay < 1
        assert server.ask("SCRIPT", "FLUSH") == "+OK"
        assert await store.beat() == 1


async def test_a_replica_is_told_and_good_when_it_is_none_any_more(start: StartServer) -> None:
    server = start()
    async with opened(server) as store:
        await _ask(store)
        server.ask("REPLICAOF", HOST, "1")
        with pytest.raises(StoreError, match=r"^takes no writes: it is a replica$"):
            await _ask(store)
        server.ask("REPLICAOF", "NO", "ONE")
        assert (await _ask(store)).units == 10


@pytest.mark.parametrize(
    ("password", "told"),
    [
        (None, "^wants a password$"),
        ("wrong-secret", "^does not take this username and password$"),
    ],
)
async def test_without_the_right_password_nobody_is_answered(
    start: StartServer, password: str | None, told: str
) -> None:
    server = start("--requirepass", "right-secret")
    async with opened(server, password=password) as store:
        with pytest.raises(StoreError, match=told) as caught:
            await _ask(store)
    assert "secret" not in repr(caught.value)


async def test_with_the_right_password_everybody_is(start: StartServer) -> None:
    server = start("--requirepass", "right-secret")
    async with opened(server, password="right-secret") as store:
        assert await _ask(store) == (10, 0)


async def test_a_password_that_changes_is_read_again(start: StartServer, tmp_path: Path) -> None:
    server = start("--requirepass", "older")
    path = tmp_path / "password"
    path.write_text("older\n")
    async with _configured(url=server.url, password_file=path) as store:
        assert await _ask(store) == (10, 0)
        server.stop()
        server.options = ("--requirepass", "newer")
        server.start()
        with pytest.raises(StoreError, match=r"^does not take this username and password$"):
            await _ask(store)
        path.write_text("")
        with pytest.raises(StoreError, match=r"^The password file .* is empty"):
            await _until_told_anew(store)
        path.write_text("newer\n")
        assert await _until_answered(store) == (10, 0)


async def _until_told_anew(store: Store) -> None:
    """What went wrong with the next connection; until that is tried, it is what did before."""
    while True:
        try:
            await _ask(store)
        except StoreError as error:
            if "password file" in str(error):
                raise
        await trio.sleep(0.01)


async def test_a_user_with_the_rights_that_the_page_names_can_do_all(
    start: StartServer, tmp_path: Path
) -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    found = re.search("^(ACL SETUSER gateway .*)$", page.read_text(), re.MULTILINE)
    assert found
    server = start()
    assert server.ask(found[1].replace("<password>", "secret")) == "+OK"
    (tmp_path / "password").write_text("secret\n")
    async with _configured(
        url=server.url, username="gateway", password_file=tmp_path / "password"
    ) as store:
        assert await _ask(store) == (10, 0)
        await _ask(store, 0, owed=1)
        assert await store.beat() == 1


async def test_keys_of_something_else_are_told(start: StartServer) -> None:
    server = start()
    server.ask("SET", "test:{limit}", "something")
    async with opened(server) as store:
        with pytest.raises(StoreError, match=r"wrong kind"):
            await _ask(store)


SPOILERS = {
    "another kind": ["SET test:{spoilt} something", "RPUSH test:{spoilt}:asked something"],
    "what it kept": ["HSET test:{spoilt} at yesterday behind 7"],
    "its process": ["RPUSH test:{spoilt}:PROCESS something"],
}


@pytest.mark.parametrize("spoils", SPOILERS.values(), ids=SPOILERS)
async def test_a_spoilt_key_is_an_error_of_its_limit_alone(
    start: StartServer, spoils: list[str]
) -> None:
    server = start()
    async with opened(server) as store:
        asks = [UnitRequest(key, 100.0, 10.0, 1e6) for key in ("one", "spoilt", "other")]
        for _ in range(3):
            for spoil in spoils:
                server.ask(*spoil.replace("PROCESS", store._process).split(" "))
            one, spoilt, other = await store.reserve(asks)
            assert isinstance(spoilt, StoreError)
            assert good(one).units == good(other).units == 10
        assert good(one).delay > 0
        assert await store.beat() == 1
        server.ask("FLUSHALL")
        assert [good(it).units for it in await store.reserve(asks)] == [10, 10, 10]


async def test_what_a_spoilt_key_took_is_taken_back(server: StoreServer) -> None:
    """The script fails behind the first keys that it writes."""
    async with valkey_fleet(server, 1) as fleet:
        store = fleet.stores[0]
        assert isinstance(store, ValkeyStore)
        mine = f"{store._prefix}{{limit}}:{store._process}"
        await fleet.ask(0, 10)
        fleet.clock.pass_by(1)
        server.ask("DEL", mine)
        server.ask("RPUSH", mine, "something")
        with pytest.raises(StoreError):
            await fleet.ask(0, 10)
        server.ask("DEL", mine)
        assert await fleet.ask(0, 10) == pytest.approx((10, 0))


# -- the way there -----------------------------------------------------------------------------


@asynccontextmanager
async def _configured(*, patience: float = 5.0, **settings: object) -> AsyncIterator[Store]:
    """As a gateway has it whose configuration says so."""
    written = {key: str(value) for key, value in settings.items()}
    store = store_of(model.Store.model_validate({"timeout": patience, **written}))
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        yield store
        await store.close()


@pytest.fixture
def encrypted(start: StartServer, tmp_path: Path) -> str:
    """The URL of a server with TLS; its authority's file is `ca` in the test's folder."""
    made = self_signed(HOST)
    (tmp_path / "ca").write_bytes(made.certificate)
    (tmp_path / "key").write_bytes(made.key)
    files = ["--tls-cert-file", "ca", "--tls-key-file", "key", "--tls-auth-clients", "no"]
    port = free_port()
    start("--tls-port", str(port), *files)
    return f"rediss://{HOST}:{port}"


async def test_a_certificate_of_the_authority_that_is_named_is_believed(
    encrypted: str, tmp_path: Path
) -> None:
    async with _configured(url=encrypted, ca_file=tmp_path / "ca") as store:
        assert await _ask(store) == (10, 0)


async def test_a_certificate_of_anybody_else_is_not(encrypted: str) -> None:
    async with _configured(url=encrypted) as store:
        with pytest.raises(StoreError, match=r"^shows a certificate that is not trusted$"):
            await _ask(store)


async def test_a_certificate_of_another_host_is_not(encrypted: str, tmp_path: Path) -> None:
    url = encrypted.replace(HOST, "localhost")
    async with _configured(url=url, ca_file=tmp_path / "ca") as store:
        with pytest.raises(StoreError, match=r"^shows a certificate that is not trusted$"):
            await _ask(store)


async def test_tls_towards_a_plain_port_is_told(server: StoreServer) -> None:
    async with _configured(url=server.url.replace("redis", "rediss"), patience=SOON) as store:
        with pytest.raises(StoreError, match=r"^does not answer within 200 ms$"):
            await _ask(store)


async def test_a_unix_socket_is_a_way(start: StartServer, tmp_path: Path) -> None:
    start("--unixsocket", "socket")
    async with _configured(url=f"unix://{tmp_path / 'socket'}") as store:
        assert await _ask(store) == (10, 0)


async def test_a_database_keeps_limits_apart(server: StoreServer) -> None:
    async with (
        _configured(url=f"{server.url}/3", prefix="apart:") as one,
        _configured(url=f"{server.url}/4", prefix="apart:") as other,
    ):
        assert await _ask(one) == (10, 0)
        assert await _ask(other) == (10, 0)


async def test_a_name_that_does_not_resolve_is_told() -> None:
    async with _configured(url="redis://store.invalid") as store:
        with pytest.raises(StoreError, match=r"^has a name that does not resolve$"):
            await _ask(store)


# -- its clock ---------------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_stops_nobody(server: StoreServer) -> None:
    async with valkey_fleet(server, 2) as fleet:
        await fleet.ask(0, 1000)
        await fleet.ask(1, 1000)
        fleet.clock.pass_by(-900)
        units, delay = await fleet.ask(0, 1000)
        assert units == pytest.approx(10)  # the other one will ask soon
        assert delay == pytest.approx(0.15)
        fleet.clock.pass_by(0.25)
        assert (await fleet.ask(0, 10)).delay == pytest.approx(0)


async def test_a_limit_at_rest_leaves_the_store(server: StoreServer) -> None:
    async with opened(server, prefix="resting:") as store:
        await _ask(store, 5, rate=1000, burst=1)
        await store.beat()
        times = {key: int(server.ask("PTTL", key)[1:]) for key in server.keys("resting:*")}
    assert {key.replace(store._process, "PROCESS") for key in times} == {
        "resting:{limit}",
        "resting:{limit}:asked",
        "resting:{limit}:PROCESS",
        "resting:processes",
    }
    assert all(0 < milliseconds <= 3000 for milliseconds in times.values())


# -- who is there ------------------------------------------------------------------------------


async def test_who_beats_is_counted_for_three_seconds(server: StoreServer) -> None:
    async with valkey_fleet(server, 3) as fleet:
        stores = [store for store in fleet.stores if isinstance(store, ValkeyStore)]
        assert [await store.beat() for store in stores] == [1, 2, 3]
        fleet.clock.pass_by(2)
        assert await stores[0].beat() == 3
        fleet.clock.pass_by(1)
        assert await stores[0].beat() == 1


# -- what was not heard ------------------------------------------------------------------------


async def _ask_deaf(fleet: Fleet, process: int, units: float, **how: float) -> None:
    store = fleet.stores[process]
    assert isinstance(store, Deaf)
    store.deaf = True
    with pytest.raises(StoreError):
        await fleet.ask(process, units, **how)
    store.deaf = False


async def test_what_was_not_heard_is_undone(server: StoreServer) -> None:
    async with valkey_fleet(server, 1) as fleet:
        for _ in range(3):
            await _ask_deaf(fleet, 0, 10, owed=1000)
        assert await fleet.ask(0, 10) == pytest.approx((10, 0))


async def test_what_was_heard_is_not_undone(server: StoreServer) -> None:
    async with valkey_fleet(server, 2) as fleet:
        await fleet.ask(0, 10)
        await _ask_deaf(fleet, 0, 10)
        await fleet.ask(0, 10)
        await _ask_deaf(fleet, 0, 10)
        await fleet.stores[0].reserve([])
        assert (await fleet.ask(0, 10)).delay == pytest.approx(0.2)
        assert (await fleet.ask(1, 10)).delay == pytest.approx(0.25)


async def test_what_was_given_back_unheard_is_not_there_twice(server: StoreServer) -> None:
    async with valkey_fleet(server, 1) as fleet:
        await fleet.ask(0, 10)
        await _ask_deaf(fleet, 0, 0, owed=-4)
        await _ask_deaf(fleet, 0, 0, owed=-4)
        await fleet.ask(0, 0, owed=-4)
        assert (await fleet.ask(0, 5)).delay == pytest.approx(0.01)


async def test_undoing_gives_nothing_of_the_time_that_has_passed(server: StoreServer) -> None:
    """Without what was lost the limit would have been full all the time, and no more than that."""
    async with valkey_fleet(server, 2) as fleet:
        await _ask_deaf(fleet, 0, 10)
        fleet.clock.pass_by(0.05)
        usable = 0.0
        for process in (1, 0, 1, 0, 1, 0):
            units, delay = await fleet.ask(process, 5)
            usable += units if delay == 0 else 0
    assert usable == pytest.approx(10)


deaf_moves = st.tuples(st.integers(0, 2), st.floats(0, 0.5), st.floats(1, 40), st.booleans())


# A smaller burst than what is reserved at a time is not kept to the unit.
@given(burst=st.floats(10, 40), moves=st.lists(deaf_moves, max_size=30))
async def test_lost_answers_never_let_more_pass(
    server: StoreServer, burst: float, moves: list[tuple[int, float, float, bool]]
) -> None:
    heard: list[tuple[float, float]] = []
    async with valkey_fleet(server, 3) as fleet:
        began = fleet.clock.now
        for process, pause, units, lost in moves:
            fleet.clock.pass_by(pause)
            if lost:
                await _ask_deaf(fleet, process, units, burst=burst)
            else:
                response = await fleet.ask(process, units, burst=burst)
                heard.append((fleet.clock.now - began + response.delay, response.units))
    heard.sort()
    for first, (begin, _) in enumerate(heard):
        totals = accumulate(units for _, units in heard[first:])
        for (due, _), total in zip(heard[first:], totals, strict=True):
            assert total <= 100 * (due - begin) + burst + 1e-3
