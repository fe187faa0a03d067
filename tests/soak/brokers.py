"""Brokers for thousands of connections, in a thread or a process of their own.

    python -m tests.soak.brokers 127.0.0.2:7000,127.0.0.3:7000

They answer as brokers do, except for some special names: see `WRONG`, `ELSEWHERE`, `TAKEN`.
"""

from __future__ import annotations

import os
import queue
import selectors
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)
from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import CONNECTED, Wire, respond
from tests.hostile.process import CHECKOUT, until
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn
from tests.support.frames import simple

WRONG = b"wrong"
"""A credential that is refused."""

ELSEWHERE = "elsewhere"
"""The next broker has the topics with this in their name."""

TAKEN = "persistent://public/default/taken"
"""A connection that opens a producer or consumer on this topic is handed to `Brokers.taken`."""

_REFUSED = simple(
    Kind.ERROR, request_id=0, error=ServerError.AuthenticationError, message="who is that"
)


class Visitor(Wire):
    """One connection at the broker. Never blocks."""

    def __init__(self, sock: socket.socket, brokers: Brokers, here: int) -> None:
        super().__init__(sock)
        sock.setblocking(False)
        self._brokers = brokers
        self._here = here
        self._received = b""

    def readable(self) -> None:
        """Answer everything received."""
        try:
            data = self.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._brokers.leave(self)
            self.sock.close()
            return
        self._received += data
        for command in self._commands():
            self._answer(command)

    def _commands(self) -> Iterator[BaseCommand]:
        while len(self._received) >= 8:
            total, size = struct.unpack_from(">II", self._received)
            if len(self._received) < total + 4:
                return
            frame, self._received = self._received[: total + 4], self._received[total + 4 :]
            yield BaseCommand.FromString(frame[8 : 8 + size])

    def _answer(self, command: BaseCommand) -> None:
        if command.type == BaseCommand.CONNECT:
            self.say(_REFUSED if command.connect.auth_data == WRONG else CONNECTED)
        elif command.type == BaseCommand.LOOKUP:
            self.say(self._found(command.lookupTopic))
        else:
            respond(self, command)
            if TAKEN in (command.producer.topic, command.subscribe.topic):
                self._brokers.leave(self)
                self._brokers.taken.put(self.sock)

    def _found(self, lookup: CommandLookupTopic) -> bytes:
        there = ELSEWHERE in lookup.topic and not lookup.authoritative
        answered = CommandLookupTopicResponse
        return simple(
            Kind.LOOKUP_RESPONSE,
            request_id=lookup.request_id,
            response=answered.Redirect if there else answered.Connect,
            brokerServiceUrl=f"pulsar://{self._brokers.address(self._here + there)}",
            authoritative=True,
        )


class Brokers:
    """All brokers of a cluster. `run` serves them until `stop`."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self.taken = queue.SimpleQueue[socket.socket]()
        self._selector = selectors.EpollSelector()
        self._over, self._signal = socket.socketpair()
        self._selector.register(self._over, selectors.EVENT_READ)
        for number, address in enumerate(addresses):
            host, _, port = address.rpartition(":")
            listener = socket.create_server((host, int(port)), backlog=4096)
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, number)

    def address(self, number: int) -> str:
        return self.addresses[number % len(self.addresses)]

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if isinstance(key.data, Visitor):
                    key.data.readable()
                elif key.fileobj is self._over:
                    return
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._accept(key.fileobj, key.data)

    def _accept(self, listener: socket.socket, number: int) -> None:
        with suppress(BlockingIOError):
            for _ in range(64):
                visitor = Visitor(listener.accept()[0], self, number)
                self._selector.register(visitor.sock, selectors.EVENT_READ, visitor)

    def leave(self, visitor: Visitor) -> None:
        """Stop serving a connection."""
        self._selector.unregister(visitor.sock)

    def stop(self) -> None:
        """Stop `run`, from another thread."""
        self._signal.close()

    def close(self) -> None:
        """Close all sockets."""
        for key in tuple(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()


def _addresses(count: int) -> list[str]:
    """Return addresses, each on a host of its own: the client ports of each host are counted
    separately."""
    return [f"127.0.0.{2 + n}:{free_ports(f'127.0.0.{2 + n}', 1)[0]}" for n in range(count)]


@contextmanager
def in_thread(count: int = 1) -> Iterator[Brokers]:
    """Yield brokers that run in this process."""
    brokers = Brokers(_addresses(count))
    thread = threading.Thread(target=brokers.run, daemon=True)
    thread.start()
    try:
        yield brokers
    finally:
        brokers.stop()
        thread.join()
        brokers.close()


@contextmanager
def in_process(folder: Path, count: int) -> Iterator[list[str]]:
    """Yield the addresses of brokers in a process of their own, with its own descriptors."""
    addresses = _addresses(count)
    command = [sys.executable, "-m", "tests.soak.brokers", ",".join(addresses)]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    process = spawn(command, folder / "brokers.log", environment)
    try:
        assert until(lambda: all(map(_listens, addresses))), "the brokers do not listen"
        yield addresses
    finally:
        end(process, 0, signal.SIGKILL)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


if __name__ == "__main__":
    Brokers(sys.argv[1].split(",")).run()
