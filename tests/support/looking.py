"""Those who look at a gateway: scrapers of its metrics, and readers of its console's feed.

They run in threads, and scrapes are dropped in the kernel, so that a program which measures other
clients hardly works for them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

PATIENCE = 20.0
"""Seconds for the next bytes of an answer. The gateway ends a scrape sooner."""

AS_PROMETHEUS = (
    "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
    "Accept-Encoding: gzip",
    "Connection: close",
)

FEED = "/api/v1/feed"

EVERY = 1.0
"""Seconds from one look to the next. Scrapers come every 15 or 60: looks more often show more."""

_ROOM = 1 << 16

_GOOD = b"HTTP/1.1 200"


@dataclass
class Looks:
    """How often somebody has looked."""

    number: int = 0


def asked(address: str, path: str, *headers: str) -> socket.socket:
    """Return the connection on which a good answer comes. Raises `OSError` for any other."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=PATIENCE)
    lines = (f"GET {path} HTTP/1.1", f"Host: {address}", *headers, "", "")
    sock.sendall("\r\n".join(lines).encode())
    head = sock.recv(len(_GOOD), socket.MSG_WAITALL)
    if head != _GOOD:
        sock.close()
        raise OSError(f"{path} at {address} was answered by {head!r}")
    return sock


def scrape(address: str, path: str) -> int:
    """Scrape once, and return the bytes of the answer."""
    size = len(_GOOD)
    with asked(address, path, *AS_PROMETHEUS) as sock:
        while more := len(sock.recv(_ROOM, socket.MSG_TRUNC)):
            size += more
    return size


@contextmanager
def scraping(address: str, *paths: str, every: float = EVERY) -> Iterator[Looks]:
    """Scrape all paths every so many seconds meanwhile."""
    over, looks = threading.Event(), Looks()

    def look() -> None:
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            for path in paths:
                scrape(address, path)
            looks.number += 1
            due = max(due + every, time.monotonic())

    with _meanwhile(look, over.set):
        yield looks


@contextmanager
def reading_feed(address: str) -> Iterator[Looks]:
    """Read the feed of a console meanwhile. `number`: the seconds that came."""
    looks = Looks()
    with asked(address, FEED) as sock:

        def read() -> None:
            with suppress(OSError):
                while data := sock.recv(_ROOM):
                    looks.number += data.count(b"event: second")

        with _meanwhile(read, lambda: sock.shutdown(socket.SHUT_RDWR)):
            yield looks


@contextmanager
def _meanwhile(work: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):  # the gateway has closed
            end()
        thread.join()
