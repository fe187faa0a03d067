"""Figures made from clients' records. Pure; times are nanoseconds unless they are named seconds."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.clients.loads import Stream

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Window:
    """A period of time."""

    start: int
    seconds: float

    @classmethod
    def behind(cls, streams: Iterable[Stream], warm_up: float, seconds: float) -> "Window":
        """Return the window that begins when all producers have started and their bursts are used
        up."""
        began = max((it.sent[0] for it in streams if it.sent), default=0)
        return cls(began + int(warm_up * SECOND), seconds)

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.start + self.seconds * SECOND

    def count(self, moments: Iterable[int]) -> int:
        return sum(map(self.holds, moments))


@dataclass(frozen=True)
class Waits:
    """Seconds from a send to its receipt: median, 99th percentile, maximum."""

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
    """Return the smallest of the ordered values that this share of them does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def jain(values: Sequence[float]) -> float:
    """Return the fairness: 1 if all have the same, 1 / n if one of n has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def failures(streams: Iterable[Stream]) -> dict[str, int]:
    """Return the number of failed messages by error."""
    found = Counter(error for it in streams for error in it.errors if error is not None)
    return dict(sorted(found.items()))


def per_step(moments: Iterable[int], start: int, step: float, steps: int) -> list[float]:
    """Return the rate in each of some steps of this many seconds."""
    counts = Counter(int((moment - start) // (step * SECOND)) for moment in moments)
    return [counts[number] / step for number in range(steps)]
