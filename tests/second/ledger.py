"""The answers that a client is owed, in the order of its requests."""

from __future__ import annotations

from collections import deque


class Ledger:
    """How many answers the broker owes, `owed`, and between which of them ours have their place."""

    def __init__(self, owed: int = 0) -> None:
        self._owed: deque[int | bytes] = deque([owed] if owed else [])  # the broker's, or ours
        self._open = owed

    @property
    def owed(self) -> int:
        """How many answers the broker owes."""
        return self._open

    @property
    def is_before_ours(self) -> bool:
        """Whether one of ours follows the broker's next answer."""
        return len(self._owed) > 1 and self._owed[0] == 1

    def asked(self) -> None:
        """A request went to the broker."""
        self._open += 1
        last = self._owed[-1] if self._owed else b""
        if isinstance(last, int):
            self._owed[-1] = last + 1
        else:
            self._owed.append(1)

    def ours(self, answer: bytes) -> bytes:
        """Give an answer its place; return what the client is sent at once."""
        if not self._owed:
            return answer
        self._owed.append(answer)
        return b""

    def answered(self) -> bytes:
        """The broker answered one request; return our answers that follow."""
        first = self._owed[0]
        assert isinstance(first, int)
        self._open -= 1
        if first > 1:
            self._owed[0] = first - 1
            return b""
        self._owed.popleft()
        ours = bytearray()
        while self._owed and isinstance(answer := self._owed[0], bytes):
            ours += answer
            self._owed.popleft()
        return bytes(ours)
