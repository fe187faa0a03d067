"""`python -m tests.fuzz.twins FRAMES`: the pure and the compiled scanners on the same bytes;
with `--kafka` or `--tubemq` sessions of these, see `kafka_twins` and `tubemq_twins`.

Both get the same frames, cut at the same places, under the same allowances, and must count, halt,
clear and refuse alike. Frames are those of the battery and of the grammar, each many times and
at times with a few other bytes, so that most of the time goes into scanning.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator

from gateway.compiled import COMPILED, WHY_PURE
from gateway.wire.account import ENDLESS
from gateway.wire.contract import Direction
from gateway.wire.pulsar.counts import CountChecks, Suspects
from tests.conformance.battery import Driver, Subject
from tests.conformance.pulsar import to_broker, to_client
from tests.conformance.pulsar.common import IDS
from tests.fuzz import kafka_twins, tubemq_twins
from tests.fuzz.grammar import any_frame
from tests.fuzz.source import Source
from tests.support.frames import send
from tests.support.scanners import IMPLEMENTATIONS, PURE, Implementation

CARRY_BOUND = 72 * 1024
STOCK = 4000
"""Frames of the grammar to choose among, by direction."""

LONGEST = 2000
"""Bytes of a frame of the battery that is chosen."""

_COUNTS = ("messages", "surplus", "bytes", "receipts", "redelivered", "asked")


class Twins:
    """A pure and a compiled scanner of one direction, and what both have seen."""

    def __init__(self, direction: Direction, noise: random.Random) -> None:
        make = _to_broker if direction is Direction.TO_BROKER else _to_client
        seed = noise.getrandbits(32)
        self.subjects = [make(of, random.Random(seed)) for of in IMPLEMENTATIONS]
        self.drivers = [Driver(subject, CARRY_BOUND) for subject in self.subjects]

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes."""
        for driver in self.drivers:
            driver.feed(piece)

    def compare(self) -> bool:
        """Assert that both scanners did the same with the stream so far. Return whether the stream
        goes on: no scanner has refused it."""
        pure, compiled = (driver.outcome() for driver in self.drivers)
        assert pure == compiled
        pure_counts, compiled_counts = (_counts(subject) for subject in self.subjects)
        assert pure_counts == compiled_counts
        return not pure.violated

    def limit(self, noise: random.Random) -> None:
        """Give one account another allowance."""
        name = noise.choice(sorted(self.subjects[0].accounts))
        messages = noise.choice((ENDLESS, 0, 1, 5, 40))
        size = noise.choice((ENDLESS, 0, 100, 5000))
        for subject in self.subjects:
            account = subject.accounts[name]
            account.hold()
            account.grant(messages, size)


def _to_broker(of: Implementation, noise: random.Random) -> Subject:
    """Return one that compares the counts of some SENDs with their batches, or none."""
    checks = CountChecks(Suspects(noise.random), "a client") if noise.random() < 0.3 else None
    return to_broker.make(unknown_pass=noise.random() < 0.8, kind=of[1], checks=checks)


def _to_client(of: Implementation, noise: random.Random) -> Subject:
    return to_client.make(unknown_pass=noise.random() < 0.8, kind=of[2])


def _counts(subject: Subject) -> list[tuple[int, ...]]:
    return [
        tuple(getattr(account, name) for name in _COUNTS) for account in subject.accounts.values()
    ]


def stock(direction: Direction, noise: random.Random) -> list[bytes]:
    """Return frames to make streams of: true and flawed ones, and many of those that count. One of
    a hundred ends its stream."""
    frames = [any_frame(Source(noise.randbytes(200)), direction) for _ in range(STOCK)]
    make = _to_broker if direction is Direction.TO_BROKER else _to_client
    frames = [it for it in frames if _is_whole(make(PURE, noise), it) or noise.random() < 0.01]
    samples = to_broker.SAMPLES if direction is Direction.TO_BROKER else to_client.SAMPLES
    known = [frame.data for sample in samples for frame in sample.frames if not frame.absent]
    frames += [data for data in known if len(data) < LONGEST] * 40
    if direction is Direction.TO_BROKER:
        ids = [noise.choice(IDS) for _ in range(STOCK)]
        frames += [send(id, noise.getrandbits(noise.randrange(1, 40))) for id in ids]
    return frames


def _is_whole(subject: Subject, frame: bytes) -> bool:
    driver = Driver(subject, CARRY_BOUND)
    driver.feed(frame)
    outcome = driver.outcome()
    return not outcome.violated and not outcome.waiting and not outcome.owed


def stream(frames: list[bytes], noise: random.Random) -> tuple[bytes, int]:
    """Return some frames in a row, at times damaged, and their number."""
    chosen = noise.choices(frames, k=noise.randrange(1, 1000))
    if noise.random() < 0.2:
        at = noise.randrange(len(chosen))
        damaged = bytearray(chosen[at])
        for _ in range(noise.randrange(1, 4)):
            damaged[noise.randrange(min(len(damaged), 60))] = noise.randrange(256)
        chosen[at] = bytes(damaged)
    return b"".join(chosen), len(chosen)


def cut(data: bytes, noise: random.Random) -> Iterator[bytes]:
    """Yield the stream whole, or in pieces of any size."""
    at = 0
    longest = noise.choice((len(data), 60_000, 60_000, 20_000, 2000, 60))
    while at < len(data):
        size = noise.randrange(1, longest + 1)
        yield data[at : at + size]
        at += size


def run(frames: int, seed: int) -> int:
    """Compare the twins on so many frames. Return how many there were."""
    noise = random.Random(seed)
    stocks = {direction: stock(direction, noise) for direction in Direction}
    done = 0
    while done < frames:
        direction = noise.choice(tuple(Direction))
        twins, goes_on = Twins(direction, noise), True
        while goes_on and noise.random() < 0.7:
            data, many = stream(stocks[direction], noise)
            for piece in cut(data, noise):
                twins.feed(piece)
                if noise.random() < 0.1:
                    twins.limit(noise)
            goes_on = twins.compare()
            done += many if goes_on else 0  # what follows a violation is not scanned
    return done


def main() -> int:
    """Answer the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.twins", description=__doc__)
    parser.add_argument("frames", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", action="store_true", help="sessions of Kafka")
    parser.add_argument("--tubemq", action="store_true", help="sessions of TubeMQ")
    options = parser.parse_args()
    if not COMPILED:
        print(f"there are no twins: the scanners are pure ({WHY_PURE})")
        return 0
    done = 0
    others = tubemq_twins.run if options.tubemq else run
    compare = kafka_twins.run if options.kafka else others
    while done < options.frames:
        done += compare(min(1_000_000, options.frames - done), options.seed + done)
        print(f"{done:,} frames, no difference", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
