from __future__ import annotations

import contextlib
import errno
import gc
import socket
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from gateway.brokers import health
from gateway.brokers.health import Brokers, Failure, Timing, connect, start_connecting
from gateway.brokers.learned import MOST_HOSTS, LearnedHosts
from gateway.brokers.resolver import MOST_NAMES, RENEWED_AFTER
from gateway.brokers.targets import REFUSED, TargetList
from gateway.plane.stream import has_records
from gateway.tls.handshake import shake
from gateway.tls.sides import ClientCertificates, ClientSide, ServerSide
from gateway.tls.stream import TlsStream
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from tests.support.tls import NAME
from tests.unit.tls.samples import House

pytestmark = pytest.mark.trio

TIMING = Timing(dial_timeout=5.0, attempt_timeout=2.0)


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Return a clock that jumps only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.005)


class FakeBroker:
    """A listener on the loopback that never accepts by itself."""

    def __init__(self, host: str = "127.0.0.1", backlog: int = 100) -> None:
        self.socket = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=backlog
        )
        self.address = Address(host, self.socket.getsockname()[1])

    def connections(self) -> int:
        """Return the number of connections since the last call."""
        self.socket.setblocking(False)
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.accept()[0].close()
                count += 1
        return count

    def stop(self) -> None:
        self.socket.close()

    def start(self) -> None:
        self.socket = socket.create_server(self.address.pair)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture
def other_broker() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture
def black_hole() -> Iterator[FakeBroker]:
    """A broker with a full backlog: the kernel drops further SYNs, at any loopback address."""
    broker = FakeBroker("0.0.0.0", backlog=0)
    broker.address = Address("127.0.0.1", broker.address.port)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(broker.address.pair)
        yield broker
    broker.stop()


class Setting:
    """Brokers with a fake name server and a recorded log."""

    def __init__(
        self,
        *addresses: Address,
        targets: TargetList | None = None,
        timing: Timing = TIMING,
        tls: ClientSide | None = None,
        header: bytes = b"",
    ) -> None:
        self.ips: dict[str, list[str]] = {}
        self.is_silent = False  # the name server
        self.asked: list[str] = []  # hosts that the name server was asked for
        self.events: list[tuple[str, dict[str, object]]] = []
        self.learned = LearnedHosts(PULSAR)
        self.brokers = Brokers(
            "main",
            addresses,
            targets or TargetList.of(addresses),
            self.learned,
            timing,
            tls=tls,
            header=header,
            look_up=self.look_up,
            log=self.log,
        )

    async def look_up(self, host: str) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        if self.is_silent:
            await trio.sleep_forever()
        if host not in self.ips:
            raise OSError(-2, "Name or service not known")
        return self.ips[host]

    def log(self, event: str, **values: object) -> None:
        self.events.append((event, values))

    def ready(self) -> bool:
        """Return `Brokers.ready`. Mypy narrows a property after an assert, but not a call."""
        return self.brokers.ready

    @property
    def failed(self) -> dict[Failure, int]:
        """Return the failures that occurred, by cause."""
        return {cause: number for cause, number in self.brokers.failures().items() if number}

    @property
    def happened(self) -> list[str]:
        return [event for event, _ in self.events]


async def dialled(brokers: Brokers, target: Address | None = None) -> Address:
    """Dial, close the connection, and return the address that was dialled."""
    answer = await brokers.dial(target)
    assert not isinstance(answer, Denial), answer
    answer[0].close()
    return answer[1]


async def denied(brokers: Brokers, target: Address | None = None) -> Denial:
    answer = await brokers.dial(target)
    assert isinstance(answer, Denial)
    return answer


async def until(reached: Callable[[], bool]) -> None:
    while not reached():  # noqa: ASYNC110 - nobody sets an event
        await trio.sleep(0.1)


# -- dialling any broker --


async def test_dial_returns_a_plain_non_blocking_socket(broker: FakeBroker) -> None:
    answer = await Setting(broker.address).brokers.dial()
    assert not isinstance(answer, Denial)
    sock, address = answer
    assert type(sock) is socket.socket
    with sock:
        assert not sock.getblocking()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getpeername() == address.pair == broker.address.pair
        with pytest.raises(BlockingIOError):
            sock.recv(1)


