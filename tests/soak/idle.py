"""Idle pairs, opened, held and closed several times."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.soak import brokers, report
from tests.soak.report import KIB, MIB, mib
from tests.soak.runner import Gateway, claim, in_time, running
from tests.soak.visits import pairs, ping

PAIR = 8 * KIB
"""The most that an idle pair may cost."""

ROUNDS = 3

GROWTH = 2 * MIB
"""Growth of RSS allowed after the first round, since allocators vary."""


@dataclass(frozen=True, slots=True)
class Round:
    """Bytes of RSS: before, with all pairs, and after they were closed."""

    pairs: int
    before: int
    held: int
    after: int

    @property
    def of_a_pair(self) -> float:
        return (self.held - self.before) / self.pairs


def run(number: int, folder: Path, *, hold: float = 5.0, growth: int = GROWTH) -> list[Round]:
    """Run several rounds with one gateway, and claim what must hold."""
    settings = {"deadlines": {"idle": "1h", "grace": "0s"}}
    with (
        brokers.in_process(folder, 1) as addresses,
        running(folder, addresses, settings) as gateway,
    ):
        _round(gateway, 64, 0)  # what is made once does not count for a pair
        rounds = [_round(gateway, number, hold) for _ in range(ROUNDS)]
    first, last = rounds[0], rounds[-1]
    claim(first.of_a_pair <= PAIR, f"a pair costs {first.of_a_pair:.0f} bytes")
    claim(last.held <= first.held + growth, f"from {mib(first.held)} to {mib(last.held)} when held")
    claim(last.after <= first.after + growth, f"from {mib(first.after)} to {mib(last.after)} after")
    return rounds


def _round(gateway: Gateway, number: int, hold: float) -> Round:
    before, descriptors = gateway.rss, gateway.descriptors
    callers = pairs(gateway.ports["passing"], number)
    claim(gateway.connections() == number, "not all pairs are there")
    claim(gateway.has_descriptors(descriptors + 2 * number), "a pair has two descriptors")
    time.sleep(hold)
    held = gateway.rss
    ping(callers)
    for caller in callers:
        caller.close()
    claim(bool(in_time(gateway.is_at_rest)), "pairs stayed though their clients are gone")
    claim(gateway.has_descriptors(descriptors), "descriptors stayed")
    return Round(number, before, held, gateway.rss)


def table(rounds: Sequence[Round]) -> str:
    """Return a table with a line for each round."""
    head = ["idle pairs", "RSS before", "held", "of a pair", "closed"]
    return report.table(
        head,
        [
            [it.pairs, mib(it.before), mib(it.held), f"{it.of_a_pair:.0f} bytes", mib(it.after)]
            for it in rounds
        ],
    )
