"""A cache of the policy agent's decisions. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Hashable


class Decided:
    """A cache of at most `most` decisions, each valid for `lasting` seconds. Beyond the bound the
    oldest is dropped."""

    def __init__(self, most: int, lasting: float) -> None:
        self._most = most
        self._lasting = lasting
        # In order of time, as all last equally long.
        self._known: dict[Hashable, tuple[bool, float]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, question: Hashable, now: float) -> bool | None:
        """Return the decision about a question (True: allowed); None if none is valid at `now`."""
        allowed, until = self._known.get(question, (None, 0.0))
        return allowed if now < until else None

    def put(self, question: Hashable, now: float, *, allowed: bool) -> None:
        """Keep a decision that was made at `now`."""
        self._known.pop(question, None)
        while len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[question] = allowed, now + self._lasting
