from __future__ import annotations

import contextlib
import errno
import gc
import socket
import warnings
from collections.abc import Iterator, Sequence

import pytest
import trio
import trio.testing

from gateway.brokers import health
from gateway.brokers.health import Brokers, Failure, Timing, connect, start_connecting
from gateway.brokers.learned import MOST_HOSTS, LearnedHosts
from gateway.brokers.resolver import MOST_NAMES
from gateway.brokers.targets import REFUSED, TargetList
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR

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
        self, *addresses: Address, targets: TargetList | None = None, timing: Timing = TIMING
    ) -> None:
        self.ips: dict[str, list[str]] = {}
        self.asked: list[str] = []  # hosts that the name server was asked for
        self.events: list[tuple[str, dict[str, object]]] = []
        self.learned = LearnedHosts(PULSAR)
        self.brokers = Brokers(
            "main",
            addresses,
            targets or TargetList.of(addresses),
            self.learned,
            timing,
            look_up=self.look_up,
            log=self.log,
        )

    async def look_up(self, host: str) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
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


# -- dialling any broker --


async def test_dial_returns_a_plain_non_blocking_socket(broker: FakeBroker) -> None:
    answer = await Setting(broker.address).brokers.dial()
    assert not isinstance(answer, Denial)
    sock, address = answer
    with sock:
        assert type(sock) is socket.socket
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
    for number in range(MOST_NAMES + 1):
        setting.ips[f"{number}.svc"] = []
        await denied(setting.brokers, Address(f"{number}.svc", 1))
    await denied(setting.brokers, Address("broker.svc", 1))
    assert setting.asked.count("broker.svc") == 1


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
