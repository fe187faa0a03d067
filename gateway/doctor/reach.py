"""The network under the tries: names, connections, one conversation on each. All is bounded.

Each step takes at most `patience` seconds, so a peer that does not answer cannot keep a person
waiting; the steps of different tries run at the same time.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeVar

import trio

from gateway.brokers.health import connect, look_up
from gateway.brokers.resolver import LookUp
from gateway.doctor.hello import (
    Answer,
    Oddity,
    Probe,
    Unreached,
    frame_length,
    greet,
    recognized,
)
from gateway.errors import PeerError
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled

T = TypeVar("T")

LONGEST_PATIENCE = 3.0
"""Seconds for one step. A lost SYN is sent again after 1 s, so this is enough for two; whoever
needs longer is not well."""

TLS_PATIENCE = 1.0
"""Seconds for the first record of a handshake: a server that speaks TLS has it ready."""

MOST_ADDRESSES = 16
"""Of one name. A name with more is a balancer's: what they say does not differ."""

LARGEST_ANSWER = 64 * 1024
"""Bytes of a frame. Answers to CONNECT and LOOKUP have some hundred."""

_UNSURE = frozenset({Oddity.CLOSED, Oddity.SILENT})
"""What a TLS server may do, too, when it hears something that is not TLS."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """`ips` in the order to try them, empty with `error`; `others`: how many more there are.
    `seconds` that it took.
    """

    ips: tuple[str, ...]
    seconds: float
    error: str = ""
    others: int = 0


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, and the seconds until the connection stood (0.0 where none did)."""

    answer: Answer
    seconds: float


def is_literal(host: str) -> bool:
    """Whether this is an IP address already."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Network:
    """Whatever the tries need of it. `patience`: seconds for one step."""

    patience: float = LONGEST_PATIENCE
    look_up: LookUp = look_up

    async def resolve(self, host: str) -> Resolved:
        """Ask for a host's addresses."""
        began = trio.current_time()
        ips, error = await self._resolved(host)
        seconds = trio.current_time() - began
        return Resolved(ips[:MOST_ADDRESSES], seconds, error, max(0, len(ips) - MOST_ADDRESSES))

    async def _resolved(self, host: str) -> tuple[tuple[str, ...], str]:
        if is_literal(host):
            return (host,), ""
        with trio.move_on_after(self.patience):
            try:
                return tuple(dict.fromkeys(await self.look_up(host))), ""
            except (OSError, UnicodeError) as error:
                return (), str(getattr(error, "strerror", None) or error).lower()
        return (), "the name server does not answer"

    async def connect(self, address: Address) -> socket.socket | Unreached:
        """A connection to an IP literal."""
        with trio.move_on_after(self.patience):
            try:
                return await connect(address)
            except OSError as error:
                return Unreached(error.errno or errno.EIO)
        return Unreached(None)

    async def greet(self, address: Address, caller: Probe) -> Heard:
        """Have one CONNECT answered by whoever listens at an IP literal."""
        began = trio.current_time()
        sock = await self.connect(address)
        if isinstance(sock, Unreached):
            return Heard(sock, 0.0)
        seconds = trio.current_time() - began
        with sock:
            answer = await self._spoken(Leg(sock, frame_length, LARGEST_ANSWER), address, caller)
        if answer in _UNSURE and await self._speaks_tls(address):
            answer = Oddity.TLS
        return Heard(answer, seconds)

    async def _spoken(self, leg: Leg, address: Address, caller: Probe) -> Answer:
        async def reach(_target: Address | None) -> tuple[Leg, Dialled] | Denial:
            return leg, Dialled(address)

        conversation = Conversation(trio.current_time() + self.patience, reach)
        try:
            answer = await conversation.run(greet(caller))
        except PeerError:
            answer = Oddity.STRANGE
        return recognized(answer, bytes(leg.received)) if isinstance(answer, Oddity) else answer

    async def _speaks_tls(self, address: Address) -> bool:
        """Whether a ClientHello is answered by a record of a TLS handshake."""
        sock = await self.connect(address)
        if isinstance(sock, Unreached):
            return False
        with sock, trio.move_on_after(min(self.patience, TLS_PATIENCE)), suppress(OSError):
            sock.send(_client_hello())  # some hundred bytes: a new connection takes them at once
            await trio.lowlevel.wait_readable(sock)
            return sock.recv(2) == b"\x16\x03"
        return False


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without roots: nothing is verified
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake does not end with its first message")


async def together(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Call all at once; the results in the order of the calls."""
    results: dict[int, T] = {}

    async def keep(number: int, call: Callable[[], Awaitable[T]]) -> None:
        results[number] = await call()

    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(keep, number, call)
    return [results[number] for number in range(len(calls))]