async def test_a_connection_to_this_machine_is_made_at_once(broker: FakeBroker) -> None:
    sock, connected = start_connecting(broker.address)
    with sock:
        assert connected
        assert sock.getpeername() == broker.address.pair


async def test_a_pending_connection_is_awaited(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pending(address: Address, _buffer: int | None = None) -> tuple[socket.socket, bool]:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(address.pair)
        return sock, False

    setting = Setting(broker.address)
    with monkeypatch.context() as patch:
        patch.setattr(health, "start_connecting", pending)
        await dialled(setting.brokers)
        broker.stop()
        await denied(setting.brokers)
    assert setting.happened == ["broker_up", "broker_down"]


async def test_the_kernel_buffers_have_the_configured_size(broker: FakeBroker) -> None:
    sock, _ = start_connecting(broker.address, 64 * 1024)
    with sock:
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            # Linux doubles the size, for its own bookkeeping.
            assert sock.getsockopt(socket.SOL_SOCKET, option) in (64 * 1024, 128 * 1024)


async def test_dials_rotate_between_brokers(broker: FakeBroker, other_broker: FakeBroker) -> None:
    setting = Setting(broker.address, other_broker.address)
    for _ in range(10):
        await dialled(setting.brokers)
    assert broker.connections() == other_broker.connections() == 5


async def test_a_dead_broker_is_skipped(broker: FakeBroker, other_broker: FakeBroker) -> None:
    setting = Setting(broker.address, other_broker.address)
    broker.stop()
    for _ in range(4):
        assert await dialled(setting.brokers) == other_broker.address
    assert sorted(setting.happened) == ["broker_down", "broker_up"]


async def test_dial_returns_the_configured_host_name(broker: FakeBroker) -> None:
    named = Address("broker.svc", broker.address.port)
    setting = Setting(named)
    setting.ips["broker.svc"] = ["127.0.0.1"]
    assert await dialled(setting.brokers) == named


async def test_a_denial_without_any_reachable_broker_contains_no_address(
    broker: FakeBroker,
) -> None:
    setting = Setting(broker.address, Address("nowhere.svc", 6650))
    broker.stop()
    denial = await denied(setting.brokers)
    assert denial == Denial(Refusal.NOT_READY, 'no broker of cluster "main" is reachable')
    assert not setting.ready()
    assert setting.failed == {Failure.REFUSED: 1, Failure.UNRESOLVED: 1}


async def test_brokers_that_are_down_are_still_tried(broker: FakeBroker) -> None:
    setting = Setting(broker.address)
    broker.stop()
    await denied(setting.brokers)
    broker.start()
    assert await dialled(setting.brokers) == broker.address
    assert setting.happened == ["broker_down", "broker_up"]


async def test_a_silent_broker_costs_one_attempt(
    black_hole: FakeBroker, broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address, black_hole.address)  # turn 1 begins with the second
    assert await dialled(setting.brokers) == broker.address
    assert trio.current_time() == pytest.approx(2.0, abs=0.1)
    assert setting.events[0][1]["error"] == "timed out"
    assert setting.failed == {Failure.TIMED_OUT: 1}


async def test_all_attempts_share_a_deadline(
    black_hole: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(Address("many.svc", black_hole.address.port))
    setting.ips["many.svc"] = [f"127.0.0.{last}" for last in range(1, 9)]
    assert (await denied(setting.brokers)).refusal is Refusal.NOT_READY
    assert trio.current_time() == pytest.approx(5.0, abs=0.1)
    assert setting.happened == ["broker_down"] * 2  # the third had no time left


async def test_a_shortened_attempt_does_not_mark_a_broker_down(
    black_hole: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(black_hole.address, timing=Timing(dial_timeout=1.0, attempt_timeout=2.0))
    await denied(setting.brokers)
    assert trio.current_time() == pytest.approx(1.0, abs=0.1)
    assert setting.happened == []


async def test_ipv6_is_dialled() -> None:
    broker = FakeBroker("::1")
    assert await dialled(Setting(broker.address).brokers) == broker.address
    broker.stop()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOMEM])
async def test_exhausted_resources_do_not_mark_a_broker_down(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def starved(address: Address, buffer: int | None) -> tuple[socket.socket, bool]:
        raise OSError(code, "no more of it")

    setting = Setting(broker.address)
    await dialled(setting.brokers)
    with monkeypatch.context() as patch:
        patch.setattr(health, "start_connecting", starved)
        for _ in range(3):
            await denied(setting.brokers)
    assert setting.ready()
    assert setting.happened == ["broker_up", "resources_exhausted"]
    assert setting.failed == {Failure.OWN: 3}
    await dialled(setting.brokers)
    assert setting.happened == ["broker_up", "resources_exhausted"]


async def test_a_silent_broker_is_tried_last_for_a_while(
    broker: FakeBroker, other_broker: FakeBroker
) -> None:
    setting = Setting(broker.address, other_broker.address)
    assert {await dialled(setting.brokers) for _ in range(2)} == {
        broker.address,
        other_broker.address,
    }
    for _ in range(2):
        with socket.create_connection(broker.address.pair) as sock:
            setting.brokers.unanswered(sock)
    for _ in range(4):
        assert await dialled(setting.brokers) == other_broker.address
    assert setting.happened == ["broker_up", "broker_up", "broker_silent"]
    assert setting.failed == {Failure.SILENT: 2}


async def test_a_silence_on_a_closed_connection_is_ignored(broker: FakeBroker) -> None:
    setting = Setting(broker.address)
    with socket.socket() as sock:
        setting.brokers.unanswered(sock)
    assert setting.happened == []


# -- connections that begin with a header --


def first_bytes(broker: FakeBroker) -> bytes:
    """Accept the next connection, and return what came on it until its end."""
    broker.socket.settimeout(60)
    accepted, _ = broker.socket.accept()
    with accepted:
        accepted.settimeout(60)
        return b"".join(iter(lambda: accepted.recv(65_536), b""))


async def test_a_connection_begins_with_the_header_of_its_client(broker: FakeBroker) -> None:
    setting = Setting(broker.address, header=b"nobody")
    for target in (None, broker.address):
        answer = await setting.brokers.dial(target, b"a client")
        assert not isinstance(answer, Denial)
        answer[0].send(b", and what follows")
        answer[0].close()
        assert first_bytes(broker) == b"a client, and what follows"


async def test_a_connection_for_no_client_says_so(broker: FakeBroker) -> None:
    await dialled(Setting(broker.address, header=b"nobody").brokers)
    assert first_bytes(broker) == b"nobody"


async def test_a_probe_is_for_no_client(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address, header=b"nobody")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(0.6)
        nursery.cancel_scope.cancel()
    assert setting.happened == ["broker_up"]
    assert first_bytes(broker) == b"nobody"


async def test_a_pending_connection_begins_with_its_header_too(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pending(address: Address, _buffer: int | None = None) -> tuple[socket.socket, bool]:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(address.pair)
        return sock, False

    monkeypatch.setattr(health, "start_connecting", pending)
    await dialled(Setting(broker.address, header=b"nobody").brokers)
    assert first_bytes(broker) == b"nobody"


async def test_a_header_larger_than_the_kernels_buffers_is_sent_whole(broker: FakeBroker) -> None:
    patient = Timing(dial_timeout=60.0, attempt_timeout=60.0)
    setting, header = Setting(broker.address, timing=patient), bytes(range(256)) * 40_000
    async with trio.open_nursery() as nursery:

        async def dial() -> None:
            answer = await setting.brokers.dial(None, header)
            assert not isinstance(answer, Denial)
            answer[0].close()

        nursery.start_soon(dial)
        assert await trio.to_thread.run_sync(first_bytes, broker) == header


async def test_a_broker_that_resets_while_it_is_told_of_a_client_is_down(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[socket.socket] = []

    def shut(address: Address, buffer: int | None = None) -> tuple[socket.socket, bool]:
        sock, connected = start_connecting(address, buffer)
        sock.shutdown(socket.SHUT_WR)
        opened.append(sock)
        return sock, connected

    monkeypatch.setattr(health, "start_connecting", shut)
    setting = Setting(broker.address, header=b"nobody")
    await denied(setting.brokers)
    assert setting.happened == ["broker_down"]
    assert [sock.fileno() for sock in opened] == [-1]


# -- dialling a target --


async def test_an_allowed_target_is_dialled(broker: FakeBroker, other_broker: FakeBroker) -> None:
    setting = Setting(broker.address, targets=TargetList(networks=["127.0.0.0/8"], ports=PORTS))
    assert await dialled(setting.brokers, other_broker.address) == other_broker.address
    assert broker.connections() == 0


PORTS = range(1, 65536)


async def test_a_target_is_allowed_by_name(broker: FakeBroker) -> None:
    setting = Setting(targets=TargetList(hosts=["*.svc"], ports=PORTS))
    setting.ips["broker-0.svc"] = ["127.0.0.1"]
    target = Address("broker-0.svc", broker.address.port)
    assert await dialled(setting.brokers, target) == target


async def test_a_target_that_is_not_listed_is_refused(broker: FakeBroker) -> None:
    setting = Setting(Address("broker.svc", 6650))
    setting.ips["elsewhere.svc"] = ["127.0.0.1"]
    assert await denied(setting.brokers, broker.address) is REFUSED
    assert await denied(setting.brokers, Address("elsewhere.svc", broker.address.port)) is REFUSED
    assert broker.connections() == 0
    assert setting.happened == ["target_refused"] * 2


async def test_a_name_is_refused_if_it_resolves_to_an_unlisted_address(broker: FakeBroker) -> None:
    setting = Setting(targets=TargetList(networks=["10.0.0.0/8"], ports=PORTS))
    setting.ips["rebound.svc"] = ["127.0.0.1"]
    assert await denied(setting.brokers, Address("rebound.svc", broker.address.port)) is REFUSED
    assert broker.connections() == 0


async def test_of_several_addresses_only_the_listed_ones_are_dialled(broker: FakeBroker) -> None:
    setting = Setting(targets=TargetList(networks=["127.0.0.2"], ports=PORTS))
    setting.ips["mixed.svc"] = ["127.0.0.1", "127.0.0.2"]  # nobody listens at the second
    denial = await denied(setting.brokers, Address("mixed.svc", broker.address.port))
    assert denial.refusal is Refusal.NOT_READY
    assert broker.connections() == 0


async def test_numbers_that_the_c_library_parses_as_addresses_are_checked(
    broker: FakeBroker,
) -> None:
    brokers = Brokers(
        "main", [], TargetList(networks=["10.0.0.0/8"], ports=PORTS), LearnedHosts(PULSAR)
    )
    for host in ["127.1", "2130706433", "0x7f000001", "localhost", "0"]:
        assert await denied(brokers, Address(host, broker.address.port)) is REFUSED
    assert broker.connections() == 0


async def test_the_denial_of_an_unreachable_target_contains_no_address(broker: FakeBroker) -> None:
    setting = Setting(broker.address)
    broker.stop()
    denial = await denied(setting.brokers, broker.address)
    assert denial == Denial(Refusal.NOT_READY, "the broker is not reachable")


async def test_a_target_that_does_not_resolve_is_not_reachable() -> None:
    setting = Setting(targets=TargetList(hosts=["*"], ports=PORTS))
    assert (await denied(setting.brokers, Address("gone.svc", 6650))).refusal is Refusal.NOT_READY


async def test_a_silent_target_times_out(
    black_hole: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(black_hole.address, timing=Timing(dial_timeout=2.0, attempt_timeout=2.0))
    denial = await denied(setting.brokers, black_hole.address)
    assert denial == Denial(Refusal.TIMEOUT, "the broker did not answer in time")


async def test_a_silent_name_server_times_out(autojump_clock: trio.testing.MockClock) -> None:
    async def silent(host: str) -> Sequence[str]:
        await trio.sleep_forever()

    timing = Timing(dial_timeout=2.0)
    targets = TargetList(["*"], [], [6650])
    brokers = Brokers("main", [], targets, LearnedHosts(PULSAR), timing, look_up=silent)
    assert (await denied(brokers, Address("a.svc", 6650))).refusal is Refusal.TIMEOUT


async def test_dialling_a_configured_broker_as_a_target_updates_its_health(
    broker: FakeBroker,
) -> None:
    setting = Setting(broker.address)
    await dialled(setting.brokers)
    broker.stop()
    await denied(setting.brokers, broker.address)
    assert not setting.ready()


async def test_dialled_hosts_are_learned(broker: FakeBroker) -> None:
    setting = Setting(
        Address("broker.svc", broker.address.port), targets=TargetList(hosts=["*"], ports=PORTS)
    )
    assert setting.learned.clean("broker.svc") == "broker"
    setting.ips = {"broker.svc": ["127.0.0.1"], "other.svc": ["127.0.0.1", "127.0.0.9"]}
    await dialled(setting.brokers)
    await dialled(setting.brokers, Address("other.svc", broker.address.port))
    assert setting.learned.clean("127.0.0.1 other.svc/127.0.0.9:8080") == "broker broker"


async def test_names_that_clients_invent_are_not_learned(broker: FakeBroker) -> None:
    setting = Setting(targets=TargetList(["broker-*.svc"], ["127.0.0.1/32"], PORTS))
    setting.ips = {"broker-1.svc": ["127.0.0.2"], "broker-2.svc": [], "other.svc": ["10.0.0.1"]}
    for host in ["broker-1.svc", "broker-2.svc", "broker-3.svc", "other.svc"]:
        await denied(setting.brokers, Address(host, broker.address.port))
    assert len(setting.learned) == 0


async def test_dialled_hosts_do_not_evict_hosts_that_brokers_named(
    broker: FakeBroker,
) -> None:
    setting = Setting(targets=TargetList(["broker-*.svc"], [], PORTS))
    setting.learned.learn("said.svc")
    for number in range(MOST_HOSTS + 1):
        setting.ips[f"broker-{number}.svc"] = ["127.0.0.1"]
        setting.learned.learn_dialled(f"broker-{number}.svc")
    await dialled(setting.brokers, Address("broker-0.svc", broker.address.port))
    assert setting.learned.clean("said.svc broker-0.svc") == "broker broker"


@pytest.mark.parametrize("target", [Address("elsewhere.svc", 6650), Address("broker.svc", 22)])
async def test_a_refused_target_is_not_looked_up(target: Address) -> None:
    setting = Setting(targets=TargetList(["broker.svc"], [], [6650]))
    assert await denied(setting.brokers, target) is REFUSED
    assert setting.asked == []
    assert setting.happened == ["target_refused"]


async def test_names_that_clients_invent_do_not_evict_configured_names() -> None:
    setting = Setting(Address("broker.svc", 1), targets=TargetList(["*"], [], PORTS))
    setting.ips["broker.svc"] = ["127.0.0.1"]
    await denied(setting.brokers)
    before = setting.asked.count("broker.svc")
    for number in range(MOST_NAMES + 1):
        setting.ips[f"{number}.svc"] = []
        await denied(setting.brokers, Address(f"{number}.svc", 1))
    assert await setting.brokers._target_ips("broker.svc") == ("127.0.0.1",)
    assert setting.asked.count("broker.svc") == before


# -- names that get another address --


@contextlib.contextmanager
def moved(setting: Setting, name: str = "broker.svc") -> Iterator[FakeBroker]:
    """Have a broker listen at another address, which its name has from now on."""
    broker = FakeBroker("127.0.0.5")
    broker.stop()
    broker.socket = socket.create_server(("127.0.0.5", setting_port(setting)))
    setting.ips[name] = ["127.0.0.5"]
    yield broker
    broker.stop()


def setting_port(setting: Setting) -> int:
    return setting.brokers._addresses[0].port


async def test_a_broker_with_a_new_address_is_found_by_the_next_dial(broker: FakeBroker) -> None:
    setting = Setting(Address("broker.svc", broker.address.port))
    setting.ips["broker.svc"] = [broker.address.host]
    await dialled(setting.brokers)
    broker.stop()
    await trio.sleep(RENEWED_AFTER)
    with moved(setting) as again:
        await dialled(setting.brokers)
        assert again.connections() == 1
        await dialled(setting.brokers)
    assert setting.asked == ["broker.svc"] * 2


async def test_a_target_with_a_new_address_is_found_by_the_next_dial(broker: FakeBroker) -> None:
    """As Kafka's and TubeMQ's nodes are dialled, by the names that brokers tell."""
    named = Address("broker.svc", broker.address.port)
    targets = TargetList(["broker.svc"], [], [named.port])
    setting = Setting(Address("first.svc", named.port), targets=targets)
    setting.ips["broker.svc"] = [broker.address.host]
    assert await dialled(setting.brokers, named) == named
    broker.stop()
    await trio.sleep(RENEWED_AFTER)
    with moved(setting) as again:
        assert await dialled(setting.brokers, named) == named
        assert again.connections() == 1
    assert setting.asked == ["broker.svc"] * 2


async def test_a_new_address_is_checked_like_the_first(broker: FakeBroker) -> None:
    named = Address("broker.svc", broker.address.port)
    targets = TargetList([], ["127.0.0.1/32"], [named.port])
    setting = Setting(Address("first.svc", named.port), targets=targets)
    setting.ips["broker.svc"] = [broker.address.host]
    await dialled(setting.brokers, named)
    broker.stop()
    await trio.sleep(RENEWED_AFTER)
    with moved(setting) as again:
        assert await denied(setting.brokers, named) is REFUSED
        assert again.connections() == 0


async def test_a_probe_that_fails_brings_a_look_up(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(Address("broker.svc", broker.address.port))
    setting.ips["broker.svc"] = [broker.address.host]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await until(setting.ready)
        broker.stop()
        with moved(setting):
            began = trio.current_time()
            await until(lambda: not setting.ready())
            await until(setting.ready)
            found = trio.current_time() - began
        nursery.cancel_scope.cancel()
    assert found < TIMING.probe_interval + 3 * TIMING.resolve_retry


async def test_a_silent_name_server_delays_nobody_whose_broker_is_back(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(Address("broker.svc", broker.address.port))
    setting.ips["broker.svc"] = [broker.address.host]
    await dialled(setting.brokers)
    broker.stop()
    await denied(setting.brokers)
    broker.start()
    setting.is_silent = True
    began = trio.current_time()
    await dialled(setting.brokers)
    assert trio.current_time() - began < 1.0


async def test_a_broker_that_stays_away_is_looked_up_now_and_then(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(Address("broker.svc", broker.address.port))
    setting.ips["broker.svc"] = [broker.address.host]
    broker.stop()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert 20 < len(setting.asked) < 40


# -- sockets --


@contextlib.contextmanager
def no_socket_left_open() -> Iterator[None]:
    gc.collect()  # sockets that earlier tests left do not count
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(each.message) for each in caught] == []


async def test_a_cancelled_dial_leaves_no_socket(
    black_hole: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    with no_socket_left_open(), trio.move_on_after(0.5) as scope:
        await connect(black_hole.address)
    assert scope.cancelled_caught


async def test_a_refused_dial_leaves_no_socket(broker: FakeBroker) -> None:
    broker.stop()
    with no_socket_left_open(), pytest.raises(ConnectionRefusedError):
        await connect(broker.address)


async def test_an_impossible_dial_leaves_no_socket() -> None:
    with no_socket_left_open(), pytest.raises(OverflowError):
        await connect(Address("127.0.0.1", 70_000))


# -- watching --


async def test_ready_after_the_first_probe(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        assert not setting.ready()
        await trio.sleep(0.6)
        assert setting.ready()
        nursery.cancel_scope.cancel()
    assert setting.happened == ["broker_up"]


async def test_a_broker_that_stops_and_returns_is_noticed(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(1.0)
        broker.stop()
        await trio.sleep(12.0)
        assert not setting.ready()
        broker.start()
        await trio.sleep(31.0)
        assert setting.ready()
        nursery.cancel_scope.cancel()
    assert setting.happened == ["broker_up", "broker_down", "broker_up"]


async def test_healthy_brokers_are_probed_unless_they_are_dialled(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(35.0)
        assert broker.connections() in (3, 4)
        for _ in range(35):
            await dialled(setting.brokers)
            await trio.sleep(1.0)
        assert broker.connections() == 35
        nursery.cancel_scope.cancel()


async def test_names_are_resolved_again(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(Address("broker.svc", broker.address.port))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(1.0)
        assert setting.brokers.statistics() == ()
        setting.ips["broker.svc"] = ["127.0.0.1"]
        await trio.sleep(2.5)
        assert setting.ready()
        setting.ips["broker.svc"] = ["127.0.0.2", "127.0.0.1"]
        await trio.sleep(31.0)
        hosts = [each.endpoint.address.host for each in setting.brokers.statistics()]
        assert hosts == ["127.0.0.2", "127.0.0.1"]
        del setting.ips["broker.svc"]
        await trio.sleep(70.0)
        assert len(setting.brokers.statistics()) == 2
        assert setting.ready()
        nursery.cancel_scope.cancel()
    assert setting.happened.count("name_unresolved") == 2


async def test_a_hanging_look_up_does_not_delay_others(
    broker: FakeBroker, autojump_clock: trio.testing.MockClock
) -> None:
    async def look_up(host: str) -> Sequence[str]:
        await trio.sleep(0.0 if host == "quick.svc" else 1000.0)
        return ["127.0.0.1"]

    addresses = [Address("slow.svc", 1), Address("quick.svc", broker.address.port)]
    brokers = Brokers("main", addresses, TargetList(), LearnedHosts(PULSAR), look_up=look_up)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(brokers.watch)
        await trio.sleep(1.1)
        assert brokers.ready
        nursery.cancel_scope.cancel()


async def test_look_up_uses_the_system_resolver() -> None:
    assert "127.0.0.1" in await health.look_up("localhost")


# -- brokers with TLS --


class SecureBroker(FakeBroker):
    """A broker with TLS, which keeps its connections. `header`: what it awaits before a handshake.
    `errors`: of handshakes that failed."""

    def __init__(self, side: ServerSide, header: bytes = b"") -> None:
        super().__init__()
        self.header = header
        self.socket.setblocking(False)
        self.side = side
        self.named = Address(NAME, self.address.port, tls=True)
        self.streams: list[TlsStream] = []
        self.errors: list[OSError] = []

    async def run(self) -> None:
        """Accept connections until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await trio.lowlevel.wait_readable(self.socket)
                sock = self.socket.accept()[0]
                sock.setblocking(False)
                nursery.start_soon(self._open, sock)

    async def _open(self, sock: socket.socket) -> None:
        await trio.lowlevel.wait_readable(sock)
        assert sock.recv(len(self.header)) == self.header
        stream = self.side.stream(sock)
        self.streams.append(stream)
        try:
            await shake(stream)
        except OSError as error:
            self.errors.append(error)

    def stop(self) -> None:
        """Close all sockets."""
        for stream in self.streams:
            stream.close()
        super().stop()


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Return an authority with a folder of its own."""
    return House(tmp_path)


@pytest.fixture
async def secure(house: House, nursery: trio.Nursery) -> AsyncIterator[SecureBroker]:
    """Return a running broker with TLS."""
    side = house.server(
        client_certificates=ClientCertificates.OPTIONAL, authorities=house.authorities
    )
    broker = SecureBroker(side)
    nursery.start_soon(broker.run)
    yield broker
    broker.stop()


def beside(
    secure: SecureBroker, tls: ClientSide | None, host: str = NAME, header: bytes = b""
) -> Setting:
    """Return brokers of which the one with TLS is configured, by this host."""
    setting = Setting(secure.named._replace(host=host), tls=tls, header=header)
    setting.ips[host] = ["127.0.0.1"]
    return setting


async def test_a_broker_with_tls_is_verified_by_the_name_that_is_configured(
    secure: SecureBroker, house: House
) -> None:
    pair = house.pair("gateway.example", file="shown")
    setting = beside(secure, house.client(pair=pair))
    answer = await setting.brokers.dial()
    assert not isinstance(answer, Denial)
    stream, named = answer
    assert named == secure.named
    assert has_records(stream)
    assert stream.certificate
    assert stream.getpeername() == secure.address.pair
    await trio.testing.wait_all_tasks_blocked()  # a broker's handshake ends after a client's
    (accepted,) = secure.streams
    assert accepted.server_name == NAME
    assert accepted.certificate
    assert setting.failed == {}
    stream.close()


async def test_the_header_comes_before_tls(house: House, nursery: trio.Nursery) -> None:
    secure = SecureBroker(house.server(), header=b"a client")
    nursery.start_soon(secure.run)
    setting = beside(secure, house.client())
    answer = await setting.brokers.dial(None, b"a client")
    assert not isinstance(answer, Denial)
    answer[0].close()
    assert [stream.server_name for stream in secure.streams] == [NAME]
    assert secure.errors == []
    secure.stop()


async def test_a_probe_with_tls_is_for_no_client(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    secure = SecureBroker(house.server(), header=b"nobody")
    nursery.start_soon(secure.run)
    setting = beside(secure, house.client(), header=b"nobody")
    async with trio.open_nursery() as watching:
        watching.start_soon(setting.brokers.watch)
        await trio.sleep(1)
        assert setting.ready()
        watching.cancel_scope.cancel()
    assert secure.errors == []
    secure.stop()


async def test_a_broker_with_another_name_is_down(secure: SecureBroker, house: House) -> None:
    setting = beside(secure, house.client(), "other.example")
    assert (await denied(setting.brokers)).refusal is Refusal.NOT_READY
    assert setting.failed == {Failure.TLS: 1}
    ((event, values),) = setting.events
    assert event == "broker_down"
    assert "Hostname mismatch" in str(values["error"])
    assert "other.example" in str(values["error"])


async def test_a_target_is_verified_by_the_name_that_is_asked_for(
    secure: SecureBroker, house: House
) -> None:
    other = secure.named._replace(host="other.example")
    targets = TargetList.of([secure.named, other])
    setting = Setting(secure.named, targets=targets, tls=house.client())
    setting.ips = {NAME: ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    assert await dialled(setting.brokers, secure.named) == secure.named
    assert setting.failed == {}
    assert (await denied(setting.brokers, other)).text == "the broker is not reachable"
    assert setting.failed == {Failure.TLS: 1}


async def test_a_broker_with_tls_is_no_target_without_tls_to_brokers(
    secure: SecureBroker, house: House
) -> None:
    setting = beside(secure, None)
    denial = await denied(setting.brokers, secure.named)
    assert denial.text == "the broker requires TLS, which is not configured"
    assert secure.streams == []
    assert setting.asked == []


async def test_a_broker_that_speaks_no_tls_is_down(house: House, nursery: trio.Nursery) -> None:
    listener = FakeBroker()
    setting = Setting(listener.address._replace(tls=True), tls=house.client())

    async def answer() -> None:
        listener.socket.setblocking(False)
        await trio.lowlevel.wait_readable(listener.socket)
        sock, _ = listener.socket.accept()
        with sock:
            sock.send(b"what is this?")
            await trio.lowlevel.wait_readable(sock)

    nursery.start_soon(answer)
    assert (await denied(setting.brokers)).refusal is Refusal.NOT_READY
    assert setting.failed == {Failure.TLS: 1}
    assert setting.events[0][1]["error"] == "wrong version number"
    listener.stop()


async def test_a_handshake_that_takes_too_long_times_out(
    broker: FakeBroker, house: House, autojump_clock: trio.testing.MockClock
) -> None:
    setting = Setting(broker.address._replace(tls=True), tls=house.client())
    began = trio.current_time()
    assert (await denied(setting.brokers)).refusal is Refusal.NOT_READY
    assert trio.current_time() - began == pytest.approx(TIMING.attempt_timeout, abs=0.5)
    assert setting.failed == {Failure.TIMED_OUT: 1}


async def test_a_handshake_that_is_cancelled_leaves_nothing_open(
    broker: FakeBroker, house: House
) -> None:
    setting = Setting(broker.address._replace(tls=True), tls=house.client())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.dial)
        await trio.lowlevel.wait_readable(broker.socket)
        accepted, _ = broker.socket.accept()
        await trio.lowlevel.wait_readable(accepted)
        nursery.cancel_scope.cancel()
    with accepted:
        accepted.setblocking(False)
        while accepted.recv(1 << 16):
            pass  # the hello; then the end, and no BlockingIOError


async def test_a_probe_makes_the_handshake(
    secure: SecureBroker, house: House, autojump_clock: trio.testing.MockClock
) -> None:
    setting = beside(secure, house.client())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(1)
        assert setting.ready()
        assert secure.errors == []
        assert [stream.server_name for stream in secure.streams] == [NAME]
        nursery.cancel_scope.cancel()


async def test_a_probe_finds_a_broker_that_cannot_be_verified(
    secure: SecureBroker, house: House, autojump_clock: trio.testing.MockClock
) -> None:
    setting = beside(secure, house.client(), "other.example")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(setting.brokers.watch)
        await trio.sleep(1)
        assert not setting.ready()
        assert setting.happened == ["broker_down"]
        nursery.cancel_scope.cancel()
    assert setting.failed[Failure.TLS] > 0
