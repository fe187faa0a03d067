"""The command line, as people and supervisors use it: texts, exit statuses, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from gateway import __version__
from gateway.__main__ import main
from gateway._pure import IMPLEMENTATION
from gateway.system.signals import AT_ONCE
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds after which something that should happen at once has not, on a busy machine too."""

WHOLE = """\
version: 1
listeners:
  - {{name: clients, bind: "127.0.0.1:{port}", cluster: main}}
clusters:
  main:
    brokers: "pulsar://127.0.0.1:{broker}"
    names: {{sealed: {{keys: [{{file: seal.key}}]}}}}
admin: {{bind: "127.0.0.1:{admin}"}}
deadlines: {{grace: 10m}}
workers: {workers}
log: {{format: json}}
"""

MISTAKEN = """\
version: 1
listeners:
  - {name: clients, bind: "127.0.0.1", cluster: mian}
clusters:
  main: {brokers: "pulsar://127.0.0.1"}
"""


class Writer:
    """Writes configurations, and the key that they name, into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.key(os.urandom(32))

    def key(self, content: bytes) -> None:
        (self._folder / "seal.key").write_bytes(content)

    def text(self, text: str) -> str:
        path = self._folder / "gateway.yaml"
        path.write_text(text)
        return str(path)

    def whole(self, *, port: int = 0, broker: int = 6650, admin: int = 0, workers: int = 1) -> str:
        return self.text(WHOLE.format(port=port, broker=broker, admin=admin, workers=workers))


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Whatever the command does to the process's logging is undone."""
    yield
    structlog.reset_defaults()


def completed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, to its end."""
    command = [sys.executable, "-m", "gateway", *arguments]
    return subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=PATIENCE
    )


# -- words -----------------------------------------------------------------------------------


@pytest.mark.tier("test")
def test_python_runs_the_package_as_the_command() -> None:
    done = completed("--version")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"gateway {__version__} ({IMPLEMENTATION})\n",
        "",
    )


def test_the_installed_command_is_the_same() -> None:
    (command,) = entry_points(group="console_scripts", name="gateway")
    assert command.load() is main


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param(["frobnicate"], id="no such command"),
        pytest.param(["check", "a.yaml", "b.yaml"], id="two files"),
        pytest.param(["check", "--trace", "a.yaml"], id="an option of another command"),
    ],
)
def test_a_wrong_command_line_is_explained(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("usage: gateway")


# -- check -----------------------------------------------------------------------------------


def test_check_finds_a_right_file_right(write: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    path = write.whole()
    assert main(["check", path]) == 0
    assert capsys.readouterr() == (f"{path}: ok (1 listener, 1 cluster)\n", "")


@pytest.mark.tier("test")
@pytest.mark.parametrize("command", ["check", "run"])
def test_all_mistakes_are_told_at_once(
    command: str, write: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write.text(MISTAKEN)
    assert main([command, path]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()
    assert first.startswith(f"{path}:3: listeners[0].bind: has no port; ")
    assert second == f"{path}:3: listeners[0].cluster: names no cluster; did you mean 'main'?"


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_file_that_is_not_there_is_a_mistake(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.yaml"
    assert main([command, str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{path}: cannot be read: no such file or directory; ")


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_key_file_that_holds_none_is_a_mistake(
    command: str, write: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    write.key(b"short")
    assert main([command, write.whole()]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "must hold 32 to 4096 bytes. Make one with: head -c 32 /dev/urandom > " in said.err


# -- run -------------------------------------------------------------------------------------


@pytest.mark.tier("test")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("server", ["port", "admin"])
def test_a_port_in_use_is_one_clear_line(server: str, workers: int, write: Writer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {server: port}
        done = completed("run", write.whole(**ports, workers=workers))
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"cannot listen on 127.0.0.1:{port}: address already in use; ")
    assert "Traceback" not in done.stderr


@dataclass
class Running:
    """A gateway that runs in front of a broker that says yes and then echoes what it is sent."""

    process: trio.Process
    port: int = 0
    admin: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    _received: bytes = b""

    async def until(self, event: str) -> dict[str, Any]:
        """Read the log up to this event."""
        while (told := await self._event()) is not None:
            if told["event"] == event:
                return told
        raise AssertionError(f"no {event!r} in {self.events}")

    async def all_listen(self, workers: int) -> None:
        """Read the log until so many have said so."""
        while [it["event"] for it in self.events].count("listening") < workers:
            assert await self._event() is not None

    async def ended(self) -> int:
        """Read the log to its end; answers the exit status."""
        while await self._event() is not None:
            pass
        return await self.process.wait()

    async def _event(self) -> dict[str, Any] | None:
        assert self.process.stderr is not None
        while b"\n" not in self._received:
            more = await self.process.stderr.receive_some()
            if not more:
                assert not self._received
                return None
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        self.events.append(json.loads(line))  # whatever is not a line of ours, fails here
        return self.events[-1]

    async def readiness(self) -> tuple[str, str]:
        """Status line and body of `/readyz`."""
        async with await trio.open_tcp_stream("127.0.0.1", self.admin) as stream:
            await stream.send_all(b"GET /readyz HTTP/1.0\r\n\r\n")
            answer = b"".join([data async for data in stream]).decode()
        return answer.splitlines()[0], answer.partition("\r\n\r\n")[2]

    async def connect(self) -> trio.SocketStream:
        """A client whose connection is open."""
        client = await trio.open_tcp_stream("127.0.0.1", self.port)
        await client.send_all(CONNECT)
        assert await received(client) == CONNECTED
        return client


def frame(kind: BaseCommand.Type.ValueType) -> bytes:
    """The smallest whole frame of a kind."""
    command = BaseCommand(type=kind)
    part = "lookupTopic" if kind == BaseCommand.LOOKUP else BaseCommand.Type.Name(kind).lower()
    getattr(command, part).SetInParent()
    if kind == BaseCommand.CONNECT:
        command.connect.client_version = "a test"
        command.connect.auth_method_name = "token"
        command.connect.auth_data = b"a.secret.token"
    if kind == BaseCommand.LOOKUP:
        command.lookupTopic.topic = "persistent://public/default/t"
        command.lookupTopic.request_id = 1
    if kind == BaseCommand.CONNECTED:
        command.connected.server_version = "a test"
    return encode(command)


CONNECT = frame(BaseCommand.CONNECT)
CONNECTED = frame(BaseCommand.CONNECTED)
LOOKUP = frame(BaseCommand.LOOKUP)
PING = frame(BaseCommand.PING)


async def received(stream: trio.SocketStream) -> bytes:
    """One whole frame."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
        more = await stream.receive_some()
        assert more, "the connection was closed"
        data += more
    return data


