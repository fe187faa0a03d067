"""Pairs whose readers do not read while their writers write as much as they can.

What the data plane keeps stays below its bound, other clients are served, and no byte is lost:
neither when the readers read again, nor of other pairs when the readers close.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gateway.wire.contract import EndReason
from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import Client
from tests.soak import brokers, report
from tests.soak.brokers import TAKEN, Brokers
from tests.soak.report import MIB, mib
from tests.soak.runner import CHUNK, Gateway, claim, in_time, possible_pairs, running
from tests.soak.streams import Block, Stream, drain, fill
from tests.support.frames import message, metadata_of, send, simple, tail

END_BUFFER = 64 * 1024
"""Bytes that the kernel keeps at both far ends: little, so that the gateway has to keep the
rest."""

PAUSE = 0.05
"""Seconds between two round trips of another client."""

SLACK = 32 * MIB
"""RSS beyond the kept bytes: pairs, and memory that an allocator cannot return at once."""

PAYLOAD = b"x" * 4000


@dataclass(frozen=True, slots=True)
class Stall:
    """One kind of stall. `socket_buffer`: of the gateway's sockets to clients, None: tuned by the
    kernel. `pings`: round trips of another client; a hundred outlast the plane's patience."""

    to_client: bool
    pairs: int = 1000
    bound: int = 64 * MIB
    blocks: int = 8
    socket_buffer: int | None = 256 * 1024
    read_again: bool = True
    pings: int = 100

    def with_at_most(self, pairs: int) -> Stall:
        """Return the same stall with fewer pairs."""
        return replace(self, pairs=min(pairs, self.pairs))

    @property
    def title(self) -> str:
        who = "clients" if self.to_client else "brokers"
        return f"{self.pairs} {who}, {'then read' if self.read_again else 'then closed'}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The observations, in bytes and seconds; `kernel`: of all TCP sockets of this machine."""

    stall: Stall
    peak: int
    kept: int
    rss: tuple[int, int, int]
    kernel: int
    ended: int
    pings: list[float]
    written: int
    received: int


def limits(stall: Stall) -> dict[str, int]:
    """Return the memory settings. Deciding takes a part of the bound, so frames are small."""
    return {
        "buffered": stall.bound,
        "collected_frame": min(stall.bound // 16, MIB),
        "command": 16 * 1024,
    }


def run(stall: Stall, folder: Path) -> Outcome:
    """Run one stall from start to end, and claim what must hold for any."""
    plane = {"socket_buffer": stall.socket_buffer} if stall.socket_buffer else {}
    settings = {"limits": limits(stall) | {"connections": possible_pairs()}, "data_plane": plane}
    with brokers.in_thread() as behind, running(folder, behind.addresses, settings) as gateway:
        outcome = _stalled(stall, gateway, behind)
    ours = stall.bound + CHUNK
    claim(outcome.peak <= ours, f"{outcome.peak} bytes were kept, {ours} is the bound")
    grown = outcome.rss[1] - outcome.rss[0]
    claim(grown <= ours + SLACK, f"memory grew by {mib(grown)}")
    claim(outcome.ended == 0, f"{outcome.ended} pairs ended for want of memory")
    if stall.read_again:
        claim(outcome.received == outcome.written, "not all bytes arrived")
    return outcome


def _stalled(stall: Stall, gateway: Gateway, behind: Brokers) -> Outcome:
    with ExitStack() as stack:
        probe = stack.enter_context(Client(gateway.ports["passing"]).open())
        streams = _opened(stall, gateway, behind, stack)
        before, kernel = gateway.rss, kernel_buffers()
        gateway.report()
        fill(streams)
        pings = [ping(probe) for _ in range(stall.pings)]
        full = gateway.rss
        kept, kernel = int(gateway.metrics().buffered), kernel_buffers() - kernel
        claim(kept > 0, "nothing waited: the kernel took it all")
        if stall.read_again:
            drain(streams)
            claim(
                bool(in_time(lambda: gateway.metrics().buffered == 0)), "bytes wait though all read"
            )
        written, received = (sum(getattr(s, n) for s in streams) for n in ("sent", "received"))
    claim(bool(in_time(gateway.is_at_rest)), "something stayed of pairs that are over")
    ended, rss = gateway.ended()[EndReason.OUT_OF_MEMORY], (before, full, gateway.rss)
    return Outcome(stall, gateway.report().peak, kept, rss, kernel, ended, pings, written, received)


def _opened(stall: Stall, gateway: Gateway, behind: Brokers, stack: ExitStack) -> list[Stream]:
    block = Block(_message() if stall.to_client else send(1, 1, PAYLOAD))
    streams = []
    for _ in range(stall.pairs):
        client = stack.enter_context(Client(gateway.ports["passing"], END_BUFFER).open())
        open_taken(client, consume=stall.to_client)
        broker = stack.enter_context(behind.taken.get(timeout=10))
        ends = (broker, client.sock) if stall.to_client else (client.sock, broker)
        for sock, option in zip(ends, (socket.SO_SNDBUF, socket.SO_RCVBUF), strict=True):
            sock.setsockopt(socket.SOL_SOCKET, option, END_BUFFER)
        streams.append(Stream(*ends, block, stall.blocks))
    return streams


def open_taken(client: Client, *, consume: bool) -> None:
    """Open something whose connection the broker hands over."""
    fields = {"topic": TAKEN, "request_id": 1}
    if consume:
        client.say(simple(Kind.SUBSCRIBE, subscription="s", subType=0, consumer_id=1, **fields))
        assert client.hear().success.request_id == 1
    else:
        client.say(simple(Kind.PRODUCER, producer_id=1, **fields))
        assert client.hear().producer_success.request_id == 1


def _message() -> bytes:
    return message(1, tail(metadata_of(), PAYLOAD))


def ping(client: Client) -> float:
    """Return the seconds of a round trip to the broker and back. Raises if there is none."""
    time.sleep(PAUSE)
    began = time.monotonic()
    client.say(simple(Kind.PING))
    client.hear()
    return time.monotonic() - began


def kernel_buffers() -> int:
    """Return the bytes in all TCP sockets' buffers, as the kernel counts them."""
    found = re.search(r"TCP: .* mem (\d+)", Path("/proc/net/sockstat").read_text())
    assert found
    return int(found[1]) * 4096


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a line for each stall."""
    head = ["stalled", "bound", "peak kept", "kept at rest", "RSS before, full, after",
            "kernel's buffers", "ended", "pings: median, longest", "written, received"]  # fmt: skip
    return report.table(head, map(_row, outcomes))


def _row(it: Outcome) -> list[str]:
    pings = f"{1000 * median(it.pings):.1f}, {1000 * max(it.pings):.0f} ms"
    sizes = it.stall.bound, it.peak, it.kept
    return [
        it.stall.title, *map(mib, sizes), ", ".join(map(mib, it.rss)), mib(it.kernel),
        str(it.ended), pings, f"{it.written:,}, {it.received:,}",
    ]  # fmt: skip
