"""The scanner of requests: those pass that are like one that was judged; see `alike`."""

from __future__ import annotations

from gateway.wire.tubemq import methods
from gateway.wire.tubemq.alike import (
    BEHIND_SERIAL,
    LARGEST,
    MOST_BLOCKS,
    STRIDE,
    Form,
    Kind,
    form_of,
    may_become,
)
from gateway.wire.tubemq.frames import BLOCK, FIRST, HEAD, SIZE, TOKEN, length
from gateway.wire.tubemq.in_flight import MOST, Asked, InFlight
from gateway.wire.tubemq.scanning import START, BlockScanner

MOST_KNOWN = 16
"""Kinds of requests that one connection knows: two for each partition of which it receives, one for
each to which it sends."""


class Known:
    """A kind of requests, and what one of them waits for. `then`: the kind that came next when one
    of this kind came last, and so most likely the next."""

    __slots__ = ("asked", "kind", "then")

    def __init__(self, kind: Kind, asked: Asked) -> None:
        self.kind = kind
        self.asked = asked
        self.then = self


class RequestScanner(BlockScanner):
    """`in_flight`: takes the requests that pass."""

    __slots__ = ("_in_flight", "_known", "_last")

    def __init__(self, largest: int, in_flight: InFlight) -> None:
        super().__init__(largest)
        self._in_flight = in_flight
        self._known: list[Known] = []
        self._last: Known | None = None

    def learn(self, kind: Kind, asked: Asked) -> None:
        """Have requests of this kind pass from now on. `asked`: what they wait for, without a
        time."""
        self._known = [it for it in self._known if it.kind is not kind]
        while len(self._known) >= MOST_KNOWN:
            oldest = self._known.pop(0)
            oldest.then = oldest  # it may be what came next, but brings no others back
        found = Known(kind, asked)
        self._known.append(found)
        if self._last is not None:
            self._last.then = found
        self._last = found

    def forget(self) -> None:
        """Have the next requests judged."""
        self._known = []
        self._last = None

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """See `BlockScanner`."""
        last, in_flight = self._last, self._in_flight
        while last is not None and end - pos > FIRST and len(in_flight) < MOST:
            token, serial, blocks, size = START.unpack_from(chunk, pos)
            if blocks > 1:
                size = _size(chunk, pos, end, blocks)
            known = last.then
            form = form_of(known.kind, size)
            if form is None or not _is_alike(chunk, pos, form):
                found = self._search(chunk, pos, size)
                if found is None:
                    break
                known, form = found
            account = known.asked.account
            behind = pos + form.length
            if behind > end or token != TOKEN or serial in in_flight:
                break
            if account is None or account.held or account.queued:
                break
            if known.asked.method == methods.SEND_MESSAGE:
                account.messages += 1
                account.bytes += form.data
            in_flight[serial] = known.asked
            pos = behind
            last.then = self._last = last = known
        return pos

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """See `BlockScanner`. A frame without allowance stops: the session has it wait."""
        token, serial, blocks, size = START.unpack_from(chunk, pos)
        if token != TOKEN or not 0 < blocks <= MOST_BLOCKS or end - pos >= LARGEST:
            return False
        if not self._known or serial in self._in_flight or len(self._in_flight) >= MOST:
            return False
        if end - pos >= FIRST + size and (blocks == 1 or length(chunk[pos:end]) <= end - pos):
            return False  # it is whole
        begun = bytes(chunk[pos + BEHIND_SERIAL : end])
        for it in self._known:
            account = it.asked.account
            if account is not None and not account.held and may_become(it.kind, begun):
                return True
        return False

    def _search(self, chunk: bytearray, pos: int, size: int) -> tuple[Known, Form] | None:
        """Return the kind of the request at `pos`, and its form."""
        for known in self._known:
            form = form_of(known.kind, size)
            if form is not None and _is_alike(chunk, pos, form):
                return known, form
        return None


def _size(chunk: bytearray, pos: int, end: int, blocks: int) -> int:
    """Return the length of an envelope in several blocks, all but the last of which are full; 0 if
    there are too many, or the last one has not begun."""
    last = pos + HEAD.size + (blocks - 1) * STRIDE
    if blocks > MOST_BLOCKS or last + SIZE.size > end:
        return 0
    size: int = (blocks - 1) * BLOCK + SIZE.unpack_from(chunk, last)[0]
    return size


def _is_alike(chunk: bytearray, pos: int, form: Form) -> bool:
    """Return whether the frame at `pos` has these constant bytes. One whose end has not come may
    have."""
    return (
        chunk.startswith(form.lead, pos + BEHIND_SERIAL)
        and chunk.startswith(form.tail, pos + form.tail_at)
        and all(chunk.startswith(size, pos + at) for size, at in form.borders)
    )
