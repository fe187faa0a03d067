"""The order of answers: the broker's and the gateway's, as the client sent its requests."""

from __future__ import annotations

from collections import deque


class Ledger:
    """The answers that the broker owes, `owed`, and the gateway's own answers between them."""

    def __init__(self, owed: int = 0) -> None:
        # Numbers of the broker's answers, and own answers between them.
        self._owed: deque[int | bytes] = deque([owed] if owed else [])
        self._open = owed

    @property
    def owed(self) -> int:
        """Return the number of answers that the broker owes."""
        return self._open

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether an own answer follows the broker's next answer."""
        return len(self._owed) > 1 and self._owed[0] == 1

    def add_request(self) -> None:
        """Add a request that goes to the broker."""
        self._open += 1
        last = self._owed[-1] if self._owed else b""
        if isinstance(last, int):
            self._owed[-1] = last + 1
        else:
            self._owed.append(1)

    def add_own_answer(self, answer: bytes) -> bytes:
        """Add an answer of the gateway; return it if the client gets it at once, else nothing."""
        if not self._owed:
            return answer
        self._owed.append(answer)
        return b""

    def pass_answer(self) -> bytes:
        """Remove an answer of the broker that passes; return the own answers that follow it."""
        first = self._owed[0]
        assert isinstance(first, int)
        self._open -= 1
        if first > 1:
            self._owed[0] = first - 1
            return b""
        self._owed.popleft()
        own = bytearray()
        while self._owed and isinstance(answer := self._owed[0], bytes):
            own += answer
            self._owed.popleft()
        return bytes(own)
