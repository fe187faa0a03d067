"""Plays many connections against all oracles, and compares their readings of what reaches
brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.fuzz.report import Row

from .judge import Finding, judge
from .long import reported
from .openings import Opening, judge_opening, open_connection
from .oracle import Oracles, Reading, read
from .play import Played, Player
from .watched import House

BATCH = 4000
"""Number of frames in one query to the oracles."""

MOST_FINDINGS = 200

OPENINGS = 3
"""One opening conversation for this many open connections."""


@dataclass
class Outcome:
    """`frames`: sent by peers; `reached`: forwarded to brokers."""

    connections: int = 0
    frames: int = 0
    reached: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.frames / self.seconds if self.seconds else 0.0
        return (
            f"oracle: {self.connections:,} connections, {self.frames:,} frames, "
            f"{self.reached:,} of them reached a broker, {rate:,.0f}/s, "
            f"{len(self.findings)} findings"
        )


Item = Played | Opening


def run(
    oracles: Oracles, frames: int, seed: int, told: Callable[[Outcome], None] | None = None
) -> Outcome:
    """Play connections until peers have sent this many frames. `seed`: of the first connection.

    The oracles judge one batch while the next one is played.
    """
    outcome, begin = Outcome(), time.monotonic()
    waiting: list[Item] = []
    for batch in _batches(frames, seed, outcome):
        outcome.findings += _judged(oracles, waiting)
        oracles.ask_frames([frame for item in batch for frame in _frames(item)])
        waiting = batch
        outcome.seconds = time.monotonic() - begin
        if told is not None:
            told(outcome)
        if len(outcome.findings) >= MOST_FINDINGS:
            break
    outcome.findings += _judged(oracles, waiting)
    outcome.seconds = time.monotonic() - begin
    return outcome


def judge_pulsar(frames: int, seed: int, say: Callable[[str], None]) -> Row:
    """Play this many frames against all oracles, with reports. Raises as `Oracle` does."""
    with Oracles(say) as oracles:
        return reported("oracle", partial(run, oracles, frames, seed), say)


def judged(oracles: Oracles, item: Item) -> list[Finding]:
    """Return the findings of one connection."""
    oracles.ask_frames(_frames(item))
    return list(_judged(oracles, [item]))


def play(house: House, seed: int) -> Item:
    """Play the connection of this seed."""
    return Player(house, seed).play() if seed % (OPENINGS + 1) else open_connection(seed)


def _batches(frames: int, seed: int, outcome: Outcome) -> Iterator[list[Item]]:
    house = House()
    while outcome.frames < frames:
        batch, size = list[Item](), 0
        while size < BATCH and outcome.frames < frames:
            item = play(house, seed)
            seed += 1
            batch.append(item)
            size += len(_frames(item))
            outcome.connections += 1
            outcome.frames += item.number
            outcome.reached += item.reached
        yield batch


def _frames(item: Item) -> list[bytes]:
    if isinstance(item, Opening):
        return item.to_broker
    return [frame for step in item.steps for frame in step.frames]


def _judged(oracles: Oracles, batch: Sequence[Item]) -> Iterator[Finding]:
    responses = iter(oracles.responses(sum(len(_frames(item)) for item in batch)))

    def understood(frames: list[bytes]) -> list[tuple[Reading, ...]]:
        return [_read(next(responses)) for _ in frames]

    for item in batch:
        if isinstance(item, Opening):
            yield from judge_opening(item, understood(item.to_broker), oracles.all)
        else:
            readings = [understood(step.frames) for step in item.steps]
            yield from judge(item, readings, oracles.all)


def _read(lines: tuple[bytes, ...]) -> tuple[dict[str, Any], ...]:
    first = read(lines[0])
    return tuple(first if line == lines[0] else read(line) for line in lines)
