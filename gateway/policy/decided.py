"""A cache of the policy agent's decisions. It has no clock: time is an argument."""

from __future__ import annotations

from collections.abc import Hashable


class Decided:
    """A cache of decisions, each of which is valid for `lasting` seconds. It has at most `most`
    decisions; beyond that the oldest is dropped."""

    def __init__(self, most: int, lasting: float) -> None:
        self._most = most
        self._lasting = lasting
        # In order of time, as all last equally long.
        self._known: dict[Hashable, tuple[bool, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, question: Hashable, now: float) -> bool | None:
        """Return the cached decision about a question, True if it allows; None if the cache has no
        decision that is valid at `now`."""
        allowed, until = self._known.get(question, (None, 0.0))
        return allowed if now < until else None

    def put(self, question: Hashable, now: float, *, allowed: bool) -> None:
        """Keep the decision about a question. `now`: when the decision was made."""
        self._known.pop(question, None)
        while len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[question] = allowed, now + self._lasting
