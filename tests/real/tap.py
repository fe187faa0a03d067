"""A recording relay between a client and whatever it talks to, to see that no broker shows through.

It keeps every byte that went to the client. Afterwards the recording is read frame by frame,
and everything but the payloads of messages (which belong to the users) is searched for the
broker's traces.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from .frames import Kind, decode, frames, without_payload

READ_SIZE = 256 * 1024
DIAL_SECONDS = 5
JOIN_SECONDS = 5
CONTEXT = 40  # bytes shown on both sides of a find


@dataclass(frozen=True)
class Leak:
    """A trace of a broker that a client could read."""

    trace: str
    around: bytes

    def __str__(self) -> str:
        return f"{self.trace!r} in {self.around!r}"


def leaks(recording: bytes, traces: tuple[str, ...]) -> list[Leak]:
    """Every trace in the frames of one connection, payloads of messages aside."""
    return [leak for body in frames(recording) for leak in _find(without_payload(body), traces)]


def _find(exposed: bytes, traces: tuple[str, ...]) -> Iterator[Leak]:
    for trace in traces:
        at = exposed.find(trace.encode())
        if at >= 0:
            yield Leak(trace, exposed[max(0, at - CONTEXT) : at + CONTEXT])


class Tap:
    """Listens on a free port of 127.0.0.1 and relays each connection to `upstream`, a URL of the
    form pulsar://host:port.
    """

    def __init__(self, upstream: str) -> None:
        where = urlsplit(upstream)
        assert where.hostname
        assert where.port
        self._upstream = (where.hostname, where.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"pulsar://127.0.0.1:{self._listener.getsockname()[1]}"
        self.recordings: list[bytearray] = []  # one for each connection, in order of arrival
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        self._run(self._accept)

    def close(self) -> None:
        """Ends all connections; the recordings are complete when this returns."""
        with self._lock:
            self._closed = True
            for end in self._sockets:
                _shut(end, socket.SHUT_RDWR)
        # Wakes the accepting thread; closing alone does not.
        _shut(self._listener, socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(JOIN_SECONDS)
        for end in (self._listener, *self._sockets):
            end.close()

    def leaks(self, traces: tuple[str, ...]) -> list[Leak]:
        return [leak for recording in self.recordings for leak in leaks(bytes(recording), traces)]

    def commands(self, kind: Kind) -> list[dict[int, int | bytes]]:
        """The fields of all commands of one kind that went to clients."""
        found = (
            decode(body[4 : 4 + int.from_bytes(body[:4])])
            for recording in self.recordings
            for body in frames(bytes(recording))
            if len(body) >= 4 + int.from_bytes(body[:4])
        )
        inner = (command[kind] for command in found if command[1] == kind)
        return [decode(fields) for fields in inner if isinstance(fields, bytes)]

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                self._pair(self._listener.accept()[0])

    def _pair(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._upstream, DIAL_SECONDS)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with self._lock:
            self._sockets += [client, server]
            if self._closed:
                return
            self.recordings.append(bytearray())
            recording = self.recordings[-1]
        self._run(_pump, client, server, None)
        self._run(_pump, server, client, recording)

    def _run(self, target: object, *arguments: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True, name="tap")
        self._threads.append(thread)
        thread.start()


def _pump(source: socket.socket, sink: socket.socket, recording: bytearray | None) -> None:
    """Copies until either end is gone, and passes the end of the stream on."""
    with suppress(OSError):
        while chunk := source.recv(READ_SIZE):
            if recording is not None:
                recording += chunk
            sink.sendall(chunk)
    _shut(sink, socket.SHUT_WR)
    _shut(source, socket.SHUT_RD)


def _shut(end: socket.socket, how: int) -> None:
    with suppress(OSError):
        end.shutdown(how)
