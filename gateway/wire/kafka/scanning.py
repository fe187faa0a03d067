"""Scanners of Kafka: Produce requests and Fetch answers pass and are counted while they come; so do
the requests of Fetch and the answers to Produce that need no decision. All other frames stop. See
`contract.Scanner`.

A Produce request names its topics behind its head, so it cannot stop where it names one: what is
denied in it is written over (`substitutes`). What concerns the whole request, such as a limit that
an earlier one has used up, stops it at its head, and the session decides when it goes on. A Fetch
answer stops at its head if an answer of the gateway's own has to follow it.

Most frames are of a usual form, which `quick` reads in one go. A producer's requests even begin
alike, so that of most of them only the batch is read (`Shape`).
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import LONGEST_CLIENT, SIZE
from gateway.wire.kafka.pending import Asked, Pending
from gateway.wire.kafka.records import FORMAT, HEAD
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.stream import Reader, Stream, length, skip, skip_tags
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle, tell
from gateway.wire.kafka.traffic import BY_ID, Portion, Traffic, fetched, one_partition, produced
from gateway.wire.services import Services

REQUEST = struct.Struct(">ihhi")
"""The head of each request up to its client id: size, API, version, correlation id."""

ANSWER = struct.Struct(">ii")
"""The head of each answer: size, correlation id."""

NO_ACKS = 0
"""Of a Produce request that is not answered."""


class _Scanner(ABC):
    """The part that both directions share: a frame that is read while it passes.

    `raw`: frames have no heads, as tokens after SaslHandshake 0; each stops.
    """

    __slots__ = ("_failed", "_rest", "_stream", "raw", "stop")

    def __init__(self) -> None:
        self.stop = 0
        self.raw = False
        self._rest = 0  # bytes of a frame that has been read as far as anybody wants
        self._stream: Stream | None = None
        self._failed: int | None = None  # bytes that were owed before the scan that failed

    @property
    def owed(self) -> int:
        """See `contract.Scanner`."""
        if self._failed is not None:
            return self._failed
        return self._rest if self._stream is None else self._stream.left

    @property
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self._rest if self._stream is None else self._stream.skips

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        owed = self.owed
        try:
            return self._scan(chunk, start, end)
        except PeerError:
            self._failed = owed
            raise

    def _scan(self, chunk: bytearray, start: int, end: int) -> int:
        self.stop = 0
        pos = start + self._rest
        while pos < end:
            if self._stream is None:
                if end - pos < SIZE.size:
                    break
                (size,) = SIZE.unpack_from(chunk, pos)
                if size < 0:
                    raise PeerError(f"a frame of {size} bytes")
                begun = 0 if self.raw else self._begin(chunk, pos, end, size)
                if self.raw:
                    self.stop = SIZE.size + size
                if not begun:
                    break
                pos += begun
                if self._stream is None:  # all of it, read in one go
                    continue
            pos = self._stream.feed(chunk, pos, end)
            if self._stream.left:
                break
            self._stream = None
            self._passed(chunk)
        self._rest = max(0, pos - end)
        return min(pos, end)

    @abstractmethod
    def _begin(self, chunk: bytearray, pos: int, end: int, size: int) -> int:
        """Begin with a frame: return the length of its head if it passes, or of all of it if it has
        been read, though its end may not have come; otherwise 0, with `stop` unless its head is
        cut. `size`: bytes behind its size."""

    @abstractmethod
    def _passed(self, chunk: bytearray) -> None:
        """Count the frame that has passed, and which ends in this chunk."""


class Shape(NamedTuple):
    """What the last request of Produce had in common with most of a producer's: all that stands
    before its one partition, `lead`, from its client id on; its version, `acks` and topic, and
    where its numbers stand."""

    lead: bytes
    version: int
    acks: int
    topic: bytes
    layout: quick.Layout


_NOTHING, _UNASKED = Traffic(), Asked(PRODUCE, 0, 0)
"""What stands in place of a frame that passes, while none does."""

_SHAPELESS = Shape(b"", -1, 0, b"", quick.layout(0, 1))

_INDEX = 4
"""Bytes of a partition's index."""