async def broker(stream: trio.SocketStream) -> None:
    """Probes say nothing; whoever says CONNECT is answered, and then hears itself."""
    with suppress(trio.BrokenResourceError):
        async with stream:
            if await stream.receive_some():
                await stream.send_all(CONNECTED)
                async for data in stream:
                    await stream.send_all(data)


@asynccontextmanager
async def running(write: Writer, *options: str, workers: int = 1) -> AsyncIterator[Running]:
    """A gateway that is ready; killed if it still runs at the end."""
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, host="127.0.0.1")
        (listener,) = await nursery.start(serve, broker, 0)
        path = write.whole(broker=listener.socket.getsockname()[1], workers=workers)
        command = [sys.executable, "-m", "gateway", "run", *options, path]
        process = await trio.lowlevel.open_process(command, cwd=ROOT, stderr=subprocess.PIPE)
        gateway = Running(process)
        try:
            with trio.fail_after(PATIENCE):
                gateway.admin = _port(await gateway.until("admin_listening"))
                gateway.port = _port(await gateway.until("listening"))
                await gateway.until("broker_up")
                yield gateway
        finally:
            if process.poll() is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
                assert process.stderr is not None
                await process.stderr.aclose()
        nursery.cancel_scope.cancel()


def _port(event: dict[str, Any]) -> int:
    (address,) = event["addresses"]
    return int(address.rpartition(":")[2])


each_size = pytest.mark.parametrize("workers", [1, 2])
"""One process, and a parent with several."""


@pytest.mark.tier("test")
@each_size
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_in_good_order(
    number: signal.Signals, workers: int, write: Writer
) -> None:
    async with running(write, workers=workers) as gateway:
        assert await gateway.readiness() == ("HTTP/1.1 200 ", "ready\n")
        gateway.process.send_signal(number)
        assert await gateway.ended() == 0
    own = [it["event"] for it in gateway.events if "worker" not in it]
    assert own[-2:] == ["stopping", "stopped"]
    assert gateway.events[-1]["event"] == "stopped"


async def asks_what_is_never_answered(client: trio.SocketStream) -> None:
    """The gateway keeps a connection for it until the grace is over."""
    await client.send_all(LOOKUP)
    assert await received(client) == LOOKUP


async def nobody_listens(gateway: Running) -> None:
    """Return as soon as it is so; each worker closes for itself."""
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", gateway.port)
        except OSError:
            return
        await stream.aclose()


@pytest.mark.tier("test")
@each_size
async def test_connections_that_nobody_uses_end_at_once(workers: int, write: Writer) -> None:
    async with running(write, workers=workers) as gateway, await gateway.connect() as client:
        gateway.process.send_signal(signal.SIGTERM)
        assert await client.receive_some() == b""
        assert await gateway.ended() == 0
    (end,) = [it for it in gateway.events if it["event"] == "connection_ended"]
    assert end["reason"] == "drained"


