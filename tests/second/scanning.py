"""Scanners of `memo`: frames with sections pass and are counted by topic; see
`contract.Scanner`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from tests.second.ledger import Ledger
from tests.second.memo import ANSWER, HEAD, PREFIX, Kind, Section, read_sections

STRAY = Account(Action.CONSUME)
"""Counts messages of topics that are not open any more."""


def count(found: Iterable[Section], accounts: Mapping[bytes, Account], total: int) -> None:
    """Count a frame of `total` bytes. Its head counts for the first topic."""
    head = total - sum(section.size for section in found)
    for section in found:
        account = accounts.get(section.topic, STRAY)
        account.count(section.messages)
        account.bytes += section.size + head
        head = 0


class _Scanner(ABC):
    """The common part of both directions. `accounts`: accounts of open topics."""

    def __init__(self, ledger: Ledger) -> None:
        self.owed = 0
        self.stop = 0
        self.is_slow = False
        self.accounts: dict[bytes, Account] = {}
        self._ledger = ledger

    @property
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self.owed

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        self.stop = 0
        pos = start + self.owed
        while pos < end:
            if end - pos < HEAD.size:
                break
            length, _, kind = HEAD.unpack_from(chunk, pos)
            total = length + PREFIX
            if total < HEAD.size:
                raise PeerError("a frame without a kind")
            passes = self._passes(kind, chunk, pos, end, total)
            if passes is None:
                break
            if not passes:
                self.stop = total
                break
            pos += total
        self.owed = max(0, pos - end)
        return min(pos, end)

    @abstractmethod
    def _passes(self, kind: int, chunk: bytearray, pos: int, end: int, total: int) -> bool | None:
        """Return whether a frame passes without a decision, and count it; None: its head is cut."""
        ...


class ToBrokerScanner(_Scanner):
    """A PUT passes while all its topics are open and have allowance; all other frames stop.

    `closed`: no frame passes any more.
    """

    closed = False

    def _passes(self, kind: int, chunk: bytearray, pos: int, end: int, total: int) -> bool | None:
        if kind != Kind.PUT:
            return False
        found = read_sections(chunk, pos, end, total)
        if found is None:
            return None
        may_pass = not self.closed and all(self._may_pass(section.topic) for section in found)
        if not may_pass or not found:
            return False
        count(found, self.accounts, total)
        self._ledger.add_request()
        return True

    def _may_pass(self, topic: bytes) -> bool:
        account = self.accounts.get(topic)
        return account is not None and not account.held


class ToClientScanner(_Scanner):
    """Answers to PUT and GET pass, unless an own response follows, which the session injects."""

    def _passes(self, kind: int, chunk: bytearray, pos: int, end: int, total: int) -> bool | None:
        if kind not in (Kind.PUT | ANSWER, Kind.GET | ANSWER):
            return False
        found: list[Section] | None = []
        if kind == Kind.GET | ANSWER:
            found = read_sections(chunk, pos, end, total)
        if found is None:
            return None
        if not self._ledger.owed:
            raise PeerError("an answer without a request")
        if self._ledger.precedes_own_answer:
            return False
        count(found, self.accounts, total)
        self._ledger.pass_answer()
        return True