class Requests(_Scanner):
    """Scans requests: those of Produce pass, and those of Fetch whose topics have accounts.

    `stops`: the session has to decide whether a request of Produce or Fetch may go on. `over`:
    accounts that have used up their allowance to produce; `fetches`: to consume.
    """

    __slots__ = (
        "_accounts",
        "_asked",
        "_book",
        "_pending",
        "_shape",
        "_substitutes",
        "_traffic",
        "_transacts",
        "fetches",
        "over",
        "stops",
    )

    def __init__(
        self,
        book: Book,
        pending: Pending,
        substitutes: Substitutes,
        fetches: dict[Account, None],
    ) -> None:
        super().__init__()
        self._book = book
        self._pending = pending
        self._substitutes = substitutes
        self._traffic = _NOTHING
        self._accounts: list[Account] = []  # of the request that passes, by topic
        self._asked = _UNASKED
        self._transacts: ErrorCode | None = None  # why the request may not be in its transaction
        self._shape = _SHAPELESS
        self.fetches = fetches
        self.stops = False
        self.over: dict[Account, None] = {}

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Mostly a chunk is one request of a known shape."""
        if self._stream is None and not (self._rest or self.stops or self.raw):
            pos = self._run(self._shape, chunk, start, end)
            if pos >= end:
                self.stop = 0
                self._rest = pos - end
                return end
            start = pos
        return super().scan(chunk, start, end)

    def go_on(self, head: bytes) -> None:
        """Let the request pass at whose head the session was asked."""
        size, _, version, correlation = REQUEST.unpack(head)
        self._pass(size, version, correlation)

    def _begin(self, chunk: bytearray, pos: int, end: int, size: int) -> int:
        if end - pos < REQUEST.size:
            return 0
        _, key, version, correlation = REQUEST.unpack_from(chunk, pos)
        if size < REQUEST.size - SIZE.size:
            raise PeerError("a request without a head")
        if key != PRODUCE:
            if key == FETCH and self._fetches(chunk, pos, end, size):
                return SIZE.size + size
            self.stop = SIZE.size + size
            return 0
        if not _REQUEST.first <= version <= _REQUEST.last:
            self.stop = SIZE.size + size
            return 0
        if self.stops or self._pending.is_full:
            self.stop = REQUEST.size
            return 0
        if version >= quick.FLEXIBLE[PRODUCE]:
            shape = self._shape_of(chunk, pos, end)
            passed = 0 if shape is None else self._run(shape, chunk, pos, end) - pos
            passed = passed or self._at_once(chunk, pos, end)
            if passed:
                return passed
        self._pass(size, version, correlation)
        return REQUEST.size

    # -- Produce -----------------------------------------------------------------------------

    def _shape_of(self, chunk: bytearray, pos: int, end: int) -> Shape | None:
        """Return the shape of a request: the last one if it has that; None: it has several
        partitions, or is otherwise unusual."""
        _, _, version, _ = REQUEST.unpack_from(chunk, pos)
        at, shape = pos + REQUEST.size, self._shape
        if version == shape.version and chunk.startswith(shape.lead, at, end):
            digits = quick.digits(chunk, at + len(shape.lead) + _INDEX, end)
            if digits and digits != shape.layout.digits:
                self._shape = shape._replace(layout=quick.layout(len(shape.lead), digits))
            return self._shape
        found = quick.lead(chunk, at, end, version)
        if found is None:
            return None
        digits = quick.digits(chunk, at + found.size + _INDEX, end)
        if not digits:
            return None
        lead = bytes(chunk[at : at + found.size])
        layout = quick.layout(len(lead), digits)
        self._shape = Shape(lead, version, found.acks, found.topic, layout)
        return self._shape

    def _run(self, shape: Shape, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the requests of one shape that begin at `pos`, and return the offset behind them;
        `pos`: none passes. The end of the last one may not have come. Flat, because most bytes of
        small requests pass here."""
        lead, version, acks, topic, layout = shape
        account = self._book.produced[version >= quick.BY_ID].get(topic)
        if account is None:
            return pos
        unpack, least, around, _ = layout
        kind, length_of, ask = quick.kind_of(PRODUCE, version), quick.length_of, self._pending.ask
        accounts, room, last = (account,), self._pending.room, end - least
        most_messages = account.messages_ceiling - account.messages
        most_bytes = account.bytes_ceiling - account.bytes
        frames = messages = total = 0
        while pos <= last and frames < room:
            size, said, correlation, led, told, length, format, count = unpack(chunk, pos)
            batch = length + quick.AFTER_LENGTH
            if said != kind or led != lead or format != FORMAT or count <= 0:
                break
            if batch < HEAD or size != batch + around or told != length_of(batch):
                break
            frames += 1
            messages += count
            total += batch
            pos += SIZE.size + size
            if acks:
                ask(Asked(PRODUCE, version, correlation, accounts))
            if messages >= most_messages or total >= most_bytes:
                self.over[account] = None
                self.stops = True
                break
        account.messages += messages
        account.surplus += messages - frames
        account.bytes += total
        if not acks:
            account.receipts += frames
        return pos

    def _at_once(self, chunk: bytearray, pos: int, end: int) -> int:
        """Count a whole request of the usual form, and return its length; 0: it has another form,
        or a topic without an account."""
        size, _, version, correlation = REQUEST.unpack_from(chunk, pos)
        until: int = pos + SIZE.size + size
        found = None
        if until <= end:
            found = quick.produced(chunk, pos + REQUEST.size, until, version)
        table = self._book.produced[version >= quick.BY_ID]
        if found is None or not all(it.topic in table for it in found.topics):
            return 0
        sent = [(table[it.topic], it) for it in found.topics]
        accounts = [account for account, it in sent if self._counted(account, it.messages, it.size)]
        self._sent(Asked(PRODUCE, version, correlation, tuple(accounts)), found.acks)
        return until - pos

    def _pass(self, size: int, version: int, correlation: int) -> None:
        self._traffic = Traffic()
        self._accounts = []
        self._asked = Asked(PRODUCE, version, correlation)
        self._transacts = None
        self._stream = Stream(self._read(version), size - REQUEST.size + SIZE.size)

    def _read(self, version: int) -> Reader:
        client = yield from length(2)
        if client > LONGEST_CLIENT:
            raise PeerError(f"a client id of {client} bytes")
        yield from skip(client)
        if version >= _REQUEST.flexible:
            yield from skip_tags()
        judge = partial(self._judge, by_id=version >= BY_ID[PRODUCE])
        yield from produced(version, self._traffic, judge, self._judge_transaction)

    def _judge_transaction(self, name: bytes) -> None:
        self._transacts = self._book.refuses_transaction(name)

    def _judge(self, topic: bytes, *, by_id: bool) -> bytes | None:
        found = self._transacts or self._book.use(Action.PRODUCE, topic, by_id=by_id)
        if isinstance(found, ErrorCode):
            other = self._substitutes.id if by_id else self._substitutes.name
            return other(topic, found)
        self._accounts.append(found)
        return None

    def _passed(self, chunk: bytearray) -> None:
        sent = zip(self._accounts, self._traffic.portions, strict=True)
        accounts = [account for account, it in sent if self._counted(account, it.messages, it.size)]
        self._sent(self._asked._replace(accounts=tuple(accounts)), self._traffic.acks)

    def _counted(self, account: Account, messages: int, size: int) -> bool:
        """Count what a request has of a topic; return whether it has any message."""
        if not messages or account is STRAY:
            return False
        account.count(messages)
        account.bytes += size
        if account.held:
            self.over[account] = None
            self.stops = True
        return True

    def _sent(self, asked: Asked, acks: int) -> None:
        """Note a request that has passed."""
        if acks != NO_ACKS:
            self._pending.ask(asked)
            return
        for account in asked.accounts:
            account.receipts += 1

    # -- Fetch -------------------------------------------------------------------------------

    def _fetches(self, chunk: bytearray, pos: int, end: int, size: int) -> bool:
        """Note a request of Fetch that may pass: all its topics have accounts, and none of these
        has used up its allowance."""
        until = pos + SIZE.size + size
        if until > end or self.stops or self.fetches or self._pending.is_full:
            return False
        _, _, version, correlation = REQUEST.unpack_from(chunk, pos)
        if not quick.FLEXIBLE[FETCH] <= version <= _LAST_FETCH:
            return False
        topics = quick.fetches(chunk, pos + REQUEST.size, until, version)
        table = self._book.consumed[version >= quick.BY_ID]
        if topics is None or not all(topic in table for topic in topics):
            return False
        self._pending.ask(Asked(FETCH, version, correlation))
        return True