@pytest.mark.tier("test")
@each_size
async def test_open_connections_have_a_grace_in_which_it_is_not_ready(
    workers: int, write: Writer
) -> None:
    async with running(write, workers=workers) as gateway:
        async with await gateway.connect() as client:
            await asks_what_is_never_answered(client)
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.until("stopping")
            assert await gateway.readiness() == ("HTTP/1.1 503 ", "draining\n")
            await nobody_listens(gateway)
            await client.send_all(PING)
            assert await received(client) == PING
        assert await gateway.ended() == 0
    assert reasons(gateway)[-1] == "client_closed"


def reasons(gateway: Running) -> list[str]:
    """Why connections ended, in their order."""
    return [it["reason"] for it in gateway.events if it["event"] == "connection_ended"]


@pytest.mark.tier("test")
@each_size
async def test_a_second_signal_ends_the_grace(workers: int, write: Writer) -> None:
    async with running(write, workers=workers) as gateway, await gateway.connect() as client:
        await asks_what_is_never_answered(client)
        gateway.process.send_signal(signal.SIGTERM)
        await gateway.until("stopping")
        gateway.process.send_signal(signal.SIGTERM)
        assert await client.receive_some() == b""
        assert await gateway.ended() == 0
    (end,) = [it for it in gateway.events if it["event"] == "connection_ended"]
    assert end["reason"] == "drained"


@pytest.mark.tier("test")
@each_size
async def test_two_signals_at_once_are_no_other_end_than_one(workers: int, write: Writer) -> None:
    """As some senders do. The second may come when there is nothing left to be ended by it."""
    async with running(write, workers=workers) as gateway:
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            gateway.process.send_signal(number)
        assert await gateway.ended() == 0
    assert gateway.events[-1]["event"] == "stopped"


@pytest.mark.tier("test")
async def test_a_word_to_each_process_is_one_word(write: Writer) -> None:
    """As managers of services say it: systemd tells all processes of a service at once."""
    async with running(write, workers=2) as gateway:
        await gateway.all_listen(2)
        async with await gateway.connect() as client:
            await asks_what_is_never_answered(client)
            workers = [it["process"] for it in gateway.events if it["event"] == "worker_started"]
            for process in (*workers, gateway.process.pid):
                os.kill(process, signal.SIGTERM)
            while "worker" in await gateway.until("stopping"):
                pass
            assert await gateway.readiness() == ("HTTP/1.1 503 ", "draining\n")
            await client.send_all(PING)
            assert await received(client) == PING
        assert await gateway.ended() == 0
    (end,) = [it for it in gateway.events if it["event"] == "connection_ended"]
    assert end["reason"] == "client_closed"


@pytest.mark.tier("test")
async def test_a_worker_that_is_to_end_at_once_moves_nobody(write: Writer) -> None:
    """The word by which a parent passes on the second signal. Here nobody else was told."""
    async with running(write, workers=2) as gateway:
        await gateway.all_listen(2)
        async with await gateway.connect() as client:
            await asks_what_is_never_answered(client)
            workers = [it["process"] for it in gateway.events if it["event"] == "worker_started"]
            for process in workers:
                os.kill(process, AT_ONCE)
            assert await client.receive_some() == b""
        await gateway.until("worker_ended")
        await gateway.all_listen(4)
        gateway.process.send_signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert reasons(gateway) == ["drained"]


@pytest.mark.tier("test")
async def test_workers_say_which_they_are(write: Writer) -> None:
    async with running(write, workers=2) as gateway:
        await gateway.all_listen(2)
        gateway.process.send_signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    stopped = [it.get("worker") for it in gateway.events if it["event"] == "stopped"]
    assert stopped in ([1, 2, None], [2, 1, None])


@pytest.mark.tier("test")
@each_size
async def test_a_trace_has_the_frames_and_no_secret(workers: int, write: Writer) -> None:
    async with running(write, "--trace", workers=workers) as gateway:
        async with await gateway.connect() as client:
            await client.send_all(PING)
            assert await received(client) == PING
        gateway.process.send_signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    traced = [it for it in gateway.events if it["event"] == "frame"]
    assert [(it["direction"], it["frame"].split()[0], it["decision"]) for it in traced] == [
        ("to_broker", "CONNECT", "opening"),
        ("to_client", "CONNECTED", "opening"),
        ("to_broker", "PING", "pass"),
        ("to_client", "PING", "pass"),
    ]
    assert "secret" not in str(gateway.events)
