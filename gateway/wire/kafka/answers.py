"""The scanner of answers. Answers to Fetch pass, and the scanner counts them as they come. Answers
to Produce pass too, unless the session has to decide them.

An answer to Fetch stops at its head if the gateway has to send an answer of its own behind it.
`quick` reads most answers in one go. Successive answers to a producer of one topic differ in little
but their ids and offsets, so the scanner compares each with the last one (`Accepted`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.pending import Asked, Pending
from gateway.wire.kafka.scanning import (
    ANSWER,
    NOTHING,
    UNASKED,
    FrameScanner,
    schemas,
)
from gateway.wire.kafka.stream import Reader, Stream, skip_tags
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle, tell
from gateway.wire.kafka.traffic import (
    BY_ID,
    Portion,
    Traffic,
    fetched,
    one_partition,
)
from gateway.wire.services import Services

_Unpack = Callable[[bytearray, int], tuple[int, int, bytes, int, int, int, bytes]]

_FORMS = 256
"""Forms of answers that are remembered: one for each length of a topic's name, and version."""

MOST_ENDS = 200_000
"""Partitions of one topic whose ends are kept, 20 MB. Clusters have no more; what else a broker
names is not noted."""


@lru_cache(_FORMS)
def _unpacking(lead: int, rest: int) -> _Unpack:
    """Return a function that unpacks an accepted answer with `lead` bytes between its correlation
    id and its one partition, and `rest` bytes behind the offset."""
    return struct.Struct(f">ii{lead}sihq{rest}s").unpack_from


class Accepted(NamedTuple):
    """The last accepted answer to Produce with one partition, in the parts that the next one has
    too. `size`: its bytes. `lead`: what stands between its correlation id and the partition.
    `rest`: what stands behind the offset. `asked`: the request. `unpack`: reads size, correlation
    id, lead, partition, error, offset and rest."""

    size: int
    lead: bytes
    rest: bytes
    asked: Asked
    unpack: _Unpack


_NONE_YET = Accepted(0, b"", b"", UNASKED, _unpacking(0, 0))

_ANSWER = schemas(FETCH)[1]
_FETCH_NAME = "Fetch"


