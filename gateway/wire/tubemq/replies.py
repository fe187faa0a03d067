"""The scanner of replies: receipts pass that are like one that was read (see `alike`), and replies
that bring messages while they are read (see `bringing`)."""

from __future__ import annotations

import re

from gateway.wire.tubemq import methods
from gateway.wire.tubemq.alike import BEHIND_SERIAL
from gateway.wire.tubemq.bringing import LONGEST_LEAD, Bringing, Lead
from gateway.wire.tubemq.frames import FIRST, TOKEN
from gateway.wire.tubemq.in_flight import InFlight
from gateway.wire.tubemq.scanning import START, BlockScanner

MOST_KNOWN = 4
"""Lengths of receipts that one connection knows."""


class ReplyScanner(BlockScanner):
    """`in_flight`: the requests that wait for replies. `bringing`: reads those that bring
    messages."""

    __slots__ = ("_bringing", "_in_flight", "_receipts")

    def __init__(self, largest: int, in_flight: InFlight, bringing: Bringing) -> None:
        super().__init__(largest)
        self._in_flight = in_flight
        self._bringing = bringing
        self._receipts: dict[int, re.Pattern[bytes]] = {}  # by the length of the only block

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        bringing = self._bringing
        if 0 < end - start <= bringing.left:  # usual: all of it is of the same reply
            self.stop = 0
            bringing.read(chunk, start, end)
            self.owed = bringing.left
            return end
        cleared = super().scan(chunk, start, end)
        self.owed = self._bringing.left
        return cleared

    def learn(self, length: int, receipt: re.Pattern[bytes]) -> None:
        """Have receipts of this kind pass from now on. `length`: of their frames."""
        while len(self._receipts) >= MOST_KNOWN:
            del self._receipts[next(iter(self._receipts))]
        self._receipts[length - FIRST] = receipt

    def learn_lead(self, lead: Lead) -> None:
        """Read replies that begin like this while they pass."""
        self._bringing.lead = lead

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        bringing = self._bringing
        if bringing.left:
            pos = bringing.read(chunk, pos, end)
        while not bringing.left:
            pos = self._run_receipts(chunk, pos, end)
            behind = bringing.begin(chunk, pos, end)
            if behind == pos:
                break
            pos = bringing.read(chunk, behind, end)
        return pos

    def _run_receipts(self, chunk: bytearray, pos: int, end: int) -> int:
        receipts, in_flight = self._receipts, self._in_flight
        while receipts and end - pos > FIRST:
            token, serial, _, size = START.unpack_from(chunk, pos)
            receipt, asked = receipts.get(size), in_flight.get(serial)
            behind = pos + FIRST + size
            if receipt is None or asked is None or asked.account is None or behind > end:
                break
            if token != TOKEN or asked.method != methods.SEND_MESSAGE:
                break
            if not receipt.fullmatch(chunk, pos + BEHIND_SERIAL, behind):
                break
            del in_flight[serial]
            asked.account.receipts += 1
            pos = behind
        return pos

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`."""
        token, serial, blocks, size = START.unpack_from(chunk, pos)
        asked = self._in_flight.get(serial)
        if asked is None or token != TOKEN or end - pos >= FIRST + size:
            return False
        if asked.method == methods.SEND_MESSAGE:
            return blocks == 1 and size in self._receipts
        lead = self._bringing.lead
        if asked.method != methods.GET_MESSAGES or lead is None:
            return False
        begun = bytes(chunk[pos + FIRST : end])
        return len(begun) < LONGEST_LEAD and lead.heads.startswith(begun[: len(lead.heads)])