class Fine(NamedTuple):
    """What the last accepted answer to Produce has in common with most of a producer's: its `size`,
    all bytes between its correlation id and the offset of its one batch, and all behind that; the
    request, and the `partition`."""

    size: int
    lead: bytes
    rest: bytes
    asked: Asked
    partition: int


_NOT_FINE = Fine(-1, b"", b"", _UNASKED, 0)

_OFFSET = 8
"""Bytes of the offset of a batch."""


class Answers(_Scanner):
    """Scans answers; those to Fetch pass. `over`: accounts that have used up their allowance.

    An answer to Fetch tells the client for how long its messages have it wait. The head of one that
    a read cuts goes on before these are counted, so it tells what earlier answers owe.
    """

    __slots__ = (
        "_book",
        "_fine",
        "_pending",
        "_says_at",
        "_services",
        "_substitutes",
        "_throttle",
        "_traffic",
        "_version",
        "over",
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
        self._traffic = _NOTHING
        self._version = 0
        self._fine = _NOT_FINE
        self._says_at = 0  # where in the chunk the answer that passes says how long; 0: cut off
        self.over: dict[Account, None] = {}

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Mostly a chunk to a producer is one answer like the last one."""
        if self._stream is None and not (self._rest or self.raw):
            pos = self._accept(self._fine, chunk, start, end)
            if pos >= end:
                self.stop = 0
                return end
            start = pos
        return super().scan(chunk, start, end)

    def _accept(self, fine: Fine, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the answers that are like the last one and begin at `pos`, and return the offset
        behind them; `pos`: none passes. Flat, because it runs for each answer."""
        size, lead, rest, like, partition = fine
        if end - pos < size or size < 0 or self._book.has_new or len(self._substitutes):
            return pos
        (account,), pending = like.accounts, self._pending
        at_offset = ANSWER.size + len(lead)
        began = pos
        while end - pos >= size and not account.held:
            length, correlation = ANSWER.unpack_from(chunk, pos)
            if length != size - SIZE.size or not chunk.startswith(lead, pos + ANSWER.size):
                break
            if not chunk.startswith(rest, pos + at_offset + _OFFSET):
                break
            if pending.alike(correlation, like) is None:
                break
            pending.answered()
            account.receipts += 1
            pos += size
        if pos > began and pos == end:
            at = pos - size + at_offset
            self._goes_on(account, partition, int.from_bytes(chunk[at : at + _OFFSET], signed=True))
        return pos

    def go_on(self, head: bytes) -> bytes:
        """Let the answer pass at whose head the session was asked; return what has to follow it."""
        size, correlation = ANSWER.unpack(head)
        version = self._pending.next(correlation).version
        self._pass(size, version)
        return self._pending.answered()

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
                self._learn(asked, chunk, pos, SIZE.size + size, last=pos + SIZE.size + size == end)
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
            self._tell(chunk, self.over, end)
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
            if account is not None and account.ends is not None:
                account.ends.update(it.ends)

    def _learn(self, asked: Asked, chunk: bytearray, pos: int, size: int, *, last: bool) -> None:
        """Learn how an accepted answer looks, if it has one partition. `last`: of a read."""
        found = quick.base(chunk, pos + ANSWER.size, asked.version)
        if found is None:
            return
        lead = bytes(chunk[pos + ANSWER.size : found.at])
        rest = bytes(chunk[found.at + _OFFSET : pos + size])
        self._fine = Fine(size, lead, rest, asked, found.partition)
        if last:
            self._goes_on(asked.accounts[0], found.partition, found.offset)

    def _goes_on(self, account: Account, index: int, base: int) -> None:
        """Note that a partition goes on behind a batch. The last answer of a read says enough, and
        those before it are left alone, as they are many."""
        ends = account.ends
        if ends is not None:
            ends[index] = max(ends.get(index, 0), base + 1)

    def _counted(self, account: Account, messages: int, size: int) -> bool:
        """Count what an answer has of a topic; return whether its allowance is used up."""
        account.count(messages)
        account.bytes += size
        if account.held:
            self.over[account] = None
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
        self._says_at = 0


def _schemas(key: int) -> tuple[Schema, Schema]:
    found = api(key)
    assert found is not None
    return found.request, found.response


_REQUEST, _ANSWER = _schemas(PRODUCE)[0], _schemas(FETCH)[1]
_LAST_FETCH = _schemas(FETCH)[0].last
_FETCH_NAME = "Fetch"
