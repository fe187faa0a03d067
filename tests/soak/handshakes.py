"""TLS handshakes of hostile clients, beside a client that is served.

An open connection keeps its round trips, memory grows by no more than the handshakes under way may
keep, and all of it comes back.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.hostile.peers import HOST, Client
from tests.soak import brokers, report
from tests.soak.report import MIB, mib
from tests.soak.runner import Gateway, claim, in_time, running
from tests.soak.stalled import ping

SECONDS = 5.0
"""Of one kind of attack."""

AT_ONCE = 500
"""Connections that an attack holds."""

FLOODERS = 3
"""Threads that each do one handshake after the other."""

GROWTH = 48 * MIB
"""Memory that an attack may take: OpenSSL keeps 50 KB for a handshake under way."""

LEFT = 24 * MIB
"""Memory that may stay: allocators return not all of it."""

Attack = Callable[[int, threading.Event], int]
"""Attacks a port until an event; returns the number of connections that it made."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`rss`: bytes before, while it lasts (the most), and after. `pings`: seconds of round trips of
    an open connection. `cpu`: the part of a core that the gateway used."""

    title: str
    connections: int
    rss: tuple[int, int, int]
    pings: list[float]
    cpu: float


def hello() -> bytes:
    """Return a ClientHello, which may be sent any number of times."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def large() -> bytes:
    """Return the records of a ClientHello of 100 KB, without its last byte."""
    body = b"\x01" + (100_000).to_bytes(3, "big") + bytes(99_999)
    pieces = [body[at : at + 16_000] for at in range(0, len(body), 16_000)]
    return b"".join(struct.pack(">BHH", 22, 0x0301, len(it)) + it for it in pieces)


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection((HOST, port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


# -- attacks -----------------------------------------------------------------------------------


def holding(said: bytes, *, drip: bool = False) -> Attack:
    """Return an attack by connections that say this, at once or byte by byte, and then nothing."""

    def attack(port: int, over: threading.Event) -> int:
        with ExitStack() as opened:
            socks = [opened.enter_context(_connect(port)) for _ in range(AT_ONCE)]
            pieces = [said[at : at + 1] for at in range(len(said))] if drip else [said]
            for piece in pieces:
                if over.is_set():
                    break
                for sock in socks:
                    with suppress(OSError):
                        sock.sendall(piece)
            over.wait()
            return len(socks)

    return attack


def flooding(*, whole: bool) -> Attack:
    """Return an attack by handshakes as fast as they go: whole ones, or none beyond the server's
    answer, which costs a client nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said = hello()

    def once(port: int) -> None:
        with _connect(port) as sock:
            if whole:
                context.wrap_socket(sock).close()
                return
            sock.sendall(said)
            sock.recv(1 << 16)

    def attack(port: int, over: threading.Event) -> int:
        made = [0] * FLOODERS

        def flood(number: int) -> None:
            while not over.is_set():
                with suppress(OSError):
                    once(port)
                made[number] += 1

        threads = [threading.Thread(target=flood, args=(it,)) for it in range(FLOODERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(made)

    return attack


ATTACKS: dict[str, Attack] = {
    "nobody": lambda _port, over: int(not over.wait()),
    "silent": holding(b""),
    "ClientHello byte by byte": holding(hello()[:-1], drip=True),
    "ClientHello of 100 KB, not ended": holding(large()),
    "no answer to the server": holding(hello()),
    "flood of ClientHellos": flooding(whole=False),
    "flood of whole handshakes": flooding(whole=True),
}


# -- the run -----------------------------------------------------------------------------------


def run(folder: Path, seconds: float = SECONDS, attacks: Sequence[str] = ()) -> list[Outcome]:
    """Run the attacks one after the other, all of them or some, and claim what must hold."""
    settings = {"deadlines": {"handshake": "1m", "grace": "0s"}}
    with (
        brokers.in_thread() as behind,
        running(folder, behind.addresses, settings) as gateway,
        Client(gateway.ports["passing"]).open() as served,
    ):
        _attacked("warm-up", flooding(whole=True), gateway, served, 1.0)
        titles = attacks or list(ATTACKS)
        return [_attacked(it, ATTACKS[it], gateway, served, seconds) for it in titles]


def _attacked(
    title: str, attack: Attack, gateway: Gateway, served: Client, seconds: float
) -> Outcome:
    before, began, cpu = gateway.rss, time.monotonic(), gateway.cpu
    pings, most = list[float](), before
    with _under(attack, gateway.ports["secured"]) as made:
        while time.monotonic() < began + seconds:
            pings.append(ping(served))
            most = max(most, gateway.rss)
        used = (gateway.cpu - cpu) / (time.monotonic() - began)
    claim(bool(in_time(lambda: gateway.connections() == 1)), f"{title}: connections stayed")
    after = gateway.rss
    claim(most <= before + GROWTH, f"{title}: memory grew by {mib(most - before)}")
    claim(after <= before + LEFT, f"{title}: {mib(after - before)} stayed")
    return Outcome(title, made[0], (before, most, after), pings, used)


@contextmanager
def _under(attack: Attack, port: int) -> Iterator[list[int]]:
    """Attack meanwhile; the list holds the number of connections at the end."""
    over, made = threading.Event(), list[int]()
    thread = threading.Thread(target=lambda: made.append(attack(port, over)))
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a line for each attack."""
    head = ["handshakes", "connections", "RSS before, most, after", "CPU", "pings: median, longest"]
    return report.table(head, map(_row, outcomes))


def _row(it: Outcome) -> list[str]:
    pings = f"{1000 * median(it.pings):.1f}, {1000 * max(it.pings):.1f} ms"
    sizes = ", ".join(map(mib, it.rss))
    return [it.title, str(it.connections), sizes, f"{it.cpu:.0%}", pings]
