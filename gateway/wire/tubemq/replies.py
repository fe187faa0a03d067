"""The scanner of replies: receipts pass that are like one that was read; see `alike`."""

from __future__ import annotations

import re

from gateway.wire.tubemq import methods
from gateway.wire.tubemq.alike import BEHIND_SERIAL
from gateway.wire.tubemq.frames import FIRST, TOKEN
from gateway.wire.tubemq.pending import Pending
from gateway.wire.tubemq.scanning import START, BlockScanner

MOST_KNOWN = 4
"""Lengths of receipts that one connection knows."""


class ReplyScanner(BlockScanner):
    """`pending`: the requests that wait for replies."""

    __slots__ = ("_pending", "_receipts")

    def __init__(self, largest: int, pending: Pending) -> None:
        super().__init__(largest)
        self._pending = pending
        self._receipts: dict[int, re.Pattern[bytes]] = {}  # by the length of the only block

    def learn(self, length: int, receipt: re.Pattern[bytes]) -> None:
        """Have receipts of this kind pass from now on. `length`: of their frames."""
        while len(self._receipts) >= MOST_KNOWN:
            del self._receipts[next(iter(self._receipts))]
        self._receipts[length - FIRST] = receipt

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        receipts, pending = self._receipts, self._pending
        while receipts and end - pos > FIRST:
            token, serial, _, size = START.unpack_from(chunk, pos)
            receipt, asked = receipts.get(size), pending.get(serial)
            behind = pos + FIRST + size
            if receipt is None or asked is None or asked.account is None or behind > end:
                break
            if token != TOKEN or asked.method != methods.SEND_MESSAGE:
                break
            if not receipt.fullmatch(chunk, pos + BEHIND_SERIAL, behind):
                break
            del pending[serial]
            asked.account.receipts += 1
            pos = behind
        return pos

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`."""
        token, serial, blocks, size = START.unpack_from(chunk, pos)
        asked = self._pending.get(serial)
        if asked is None or asked.method != methods.SEND_MESSAGE or end - pos >= FIRST + size:
            return False
        return token == TOKEN and blocks == 1 and size in self._receipts
