"""Plays many connections of TubeMQ against its own decoder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.fuzz.report import Row
from tests.oracle.long import reported

from .judge import Finding, judge, mended
from .oracle import TubeOracle
from .play import Played, play

BATCH = 500
"""Connections in one query to the oracle."""

MOST_FINDINGS = 200


@dataclass
class Outcome:
    """`frames`: said by clients. `whole`: of them came whole to where requests are read. `reached`:
    went on to a server. `mended`: of these, a server would have read otherwise, or refused, what
    the client had written. `ended`: connections that a violation ended."""

    connections: int = 0
    frames: int = 0
    whole: int = 0
    reached: int = 0
    mended: int = 0
    ended: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.frames / self.seconds if self.seconds else 0.0
        return (
            f"tubemq oracle: {self.connections:,} connections, {self.ended:,} of them ended by a "
            f"violation, {self.frames:,} frames, {self.whole:,} whole, {self.reached:,} of them "
            f"reached a server, {self.mended:,} mended, {rate:,.0f}/s, "
            f"{len(self.findings)} findings"
        )


def run(
    oracle: TubeOracle,
    frames: int,
    seed: int,
    told: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Play connections until clients have said this many frames. `seed`: of the first connection.

    The oracle reads one batch while the next one is played.
    """
    outcome, begin = Outcome(), time.monotonic()
    waiting: list[Played] = []
    for batch in _batches(frames, seed, outcome):
        _judge(oracle, waiting, outcome)
        oracle.ask([stream for played in batch for stream in played.streams])
        waiting = batch
        outcome.seconds = time.monotonic() - begin
        if told is not None:
            told(outcome)
        if len(outcome.findings) >= MOST_FINDINGS:
            break
    _judge(oracle, waiting, outcome)
    outcome.seconds = time.monotonic() - begin
    return outcome


def judged(oracle: TubeOracle, played: Played) -> list[Finding]:
    """Return the findings of one connection."""
    said, sent = oracle.read(*played.streams)
    return list(judge(played, said, sent))


def judge_tubemq(frames: int, seed: int, say: Callable[[str], None]) -> Row:
    """Play this many frames, with reports. Raises as `TubeOracle` does."""
    with TubeOracle(say) as oracle:
        return reported("tubemq oracle", partial(run, oracle, frames, seed), say)


def _batches(frames: int, seed: int, outcome: Outcome) -> Iterator[list[Played]]:
    while outcome.frames < frames:
        batch = list[Played]()
        while len(batch) < BATCH and outcome.frames < frames:
            played = play(seed)
            seed += 1
            batch.append(played)
            outcome.connections += 1
            outcome.frames += played.number
            outcome.whole += len(played.steps)
            outcome.reached += played.reached
            outcome.ended += bool(played.end)
        yield batch


def _judge(oracle: TubeOracle, batch: Sequence[Played], outcome: Outcome) -> None:
    responses = iter(oracle.responses(2 * len(batch)))
    for played in batch:
        said, sent = next(responses), next(responses)
        outcome.mended += mended(played, said)
        outcome.findings += judge(played, said, sent)
