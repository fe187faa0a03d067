"""What is made of what clients noted. Pure; times are nanoseconds, but for what is in seconds."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.clients.loads import Stream

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Window:
    """From one moment up to another."""

    start: int
    seconds: float

    @classmethod
    def behind(cls, streams: Iterable[Stream], warm_up: float, seconds: float) -> "Window":
        """It starts when all producers have begun, and their bursts are over."""
        began = max((it.sent[0] for it in streams if it.sent), default=0)
        return cls(began + int(warm_up * SECOND), seconds)

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.start + self.seconds * SECOND

    def count(self, moments: Iterable[int]) -> int:
        return sum(map(self.holds, moments))


@dataclass(frozen=True)
class Waits:
    """Seconds from a send to its receipt: of half of the messages, of 99 of 100, of all."""

    half: float = 0.0
    most: float = 0.0
    longest: float = 0.0

    @classmethod
    def of(cls, receipts: Iterable[tuple[int, int]]) -> "Waits":
        waits = sorted((settled - sent) / SECOND for sent, settled in receipts)
        if not waits:
            return cls()
        return cls(percentile(waits, 0.5), percentile(waits, 0.99), waits[-1])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of values in order: the least that so many of them do not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def jain(values: Sequence[float]) -> float:
    """Fairness: 1 where all have the same, 1 / n where one of n has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def failures(streams: Iterable[Stream]) -> dict[str, int]:
    """How many messages met which error."""
    found = Counter(error for it in streams for error in it.errors if error is not None)
    return dict(sorted(found.items()))


def per_step(moments: Iterable[int], start: int, step: float, steps: int) -> list[float]:
    """How many a second there were, in each of some steps of so many seconds."""
    counts = Counter(int((moment - start) // (step * SECOND)) for moment in moments)
    return [counts[number] / step for number in range(steps)]
