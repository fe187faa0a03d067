"""Round after round of hostile connections, and what must be so when a round is over."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gateway.wire.contract import Direction
from tests.fuzz.report import Row
from tests.hostile.process import Gateway, until

from . import plan
from .peers import HostileBroker, connect
from .plan import Plan
from .streams import arsenal

MIB = 1 << 20
AT_ONCE = 12
"""Connections."""

CONNECTIONS = 72
"""Of one round."""

TIMES = 12
"""How often a stream is said at most: 18,000 frames each way."""

STREAMS = 8
"""Of each direction, others in each era."""

ERA = 10
"""Rounds with the same streams."""

GROWTH = 24 * MIB
"""Of the process, from the end of its first era on. Buffers of slow readers stay with the
allocator: 8 MiB are what all may keep at a time. A pair that stayed would be 5 KB: in a thousand
rounds 350 MB."""

DEADLINES = {"handshake": "400ms", "idle": "1s", "grace": "3s"}
LISTENERS = ("passing",) * 7 + ("masking",)

PROBES = 2
"""Descriptors that may be open for a moment: a look at the broker, and one at the metrics."""

_TROUBLE = ("Traceback", "internal_error")

Say = Callable[[str], object]


@dataclass
class Siege:
    """`faults`: what the gateway did wrong so far."""

    gateway: Gateway
    broker: HostileBroker
    seed: int
    faults: list[str]
    times: int = TIMES
    rounds: int = 0
    connections: int = 0
    through: int = 0
    said: int = 0
    memory: list[int] = field(default_factory=list)
    descriptors: int = 0
    _read: int = 0

    def round(self, connections: int = CONNECTIONS) -> None:
        """So many connections, then the gateway must look as if nobody had been there."""
        if self.rounds % ERA == 0:
            self._rearm(self.rounds // ERA)
        plans = self._planned(connections)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._connect, plans))
        self.rounds += 1
        self._add(plans)
        self._is_calm()

    def stop(self) -> None:
        """The gateway stops amid all this: clients are moved, or not, and it ends in time."""
        plans = self._planned(AT_ONCE)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            talks = [pool.submit(self._connect, each) for each in plans]
            until(lambda: any(sum(each.through.values()) for each in plans))
            try:
                self.gateway.stop()
            except (AssertionError, subprocess.TimeoutExpired) as wrong:
                self.faults.append(f"it did not stop well: {str(wrong)[:2000]}")
            for talk in talks:
                with suppress(ConnectionError):  # it came too late to be listened to
                    talk.result()
        self._add(plans)

    def _planned(self, connections: int) -> list[Plan]:
        plans = [self._plan(self.connections + n) for n in range(connections)]
        self.broker.plans = {each.version: each for each in plans}
        return plans

    def _add(self, plans: list[Plan]) -> None:
        self.connections += len(plans)
        self.through += sum(sum(each.through.values()) for each in plans)
        self.said += sum(sum(each.said.values()) for each in plans)

    def _connect(self, plan: Plan) -> None:
        port = self.gateway.ports[LISTENERS[plan.number % len(LISTENERS)]]
        connect(plan, port, self.faults.append, self.broker.address.encode())

    def _plan(self, number: int) -> Plan:
        return plan.drawn(self.seed, number, self._arsenals, self.times)

    def _rearm(self, era: int) -> None:
        address = self.broker.address
        self._arsenals = {
            direction: arsenal(direction, self.seed + era, STREAMS, address)
            for direction in Direction
        }

    def _is_calm(self) -> None:
        """No connection, no kept byte, no traceback, no growth."""
        if not until(self._is_empty):
            metrics = self.gateway.metrics()
            open_ = {name: metrics.connections(name) for name in set(LISTENERS)}
            used = f"{self.gateway.descriptors} descriptors instead of {self.descriptors}"
            kept = f"{metrics.buffered:.0f} B are kept"
            self.faults.append(f"round {self.rounds}: open are {open_}, {kept}, {used}")
        self.faults += self._troubles()
        self.memory.append(self.gateway.memory)
        grown = self.memory[-1] - self.settled
        if grown > GROWTH:
            self.faults.append(f"round {self.rounds}: grown by {grown / MIB:.0f} MiB")

    @property
    def settled(self) -> int:
        """Memory when the first era was over, or is for now."""
        return max(self.memory[:ERA])

    def _is_empty(self) -> bool:
        metrics = self.gateway.metrics()
        if metrics.buffered or any(map(metrics.connections, set(LISTENERS))):
            return False
        return self.gateway.descriptors <= self.descriptors + PROBES

    def _troubles(self) -> Iterator[str]:
        """Of the log's lines since the round before."""
        with self.gateway.log.open("rb") as log:
            log.seek(self._read)
            written = log.read()
        self._read += len(written)
        for line in written.decode(errors="replace").splitlines():
            if any(word in line for word in _TROUBLE):
                yield line[:2000]


@contextmanager
def besieged(folder: Path, seed: int, times: int = TIMES) -> Iterator[Siege]:
    """A gateway between hostile peers."""
    faults: list[str] = []
    broker = HostileBroker(faults.append)
    gateway = Gateway([broker], folder, DEADLINES)
    try:
        yield Siege(gateway, broker, seed, faults, times, descriptors=gateway.descriptors)
    finally:
        gateway.process.kill()
        broker.close()


def _ends(siege: Siege) -> str:
    """Why connections ended."""
    metrics, ends = siege.gateway.metrics(), Counter[str]()
    for listener in sorted(set(LISTENERS)):
        ends.update(metrics.ended(listener))
    return "live: " + ", ".join(f"{reason} {n}" for reason, n in ends.most_common() if n)


def run(folder: Path, frames: int, seed: int, say: Say, *, connections: int = CONNECTIONS) -> Row:
    """Rounds until so many frames have come through, or something is wrong."""
    began = time.monotonic()
    with besieged(folder, seed) as siege:
        first = siege.gateway.memory
        while siege.through < frames and not siege.faults:
            siege.round(connections)
            if siege.rounds % ERA == 0 or siege.rounds == 1:
                say(_progress(siege, time.monotonic() - began))
        say(_ends(siege))
        if not siege.faults:
            siege.stop()
        memory = (first // MIB, siege.memory[-1] // MIB)
    seconds = time.monotonic() - began
    faults = tuple(siege.faults)
    return Row("live", siege.connections, siege.through, seconds, None, faults, memory)


def _progress(siege: Siege, seconds: float) -> str:
    return (
        f"live: round {siege.rounds}, {siege.connections:,} connections, {siege.through:,} frames "
        f"came through of {siege.said:,}, {siege.through / seconds:,.0f}/s, "
        f"RSS {siege.memory[-1] // MIB} MiB (settled {siege.settled // MIB})"
    )
