"""The order of responses: the broker's and the gateway's, as the client sent its requests."""

from __future__ import annotations

from collections import deque


class Ledger:
    """The responses that the broker owes, `owed`, and the gateway's own responses between them."""

    def __init__(self, owed: int = 0) -> None:
        # Numbers of the broker's responses, and own responses between them.
        self._owed: deque[int | bytes] = deque([owed] if owed else [])
        self._open = owed

    @property
    def owed(self) -> int:
        """Return the number of responses that the broker owes."""
        return self._open

    @property
    def precedes_own_answer(self) -> bool:
        """Return whether an own response follows the broker's next response."""
        return len(self._owed) > 1 and self._owed[0] == 1

    def add_request(self) -> None:
        """Add a request that goes to the broker."""
        self._open += 1
        last = self._owed[-1] if self._owed else b""
        if isinstance(last, int):
            self._owed[-1] = last + 1
        else:
            self._owed.append(1)

    def add_own_answer(self, response: bytes) -> bytes:
        """Add a response of the gateway; return it if the client gets it at once, else nothing."""
        if not self._owed:
            return response
        self._owed.append(response)
        return b""

    def pass_answer(self) -> bytes:
        """Remove a response of the broker that passes; return the own responses that follow it."""
        first = self._owed[0]
        assert isinstance(first, int)
        self._open -= 1
        if first > 1:
            self._owed[0] = first - 1
            return b""
        self._owed.popleft()
        own = bytearray()
        while self._owed and isinstance(response := self._owed[0], bytes):
            own += response
            self._owed.popleft()
        return bytes(own)