class Answers(FrameScanner):
    """Scans answers; those to Fetch pass.

    An answer to Fetch tells the client for how long its messages have it wait. The head of one that
    a read cuts goes on before these are counted, so it tells what earlier answers owe.
    """

    __slots__ = (
        "_accepted",
        "_book",
        "_pending",
        "_says_at",
        "_services",
        "_substitutes",
        "_throttle",
        "_traffic",
        "_version",
    )

    def __init__(
        self,
        services: Services,
        book: Book,
        pending: Pending,
        substitutes: Substitutes,
        throttle: Throttle,
    ) -> None:
        super().__init__()
        self._services = services
        self._book = book
        self._pending = pending
        self._substitutes = substitutes
        self._throttle = throttle
        self._traffic = NOTHING
        self._version = 0
        self._accepted = _NONE_YET
        self._says_at = 0  # where in the chunk the answer that passes says how long; 0: cut off

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Mostly a chunk to a producer is one answer like the last one."""
        if self._stream is None and not (self._rest or self.raw):
            pos = self._accept(self._accepted, chunk, start, end)
            if pos >= end:
                self.stop = 0
                return end
            start = pos
        return super().scan(chunk, start, end)

    def _accept(self, accepted: Accepted, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the answers at `pos` that are like the last accepted one, and return the offset
        behind them; `pos` if none is. Flat, because it runs for each answer."""
        size, lead, rest, like, unpack = accepted
        last = end - size
        if pos > last or not size or self._book.has_new or len(self._substitutes):
            return pos
        (account,), take = like.accounts, self._pending.take
        receipts = partition = offset = 0
        while pos <= last and not account.held:
            length, correlation, led, partition, error, offset, told = unpack(chunk, pos)
            if length != size - SIZE.size or led != lead or error or told != rest:
                break
            if not take(correlation, like):
                break
            receipts += 1
            pos += size
        account.receipts += receipts
        if receipts and pos == end:
            self._appended(account, partition, offset)
        return pos

    def go_on(self, head: bytes) -> bytes:
        """Let an answer to Fetch pass whose head the session has decided. Return the gateway's own
        answers, which follow it."""
        size, correlation = ANSWER.unpack(head)
        version = self._pending.next(correlation).version
        self._pass(size, version)
        return self._pending.answered()

    def note(self, asked: Asked, frame: bytes) -> None:
        """Note where a partition ends, as an answer to Produce says that the session decides: one
        that a read has cut."""
        version = asked.version
        if asked.key != PRODUCE or version < quick.FLEXIBLE[PRODUCE] or len(asked.accounts) != 1:
            return
        chunk = bytearray(frame)
        if quick.accepted(chunk, ANSWER.size, len(chunk), version):
            self._learn(asked, chunk, 0, len(chunk), len(chunk))

    def _begin(self, chunk: bytearray, pos: int, end: int, size: int) -> int:
        if end - pos < ANSWER.size:
            return 0
        _, correlation = ANSWER.unpack_from(chunk, pos)
        if size < ANSWER.size - SIZE.size:
            raise PeerError("an answer without a head")
        pending = self._pending
        asked = pending.next(correlation)
        if asked.key != FETCH and asked.key != PRODUCE:
            self.stop = SIZE.size + size
            return 0
        own = pending.precedes_own_answer
        is_plain = not (own or self._book.has_new or len(self._substitutes))
        is_whole = pos + SIZE.size + size <= end
        if is_plain and is_whole and self._read_at_once(asked, chunk, pos, size):
            if asked.key == PRODUCE and len(asked.accounts) == 1:
                self._learn(asked, chunk, pos, end, SIZE.size + size)
            pending.answered()
            return SIZE.size + size
        if asked.key == PRODUCE:
            self.stop = SIZE.size + size
            return 0
        if own:
            self.stop = ANSWER.size
            return 0
        pending.answered()
        begun = self._begin_one(asked, chunk, pos, end, size) if is_plain and not is_whole else 0
        if not begun:
            self._pass(size, asked.version)
        self._says_at = self._place_of_throttle(chunk, pos, asked.version)
        if not is_whole:
            self._tell(chunk, self._throttle.consumed, end)
            self._says_at = 0
        return begun or ANSWER.size

    def _begin_one(self, asked: Asked, chunk: bytearray, pos: int, end: int, size: int) -> int:
        """Begin with an answer that is cut, and return the length of what stands before its
        batches; 0: it has several partitions, or a topic without an account."""
        at, until, version = pos + ANSWER.size, pos + SIZE.size + size, asked.version
        if version < quick.FLEXIBLE[FETCH]:
            return 0
        found = quick.head(chunk, at, end, until, version)
        if found is None or found.topic not in self._book.consumed[version >= quick.BY_ID]:
            return 0
        self._traffic, self._version = Traffic(), version
        read = one_partition(self._traffic, found.topic, found.batches, found.ends)
        self._stream = Stream(read, found.batches + quick.TAIL)
        return ANSWER.size + found.size

    def _place_of_throttle(self, chunk: bytearray, pos: int, version: int) -> int:
        """Return where an answer of Fetch says how long the client is held; 0: nobody can tell."""
        if version < _ANSWER.flexible:
            return pos + ANSWER.size
        at = pos + ANSWER.size
        return at + 1 if at < len(chunk) and not chunk[at] else 0  # the head has no tagged fields

    def _tell(self, chunk: bytearray, accounts: Iterable[Account], end: int) -> None:
        """Say how long a client is held that has got messages of these accounts."""
        if self._says_at and self._says_at + 4 <= end:
            milliseconds = self._throttle.milliseconds(accounts)
            if milliseconds:
                tell(chunk, self._says_at, milliseconds)

    def _read_at_once(self, asked: Asked, chunk: bytearray, pos: int, size: int) -> bool:
        """Count a whole answer, if it is of the usual form and nothing in it has to change."""
        at, end, version = pos + ANSWER.size, pos + SIZE.size + size, asked.version
        if version < quick.FLEXIBLE[asked.key]:
            return False
        if asked.key == PRODUCE:
            if any(it.held for it in asked.accounts):
                return False
            if not quick.accepted(chunk, at, end, version):
                return False
            for account in asked.accounts:
                account.receipts += 1
            return True
        found = quick.fetched(chunk, at, end, version)
        if found is None:
            return False
        table = self._book.consumed[version >= quick.BY_ID]
        if not all(it.topic in table for it in found if it.messages):
            return False
        self._fetched(found, table)
        held = [
            account
            for it in found
            if it.messages and self._counted(account := table[it.topic], it.messages, it.size)
        ]
        if held:
            self._says_at = at + 1
            self._tell(chunk, held, end)
        return True

    def _fetched(self, portions: Iterable[Portion], accounts: Mapping[bytes, Account]) -> None:
        """Note where partitions end, of topics that have accounts."""
        for it in portions:
            account = accounts.get(it.topic)
            if account is not None and account.ends is not None and len(account.ends) < MOST_ENDS:
                account.ends.update(it.ends)

    def _learn(self, asked: Asked, chunk: bytearray, pos: int, end: int, size: int) -> None:
        """Keep an accepted answer of `size` bytes at `pos`, if it has one partition: the next one
        is compared with it. A producer of several topics has others in turn, and nothing is kept.
        """
        place = quick.only_partition(chunk, pos + ANSWER.size, asked.version)
        if place is None:
            return
        lead = bytes(chunk[pos + ANSWER.size : place])
        rest = bytes(chunk[place + quick.APPENDED : pos + size])
        unpack = _unpacking(len(lead), len(rest))
        if len(self._book.produced[asked.version >= quick.BY_ID]) == 1:
            self._accepted = Accepted(size, lead, rest, asked, unpack)
        if pos + size == end:
            *_, partition, _, offset, _ = unpack(chunk, pos)
            self._appended(asked.accounts[0], partition, offset)

    def _appended(self, account: Account, partition: int, offset: int) -> None:
        """Note that a partition has a batch at this offset, so that it ends behind it. The scanner
        notes the last answer of a read alone: those before it are many, and say less."""
        ends = account.ends
        if ends is not None and offset >= ends.get(partition, 0) and len(ends) < MOST_ENDS:
            ends[partition] = offset + 1

    def _counted(self, account: Account, messages: int, size: int) -> bool:
        """Count what an answer has of a topic; return whether its allowance is used up."""
        account.count(messages)
        account.bytes += size
        if account.held:
            self._throttle.used_up(account)
            return True
        return False

    def _pass(self, size: int, version: int) -> None:
        self._traffic = Traffic()
        self._version = version
        self._stream = Stream(self._read(version), size - ANSWER.size + SIZE.size)

    def _read(self, version: int) -> Reader:
        if version >= _ANSWER.flexible:
            yield from skip_tags()
        yield from fetched(version, self._traffic, self._substitutes.original)

    def _passed(self, chunk: bytearray) -> None:
        by_id = self._version >= BY_ID[FETCH]
        for error in self._traffic.errors:
            self._services.answered_by_error(_FETCH_NAME, error)
        held: list[Account] = []
        for portion in self._traffic.portions:
            if not portion.messages:
                continue
            account = self._book.use(Action.CONSUME, portion.topic, by_id=by_id)
            if not isinstance(account, Account) or account is STRAY:
                continue
            if self._counted(account, portion.messages, portion.size):
                held.append(account)
        self._fetched(self._traffic.portions, self._book.consumed[by_id])
        self._tell(chunk, held, len(chunk))
        self._traffic = NOTHING
        self._says_at = 0
