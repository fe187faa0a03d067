"""A recording relay in front of a client, which checks that no broker is visible to it.

It keeps every byte sent to the client. At the end it reads the recording frame by frame, and
searches everything but the payloads of messages (which belong to the users) for the broker's traces
in all their spellings, and for all URLs that are not the gateway's own.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import AddressValueError, IPv4Address
from urllib.parse import urlsplit

from tests.support.relay import relay, shut

from .frames import Kind, decode, frames, without_payload

DIAL_SECONDS = 5
JOIN_SECONDS = 5
CONTEXT = 40  # bytes shown on both sides of a find
# For all connections of one test. The largest tests today record 30 MiB, in messages of 9 MiB.
MOST_RECORDED = 128 * 1024 * 1024

URL = re.compile(rb"(?:pulsar(?:\+ssl)?|https?)://[\w.:%\[\]-]*", re.IGNORECASE)
# Sealed names, readable ones of a test, gateways, and the replacement in a cleaned text.
OURS = re.compile(
    rb"pulsar://(?:[\w.-]+\.(?:gw|example):6650|127\.0\.0\.1:\d)|[\w+]+://broker(?![\w.-])"
)


@dataclass(frozen=True)
class Leak:
    """A trace of a broker that a client could read."""

    trace: str
    around: bytes

    def __str__(self) -> str:
        return f"{self.trace!r} in {self.around!r}"


def leaks(recording: bytes, traces: tuple[str, ...], *, payloads: bool = False) -> list[Leak]:
    """Return the traces of brokers in the frames of one connection; in the payloads of messages
    only on request."""
    exposed = (body if payloads else without_payload(body) for body in frames(recording))
    return [leak for part in exposed for leak in (*_traces(part, traces), *_urls(part))]


def _traces(exposed: bytes, traces: tuple[str, ...]) -> Iterator[Leak]:
    for trace in traces:
        found = (exposed.lower().find(spelling) for spelling in spellings(trace))
        at = next((at for at in (*found, exposed.find(packed(trace))) if at >= 0), -1)
        if at >= 0:
            yield _leak(trace, exposed, at)


def _urls(exposed: bytes) -> Iterator[Leak]:
    for url in URL.finditer(exposed):
        if not OURS.match(url[0]):
            yield _leak(url[0].decode(errors="replace"), exposed, url.start())


def _leak(trace: str, exposed: bytes, at: int) -> Leak:
    return Leak(trace, exposed[max(0, at - CONTEXT) : at + CONTEXT])


@cache
def spellings(trace: str) -> tuple[bytes, ...]:
    """Return a trace in lower case, and its other spellings. All forms that Java makes of an
    address (`/10.0.0.1:6650`, `name/10.0.0.1:6650`, `::ffff:10.0.0.1`) contain it unchanged. The
    others are its hexadecimal digits, their form in IPv6, and host names made from addresses."""
    try:
        digits = IPv4Address(trace).packed.hex()
    except AddressValueError:
        return (trace.lower().encode(),)
    mapped = f"{int(digits[:4], 16):x}:{int(digits[4:], 16):x}"
    dashed = trace.replace(".", "-")
    return tuple(text.encode() for text in (trace, digits, mapped, dashed))


@cache
def packed(trace: str) -> bytes:
    """Return an address in its four bytes; of anything else the text."""
    try:
        return IPv4Address(trace).packed
    except AddressValueError:
        return trace.encode()


class Tap:
    """Listens on a free port of 127.0.0.1 and relays each connection to `upstream`, a URL of the
    form pulsar://host:port."""

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
        """End all connections; the recordings are complete when this returns."""
        with self._lock:
            self._closed = True
            for end in self._sockets:
                shut(end, socket.SHUT_RDWR)
        # Wakes the accepting thread; closing alone does not.
        shut(self._listener, socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(JOIN_SECONDS)
        for end in (self._listener, *self._sockets):
            end.close()

    def leaks(self, traces: tuple[str, ...], *, payloads: bool = False) -> list[Leak]:
        """Return the leaks of all connections, see the function `leaks`."""
        recorded = sum(map(len, self.recordings))
        assert recorded <= MOST_RECORDED, f"{recorded} bytes: search them as they come"
        found = (leaks(bytes(it), traces, payloads=payloads) for it in self.recordings)
        return [leak for of_one in found for leak in of_one]

    def commands(self, kind: Kind) -> list[dict[int, int | bytes]]:
        """Return the fields of all commands of one kind sent to clients."""
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
        self._run(relay, client, server)
        self._run(relay, server, client, recording.extend)

    def _run(self, target: object, *arguments: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True, name="tap")
        self._threads.append(thread)
        thread.start()


def traces_found(
    url: str, traces: tuple[str, ...], play: Callable[[str], None], *, payloads: bool = False
) -> set[str]:
    """Return what a tap in front of a URL finds of brokers while a scene is played at the tap's own
    URL."""
    tap = Tap(url)
    try:
        play(tap.url)
    finally:
        tap.close()
    return {leak.trace for leak in tap.leaks(traces, payloads=payloads)}
