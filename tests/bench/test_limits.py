"""The proxies that show what any could reach: they pass on bytes, ends and resets."""

import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from tests.bench.limits import SOURCE, TUNED, nginx, relays, trio
from tests.bench.load import compiled
from tests.bench.machine import ANY, Cores
from tests.bench.proxies import HOST, Recipe, haproxy, running
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports

PATIENCE = 20.0
"""Seconds for what takes milliseconds on a machine that does nothing else."""

MUCH = bytes(range(251)) * 40_000
"""10 MB: more than sockets, buffers and pipes hold, so that writes are short."""

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: to close is to reset."""

ROOM = 50
"""Connections that a proxy takes."""


@dataclass
class Pair:
    """Both ends of one connection by way of a proxy."""

    client: socket.socket
    broker: socket.socket

    def end(self, name: str) -> socket.socket:
        found = getattr(self, name)
        assert isinstance(found, socket.socket)
        return found


class Broker:
    """What a proxy dials."""

    def __init__(self) -> None:
        self.listener = socket.create_server((HOST, 0))
        self.listener.settimeout(PATIENCE)
        self.address = "{}:{}".format(*self.listener.getsockname())

    def pair(self, target: str, stack: ExitStack) -> Pair:
        host, _, port = target.partition(":")
        client = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
        broker, _ = self.listener.accept()
        broker.settimeout(PATIENCE)
        return Pair(client, stack.enter_context(broker))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture(params=["copy", "splice"])
def relay(request: pytest.FixtureRequest, tmp_path: Path, build: Path) -> Callable[[str], Recipe]:
    """Return what makes the recipe of a relay before a broker."""

    def made(broker: str) -> Recipe:
        try:
            found = relays(tmp_path, build, broker)
        except MissingToolError as missing:
            pytest.skip(str(missing))
        return next(it for it in found if it.command[-1] == request.param)

    return made


@pytest.fixture
def opened(relay: Callable[[str], Recipe]) -> Iterator[Callable[[], Pair]]:
    """Return what opens a connection by way of a relay."""
    broker = Broker()
    with ExitStack() as stack:
        stack.enter_context(broker.listener)
        proxy = stack.enter_context(running(relay(broker.address), Cores(ANY, ANY)))
        # Whoever waits for a port connects to it, and goes away.
        broker.listener.accept()[0].close()
        yield lambda: broker.pair(proxy.target(), stack)


def received(source: socket.socket, size: int) -> bytes:
    """Return that many bytes, or fewer where the connection ends before."""
    found = bytearray()
    while len(found) < size and (data := source.recv(min(1 << 16, size - len(found)))):
        found += data
    return bytes(found)


def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    try:
        compiled(SOURCE, tmp_path / "relay", "-Wextra", "-Werror")
    except MissingToolError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    "arguments", ["9 copy", "9 127.0.0.1:0 copy", "9 localhost:9 copy", "9 127.0.0.1:9 other"]
)
def test_it_refuses_arguments_that_mean_nothing(build: Path, arguments: str) -> None:
    try:
        program = compiled(SOURCE, build / "relay", "-Wextra")
    except MissingToolError as missing:
        pytest.skip(str(missing))
    command = [str(program), *arguments.split()]
    done = subprocess.run(command, check=False, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 2


def test_bytes_pass_both_ways(opened: Callable[[], Pair]) -> None:
    one, other = opened(), opened()
    for pair, sent in (one, b"one"), (other, b"other"):
        pair.client.sendall(sent)
        assert pair.broker.recv(100) == sent
        pair.broker.sendall(sent[::-1])
        assert pair.client.recv(100) == sent[::-1]


@pytest.mark.parametrize(("source", "to"), [("client", "broker"), ("broker", "client")])
def test_much_passes_whole_to_who_reads_slowly(
    opened: Callable[[], Pair], source: str, to: str
) -> None:
    pair = opened()
    writes = Thread(target=pair.end(source).sendall, args=(MUCH,))
    writes.start()
    assert received(pair.end(to), len(MUCH)) == MUCH
    writes.join(PATIENCE)


def test_much_passes_both_ways_at_once(opened: Callable[[], Pair]) -> None:
    pair = opened()
    writes = [Thread(target=it.sendall, args=(MUCH,)) for it in (pair.client, pair.broker)]
    got: list[bytes] = []
    reads = Thread(target=lambda: got.append(received(pair.client, len(MUCH))))
    for thread in (*writes, reads):
        thread.start()
    assert received(pair.broker, len(MUCH)) == MUCH
    for thread in (*writes, reads):
        thread.join(PATIENCE)
    assert got == [MUCH]


@pytest.mark.parametrize(("first", "second"), [("client", "broker"), ("broker", "client")])
def test_the_end_of_one_direction_leaves_the_other_open(
    opened: Callable[[], Pair], first: str, second: str
) -> None:
    pair = opened()
    one, other = pair.end(first), pair.end(second)
    one.sendall(b"the last")
    one.shutdown(socket.SHUT_WR)
    assert received(other, 100) == b"the last"
    writes = Thread(target=other.sendall, args=(MUCH,))
    writes.start()
    assert received(one, len(MUCH)) == MUCH
    writes.join(PATIENCE)
    other.close()
    assert one.recv(1) == b""


def test_an_end_comes_behind_all_that_waits(opened: Callable[[], Pair]) -> None:
    """The broker ends while the client's bytes do not fit into it: they all come."""
    pair = opened()
    pair.broker.shutdown(socket.SHUT_WR)
    assert pair.client.recv(1) == b""

    def write() -> None:
        pair.client.sendall(MUCH)
        pair.client.shutdown(socket.SHUT_WR)

    writes = Thread(target=write)
    writes.start()
    assert received(pair.broker, len(MUCH) + 1) == MUCH
    writes.join(PATIENCE)


