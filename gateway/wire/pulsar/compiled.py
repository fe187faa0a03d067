"""Scanners with a compiled walker, which passes frames of the usual form. All other frames are
scanned one by one by the pure Python scanners, of which these are subclasses."""

from __future__ import annotations

from struct import Struct

from gateway.compiled.counters import AccountTable, Walker
from gateway.compiled.pulsar import ToBrokerWalker, ToClientWalker
from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.frames import HEADER
from gateway.wire.pulsar.scan import LARGEST_COMMAND, ToBrokerScanner, ToClientScanner

_size = Struct(">I").unpack_from


class _Owed:
    """Keeps `owed` in the walker, where compiled and pure code find it."""

    __slots__ = ()

    walker: Walker

    @property
    def owed(self) -> int:
        """See `contract.Scanner`."""
        return self.walker.owed

    @owed.setter
    def owed(self, owed: int) -> None:
        self.walker.owed = owed


class CompiledToBrokerScanner(_Owed, ToBrokerScanner):
    """See `ToBrokerScanner`. `consumers`: the table of consumers, which the scanner of the other
    direction uses too."""

    __slots__ = ("walker",)

    walker: ToBrokerWalker

    def __init__(
        self,
        actions: tuple[int, ...],
        command_bound: int = LARGEST_COMMAND,
        checks: CountChecks | None = None,
        consumers: AccountTable[Account] | None = None,
    ) -> None:
        producers = AccountTable[Account]()
        compares = checks is not None
        self.walker = ToBrokerWalker(actions, command_bound, producers, compares=compares)
        super().__init__(actions, command_bound, checks, consumers)
        self._producers = producers

    @property
    def _distance(self) -> int:  # which the walker counts down too
        return self.walker.distance

    @_distance.setter
    def _distance(self, distance: int) -> None:
        self.walker.distance = distance

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        self.stop = 0
        pass_usual = self.walker.pass_usual
        pos = pass_usual(chunk, start + self.owed, end)
        while pos < end:
            after = self._frame(chunk, pos, end)
            if after == pos:
                self.owed = 0
                return pos
            pos = pass_usual(chunk, after, end)
        self.owed = pos - end
        return end


class CompiledToClientScanner(_Owed, ToClientScanner):
    """See `ToClientScanner`."""

    __slots__ = ("walker",)

    walker: ToClientWalker

    def __init__(
        self,
        actions: tuple[int, ...],
        unknown: Account,
        command_bound: int = LARGEST_COMMAND,
        consumers: AccountTable[Account] | None = None,
    ) -> None:
        if consumers is None:
            consumers = AccountTable[Account]()
        producers = AccountTable[Account]()
        self.walker = ToClientWalker(actions, command_bound, consumers, producers)
        super().__init__(actions, unknown, command_bound, consumers)
        self._producers = producers

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        if self._walk is not None:
            return super().scan(chunk, start, end)
        self.stop = 0
        pass_usual = self.walker.pass_usual
        owed = self.owed
        pos = pass_usual(chunk, start + owed, end)
        try:
            while pos < end:
                # The end of one frame; of its head where it has an impossible size.
                border = end
                if end - pos > HEADER:
                    border = min(end, pos + max(HEADER, 4 + _size(chunk, pos)[0]))
                self.owed = 0
                after = super().scan(chunk, pos, border)
                if after < border or border == end:
                    return after
                pos = pass_usual(chunk, border, end)
        except PeerError:
            self.owed = owed  # as it was: nothing has passed
            raise
        self.owed = pos - end
        return end


def compiled_scanners(
    actions: tuple[tuple[int, ...], tuple[int, ...]],
    unknown: Account,
    command_bound: int,
    checks: CountChecks | None,
) -> tuple[CompiledToBrokerScanner, CompiledToClientScanner]:
    """See `scanning.scanners`."""
    to_broker, to_client = actions
    consumers = AccountTable[Account]()  # one asks, the other gets
    return (
        CompiledToBrokerScanner(to_broker, command_bound, checks, consumers),
        CompiledToClientScanner(to_client, unknown, command_bound, consumers),
    )
