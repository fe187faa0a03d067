"""Many connections against all oracles: what reaches brokers, and whether they understood it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gateway.wire.contract import Direction

from .judge import Finding, judge
from .oracle import Oracles, read
from .play import Played, Player
from .watched import House

BATCH = 4000
"""Frames that the oracles are asked for at a time."""

MOST_FINDINGS = 200


@dataclass
class Outcome:
    """`frames`: that peers said; `reached`: of these, what went on to brokers."""

    connections: int = 0
    frames: int = 0
    reached: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0


def run(
    oracles: Oracles, frames: int, seed: int, told: Callable[[Outcome], None] | None = None
) -> Outcome:
    """Play connections until so many frames were said. `seed`: of the first connection."""
    outcome, begin = Outcome(), time.monotonic()
    waiting: list[Played] = []
    for batch in _batches(frames, seed, outcome):
        # The oracles think about one batch while the next one is played.
        if waiting:
            outcome.findings += _judged(oracles, waiting)
        oracles.ask_frames([it for played in batch for step in played.steps for it in step.frames])
        waiting = batch
        outcome.seconds = time.monotonic() - begin
        if told is not None:
            told(outcome)
        if len(outcome.findings) >= MOST_FINDINGS:
            break
    if waiting:
        outcome.findings += _judged(oracles, waiting)
    outcome.seconds = time.monotonic() - begin
    return outcome


def _batches(frames: int, seed: int, outcome: Outcome) -> Iterator[list[Played]]:
    house = House()
    while outcome.frames < frames:
        batch, size = list[Played](), 0
        while size < BATCH and outcome.frames < frames:
            played = Player(house, seed).play()
            seed += 1
            batch.append(played)
            size += sum(len(step.frames) for step in played.steps)
            outcome.reached += sum(len(step.to_broker) for step in played.steps)
            outcome.connections += 1
            outcome.frames += played.said
        yield batch


def _judged(oracles: Oracles, batch: list[Played]) -> Iterator[Finding]:
    number = sum(len(step.frames) for played in batch for step in played.steps)
    answers = iter(oracles.answers(number))
    for played in batch:
        readings = [
            [_read(next(answers)) for _ in step.frames] for step in played.steps
        ]
        yield from judge(played, readings, oracles.all)
        for crash in played.crashes:
            last = played.steps[-1].said[1]
            yield Finding(played.seed, len(played.steps) - 1, "gateway", repr(crash), last, None)


def _read(lines: tuple[bytes, ...]) -> tuple[dict[str, object], ...]:
    first = read(lines[0])
    return tuple(first if line == lines[0] else read(line) for line in lines)


__all__ = ["Direction", "Outcome", "run"]