@pytest.mark.parametrize(("first", "second"), [("client", "broker"), ("broker", "client")])
def test_a_reset_of_one_side_resets_the_other(
    opened: Callable[[], Pair], first: str, second: str
) -> None:
    pair, lasting = opened(), opened()
    pair.end(first).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    pair.end(first).close()
    with pytest.raises(ConnectionResetError):
        pair.end(second).recv(1)
    lasting.client.sendall(b"still here")
    assert lasting.broker.recv(100) == b"still here"


@pytest.mark.parametrize(("first", "second"), [("client", "broker"), ("broker", "client")])
def test_a_reset_ends_a_side_whose_bytes_wait(
    opened: Callable[[], Pair], first: str, second: str
) -> None:
    pair = opened()
    pair.end(second).setblocking(False)
    with suppress(BlockingIOError):
        while True:
            pair.end(second).send(MUCH)
    pair.end(first).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    pair.end(first).close()
    pair.end(second).settimeout(PATIENCE)
    with pytest.raises(ConnectionResetError):
        pair.end(second).recv(1)


def test_a_client_is_let_go_where_no_broker_listens(
    relay: Callable[[str], Recipe],
) -> None:
    (port,) = free_ports(HOST, 1)
    with (
        running(relay(f"{HOST}:{port}"), Cores(ANY, ANY)) as proxy,
        pytest.raises(ConnectionResetError),  # at once, or when it reads
        socket.create_connection((HOST, proxy.recipe.port), PATIENCE) as client,
    ):
        client.recv(1)


def tuned_haproxy(folder: Path, broker: str) -> Recipe:
    return haproxy(folder, broker, ROOM, {}, "HAProxy, tuned", TUNED)


def one_worker_of_nginx(folder: Path, broker: str) -> Recipe:
    return nginx(folder, broker, ROOM)


def bare_trio(folder: Path, broker: str) -> Recipe:
    return trio(folder, broker, {})


@pytest.mark.parametrize("make", [tuned_haproxy, one_worker_of_nginx, bare_trio])
def test_another_proxy_starts_and_passes_bytes(
    make: Callable[[Path, str], Recipe], tmp_path: Path
) -> None:
    broker = Broker()
    with ExitStack() as stack:
        stack.enter_context(broker.listener)
        try:
            recipe = make(tmp_path, broker.address)
        except MissingToolError as missing:
            pytest.skip(str(missing))
        proxy = stack.enter_context(running(recipe, Cores(ANY, ANY)))
        assert len(proxy.pids) == 1
        client = stack.enter_context(socket.create_connection((HOST, proxy.recipe.port), PATIENCE))
        client.sendall(b"through")
        # One that came before may have been whoever waited for the port.
        assert any(passed(broker.listener) == b"through" for _ in range(2))


def passed(listener: socket.socket) -> bytes:
    """Return what the next connection brings, empty where it ends at once."""
    with listener.accept()[0] as broker:
        broker.settimeout(PATIENCE)
        try:
            return broker.recv(100)
        except ConnectionResetError:
            return b""
