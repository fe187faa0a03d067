# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of responses: those to Fetch pass while they arrive and are counted, those to Produce
pass if they say that all went well, and all others stop.

Theory of operation
===================
As in `to_broker`, a response to Fetch is read piece by piece, and every topic, partition and batch
of it is met. What has to be different for the client is written in place, so nothing of a frame is
held:

- A substitute (see `substitutes`) becomes the name that the client knows, with an error for each
  partition. The same error is written for a topic that the client may not use any more, which a
  broker's fetch session may still have. Batches of both become zeros.
- The addresses of new leaders stand at the end of a response, in a tagged field (KIP-951), and the
  gateway's may be longer or shorter. So the field becomes one that no client knows, full of zeros.
  The client asks for metadata then, as it did before responses had leaders.
- The time for which the client is throttled, if its allowance is used up. The begin of a response
  that the chunk's end cuts passes before the response is counted, so it states what earlier
  responses owe.

The batches of a partition pass only if their topic's account has allowance for all of them. If not,
the scanner stops before them, until the account has had its turn for the rest of the response: no
request tells how many bytes it brings.

A scan that only looks (`looks`) changes nothing. It ends before what would have to be changed.

Sources: the schemas of Produce and Fetch; KIP-227 (fetch sessions), KIP-482, KIP-516, KIP-951.
"""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.account import Account, Action
from gateway.wire.kafka import pieces
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.substitutes import Original, Substitutes
from gateway.wire.kafka.throttle import Throttle, tell
from gateway.wire.kafka.to_broker import (
    BY_ID,
    FLEXIBLE_FETCH,
    FLEXIBLE_PRODUCE,
    LONGEST_TEXT,
    MOST_TOPICS,
    TAIL,
)
from gateway.wire.scanner import BaseScanner
from gateway.wire.services import Services

MOST_ENDS = 200_000
"""Partitions of one topic whose ends are kept, 20 MB. Clusters have no more; what else a broker
names is not noted."""

_MOST_ENDS = MOST_ENDS
_PRODUCE = PRODUCE
_FETCH = FETCH
_FETCH_NAME = "Fetch"

_ANSWER = 8
"""Bytes of a response's head: size, correlation id."""

_SIZE = 4
_ID = 16  # bytes of a topic's id

_WAITED_FOR = 64 * 1024
"""Bytes of the largest response to Produce that is waited for, if the chunk's end cuts it. One of a
partition takes 60."""

_LONGEST_TEXT = LONGEST_TEXT
_MOST_TOPICS = MOST_TOPICS
_MOST_TAGS = 1000
"""Tagged fields of one struct. Kafka has three at most."""

_TAIL = TAIL
_FLEXIBLE_PRODUCE = FLEXIBLE_PRODUCE
_FLEXIBLE_FETCH = FLEXIBLE_FETCH
_BY_ID = BY_ID
_WITH_SESSIONS = 7
_WITH_REPLICA = 11
_WITH_LEADERS = 16

LEADERS = 0
NOBODYS = 127
"""The number of the leaders' tagged field, and one that no field of Fetch has; both take one byte.
"""

_LEADERS = LEADERS
_NOBODYS = NOBODYS

_BORDER = 0
_BODY = 1
_TOPIC = 2
_PARTITION = 3
_ABORTED = 4
_RECORDS = 5
_BATCH = 6
_BLANK = 7
_TAGS = 8
_END = 9
"""The piece that is read next; `_BORDER`: a frame begins."""

_COUNT = -1  # of tagged fields, which is read next

_TORN = "a response to Fetch whose parts do not fit into it"


class ToClientScanner(BaseScanner):
    """Scans responses, see the module.

    `raw`: frames are bare SASL tokens without heads, as after SaslHandshake 0; the scanner halts at
    each of them. `within`: the scanner stopped within a response, whose rest waits for allowance.
    `passes`: that has had its turn.
    """

    __slots__ = (
        "_aborted",
        "_after",
        "_book",
        "_bytes",
        "_error",
        "_goes_on",
        "_in_flight",
        "_is_id",
        "_known",
        "_messages",
        "_original",
        "_part",
        "_partitions",
        "_records",
        "_refused",
        "_services",
        "_session",
        "_substitutes",
        "_tags",
        "_throttle",
        "_topic",
        "_topics",
        "_version",
        "_waits",
        "account",
        "passes",
        "raw",
        "within",
    )

    passes: bool
    raw: bool
    within: bool
    _aborted: int
    account: Account | None
    _after: int
    _book: Book
    _bytes: int
    _error: int
    _goes_on: bool
    _in_flight: InFlight
    _is_id: bool
    _known: Account | None
    _messages: int
    _original: Original | None
    _part: int
    _partitions: int
    _records: int
    _refused: int
    _services: Services
    _session: int
    _substitutes: Substitutes
    _tags: int
    _throttle: Throttle
    _topic: bytes
    _topics: int
    _version: int
    _waits: bool

    def __init__(
        self,
        services: Services,
        book: Book,
        in_flight: InFlight,
        substitutes: Substitutes,
        throttle: Throttle,
    ) -> None:
        super().__init__()
        self._services = services
        self._book = book
        self._in_flight = in_flight
        self._substitutes = substitutes
        self._throttle = throttle
        self.raw = self.within = self.passes = False
        self._waits = False  # the rest of the response that passes waits, or had its turn
        self._session = 0  # the fetch session that the last response named
        # Of the response that passes: its version; topics, partitions, aborted transactions and
        # tagged fields that follow, and the piece behind these fields; bytes of the partition's
        # batches; what was counted of the topic, its account, and the error that takes its place;
        # bytes of partitions with errors.
        self._part = self._after = _BORDER
        self._version = self._topics = self._partitions = self._aborted = self._records = 0
        self._tags = _COUNT
        self._messages = self._bytes = self._error = self._refused = 0
        self._goes_on = False  # a part of the topic is counted
        self.account = None
        self._topic = b""  # the last one, by its name or its id, and its account
        self._is_id = False
        self._known = None
        self._original = None

    def scan(self, chunk: bytearray, start: int, end: int) -> int:  # noqa: C901 - flat: the hot loop
        """See `contract.Scanner`."""
        data = chunk
        self.stop = 0
        self.within = False
        frame_end = start + self.owed
        part = self._part
        at = frame_end if part == _BORDER else start + self.skips
        says_at = -1  # where the response that passes states the throttle time; -1: it has passed
        version = self._version
        flexible = version >= _FLEXIBLE_FETCH
        size = 0 if flexible else 4  # of lengths
        while at <= end:
            here = end if end < frame_end else frame_end
            if part == _BATCH:
                if self._records == 0:
                    self._after = _PARTITION
                    part = _TAGS
                    continue
                batch, messages = pieces.batch(data, at, here, self._records)
                if batch == 0:
                    break
                if batch < 0:
                    raise PeerError("a batch that cannot be")
                if (
                    batch > self._records
                ):  # the broker cut the last one, and consumers fetch it again
                    self._bytes += self._records
                    at += self._records
                    self._records = 0
                    continue
                self._messages += messages
                self._bytes += batch
                self._records -= batch
                at += batch
                is_last = self._records == 0 and self._partitions == 0 and self._topics == 0
                if is_last and frame_end - at == (_TAIL if flexible else 0):
                    self._count()
                    self._goes_on = False
                    at = frame_end
                    part = _END
            elif part == _TAGS:
                if not flexible or self._tags == 0:
                    self._tags = _COUNT
                    part = self._after
                    continue
                value, behind = octets.varint(data, at, here)
                if self._tags == _COUNT:
                    if behind > 0 and value <= _MOST_TAGS:
                        self._tags = value
                        at = behind
                        continue
                elif behind > 0:
                    leads = self._after == _END and version >= _WITH_LEADERS and value == _LEADERS
                    if leads and behind != at + 1:
                        raise PeerError(_TORN)
                    value, behind = octets.varint(data, behind, here)
                    if behind > 0 and value <= frame_end - behind:
                        if leads and self.looks:
                            break
                        self._tags -= 1
                        if leads:
                            data[at] = _NOBODYS
                            self._records = value
                            part = _BLANK
                            value = 0
                        at = behind + value
                        continue
                if behind < 0:
                    break
                raise PeerError(_TORN)
            elif part == _PARTITION:
                if self._partitions == 0:
                    self._count()
                    self._goes_on = False
                    self._after = _TOPIC
                    part = _TAGS
                    continue
                # Index, error, high watermark; the last stable offset, the begin of the log.
                offsets = 14 + (8 if version >= 4 else 0) + (8 if version >= 5 else 0)
                if here - at < offsets:
                    break
                aborted = 0
                behind = at + offsets
                if version >= 4:
                    aborted, behind = pieces.length(data, behind, here, size)
                    if behind == 0:
                        break
                if behind < 0 or aborted > (frame_end - behind) // 16:
                    raise PeerError(_TORN)
                if self._error and self.looks:
                    break
                self._note_partition(chunk, at, offsets)
                self._partitions -= 1
                self._aborted = aborted if aborted > 0 else 0
                at = behind
                part = _ABORTED
            elif part == _ABORTED:
                if self._aborted == 0:
                    part = _RECORDS
                elif flexible:
                    if frame_end - at < 16:
                        raise PeerError(_TORN)
                    at += 16
                    self._aborted -= 1
                    self._after = _ABORTED
                    part = _TAGS
                else:
                    at += 16 * self._aborted
                    self._aborted = 0
            elif part == _RECORDS:
                records, behind = pieces.length(
                    data, at + (4 if version >= _WITH_REPLICA else 0), here, size
                )
                if behind == 0:
                    break
                if behind < 0 or records > frame_end - behind:
                    raise PeerError(_TORN)
                if records > 0 and self._error == 0 and not self.passes and self._lacks(records):
                    if not self.looks:
                        self._wait(frame_end - behind)
                        self.stop = behind - at
                    break
                self._records = records if records > 0 else 0
                at = behind
                part = _BATCH
                if self._error:
                    self._after = _PARTITION
                    part = _BLANK
            elif part == _BLANK:
                if self.looks:
                    break
                blank_end = at + self._records
                if blank_end > here:
                    blank_end = here
                octets.blank(data, at, blank_end)
                self._records -= blank_end - at
                at = blank_end
                if self._records > 0:
                    break
                part = _TAGS
            elif part == _TOPIC:
                if self._topics == 0:
                    self._after = _END
                    part = _TAGS
                    continue
                name_end = self._find(chunk, at, here)
                if name_end == 0:
                    break
                partitions, behind = pieces.length(data, name_end, here, size)
                if behind == 0:
                    break
                if behind < 0:
                    raise PeerError(_TORN)
                if self._original is not None:
                    if self.looks:
                        break
                    self._restore(chunk, name_end)
                self._topics -= 1
                self._partitions = partitions if partitions > 0 else 0
                at = behind
                part = _PARTITION
            elif part == _BODY:
                fixed = (4 if version >= 1 else 0) + (6 if version >= _WITH_SESSIONS else 0)
                if here - at < fixed:
                    break
                topics, behind = pieces.length(data, at + fixed, here, size)
                if behind == 0:
                    break
                if behind < 0 or topics > _MOST_TOPICS:
                    raise PeerError(_TORN)
                if version >= 1:
                    says_at = at
                if version >= _WITH_SESSIONS:
                    self._note_session(octets.i16(data, at + 4), octets.i32(data, at + 6))
                self._topics = topics if topics > 0 else 0
                at = behind
                part = _TOPIC
            elif part == _END:
                at = frame_end  # brokers may send more bytes, which clients do not read
                part = _BORDER
                self.passes = self._waits = False
                if self._refused > 0:
                    self._charge_refused()
                if says_at >= 0 and not self.looks and self._throttle.consumed:
                    self._tell(chunk, says_at)
            else:
                if end - at < _SIZE:
                    break
                total = octets.i32(data, at)
                if total < (0 if self.raw else _ANSWER - _SIZE):
                    raise PeerError(f"a frame of {total} bytes")
                if self.raw:
                    self.stop = _SIZE + total
                    break
                if end - at < _ANSWER:
                    break
                frame_end = at + _SIZE + total
                kind = self._in_flight.oldest(octets.i32(data, at + _SIZE))
                version = kind & 0xFFFF
                kind >>= 16
                if kind == _FETCH:
                    if self._in_flight.precedes_own():
                        self.stop = _ANSWER
                        break
                    if self.looks and self._throttle.consumed:
                        break
                    self._in_flight.answered()
                    self._begin(version)
                    part = self._part
                    at += _ANSWER
                    flexible = version >= _FLEXIBLE_FETCH
                    size = 0 if flexible else 4
                    continue
                if kind == _PRODUCE and frame_end > end and total <= _WAITED_FOR:
                    break
                if (
                    kind == _PRODUCE
                    and frame_end <= end
                    and self._is_fine(chunk, at, frame_end, version)
                ):
                    self._receive(chunk, at, frame_end, version)
                    self._in_flight.answered()
                    at = frame_end
                    continue
                self.stop = _SIZE + total
                break
        if part != _BORDER and at <= end and frame_end <= end and not (self.looks or self.within):
            raise PeerError(_TORN)
        if part != _BORDER and says_at >= 0:
            self._count_early()
            if not self.looks and self._throttle.consumed:
                self._tell(chunk, says_at)
        cleared = at if at < end else end
        self._part = part
        self.owed = (at if part == _BORDER else frame_end) - cleared
        self.skips = at - cleared
        return cleared

    def go_on(self, head: bytes) -> bytes:
        """Let a response to Fetch pass whose head the session has decided. Return the gateway's own
        responses, which follow it."""
        kind = self._in_flight.oldest(octets.i32(bytearray(head), _SIZE))
        self._begin(kind & 0xFFFF)
        self.owed = octets.i32(bytearray(head), 0) + _SIZE - _ANSWER
        self.skips = 0
        return self._in_flight.answered()

    def _begin(self, version: int) -> None:
        """Begin with a response to Fetch, behind its head."""
        self._version = version
        self._after = _BODY
        self._part = _TAGS
        self._tags = _COUNT

    # -- responses to Fetch ------------------------------------------------------------------

    def _note_session(self, error: int, session: int) -> None:
        """Note the error of a whole response, and the fetch session that it names."""
        if error != 0:
            self._services.answered_by_error(_FETCH_NAME, error)
        if session != self._session:
            self._session = session
            self._book.sessions.gave(session)

    def _find(self, chunk: bytearray, at: int, end: int) -> int:
        """Look up the account of the topic that is named at `at`, or what the client gets in its
        place. Return the offset behind the name, 0 if the end cuts the name."""
        by_id = self._version >= _BY_ID
        if by_id:
            behind = at + _ID
            if behind > end:
                return 0
        else:
            length, at = pieces.length(chunk, at, end, 0 if self._version >= _FLEXIBLE_FETCH else 2)
            if at < 0 or length > _LONGEST_TEXT or (length < 0 and at > 0):
                raise PeerError("a topic without a name, or with one that is too long")
            behind = at + length
            if at == 0 or behind > end:
                return 0
        self._error = 0
        self._original = None
        is_known = self._known is not None and by_id == self._is_id
        if is_known and octets.same(chunk, at, behind, self._topic):
            self.account = self._known
            return behind
        topic = octets.piece(chunk, at, behind)
        table = self._book.consumed[by_id]
        self.account = table.get(topic)
        if self.account is None:
            self._original = self._find_original(topic)
        if self.account is not None:
            self._topic = topic
            self._is_id = by_id
            self._known = self.account
        return behind

    def forget(self, account: Account) -> None:
        """Forget the account of the last topic: `account` was closed."""
        self._known = None

    def finish(self) -> None:
        """Count what has come of a topic whose rest never comes."""
        self._count()

    def _restore(self, chunk: bytearray, end: int) -> None:
        """Write the name that the client knows in place of the one that ends at `end`, and keep the
        error."""
        original = self._original
        assert original is not None
        chunk[end - len(original.topic) : end] = original.topic
        self._error = original.error

    def _find_original(self, topic: bytes) -> Original | None:
        """Return what the client gets in place of a topic without an account; None if it has one
        now. A broker goes on with the topics of a session, whatever has become of the client's
        rights since."""
        original = self._substitutes.original(topic)
        if original is not None:
            return original
        used = self._book.use(Action.CONSUME, topic, by_id=self._version >= _BY_ID)
        if isinstance(used, ErrorCode):
            return Original(topic, used)
        if used is STRAY:
            return Original(topic, ErrorCode.UNKNOWN_TOPIC)
        self.account = used
        return None

    def _note_partition(self, chunk: bytearray, at: int, size: int) -> None:
        """Note where the partition at `at` ends, or count its error; or write the topic's error.
        `size`: bytes that the response has of it without messages, of which an error has none."""
        error = octets.i16(chunk, at + 4)
        if self._error != 0:
            chunk[at + 4 : at + 6] = self._error.to_bytes(2)
            error = self._error
        if error != 0:
            self._services.answered_by_error(_FETCH_NAME, error)
            self._refused += size
            return
        account = self.account
        ends = account.ends if account is not None else None
        if ends is not None:
            index = octets.i32(chunk, at)
            if index in ends or len(ends) < _MOST_ENDS:
                ends[index] = octets.i64(chunk, at + 6)

    def _charge_refused(self) -> None:
        """Charge the client for the partitions of a response that have errors: a fetch session
        repeats them in each response, so a request of some bytes may get thousands. Brokers' quotas
        count them too."""
        account = self._book.refused(Action.CONSUME)
        if account is not None:
            account.bytes += self._refused
            if account.lacks(self._refused):
                account.hold()
                self._throttle.used_up(account)
        self._refused = 0

    def _count(self) -> None:
        """Count what has come of a topic: one frame of it, also if it is counted in parts."""
        account = self.account
        if account is not None and self._messages > 0:
            account.add(self._messages, self._bytes)
            if self._goes_on:
                account.surplus += 1
            self._goes_on = True
            if account.lacks(self._bytes):  # another one like it
                account.hold()
                self._throttle.used_up(account)
        self._messages = self._bytes = 0

    def _lacks(self, size: int) -> bool:
        """Return whether the topic's account lacks allowance for `size` more bytes, or waits."""
        account = self.account
        return account is not None and (self._waits or account.lacks(self._bytes + size))

    def _wait(self, size: int) -> None:
        """Have the rest of the response, of `size` bytes, wait until its account had its turn."""
        self.within = True
        if not self._waits:
            self._waits = True
            self._count()
            assert self.account is not None
            self._throttle.lacks(self.account, size)

    def _count_early(self) -> None:
        """Count what has come of a topic whose allowance it uses up, so that the begin of the
        response states for how long its client is throttled."""
        account = self.account
        if account is not None and (
            account.messages + self._messages >= account.messages_ceiling
            or account.bytes + self._bytes >= account.bytes_ceiling
        ):
            self._count()

    def _tell(self, chunk: bytearray, at: int) -> None:
        """State at `at` for how long the client is throttled."""
        milliseconds = self._throttle.milliseconds(self._throttle.consumed)
        if milliseconds:
            tell(chunk, at, milliseconds)

    # -- responses to Produce ----------------------------------------------------------------

    def _is_fine(self, chunk: bytearray, at: int, end: int, version: int) -> bool:
        """Return whether a whole response to Produce says that all went well and nothing else, and
        nothing is to be said to the client, so that it passes."""
        if self._in_flight.precedes_own() or self._book.has_new or len(self._substitutes):
            return False
        return self._walk(chunk, at + _ANSWER, end, version, 0)

    def _receive(self, chunk: bytearray, at: int, end: int, version: int) -> None:
        """Count the receipts in a response to Produce, and note where partitions end."""
        self._walk(chunk, at + _ANSWER, end, version, 1)

    def _walk(  # noqa: C901 - flat: it runs for each response
        self, chunk: bytearray, at: int, end: int, version: int, receipts: int
    ) -> bool:
        """Return whether all partitions of a response to Produce are without an error, and all
        topics have accounts with allowance. `receipts`: to count for each topic; 0: only look."""
        data = chunk
        flexible = version >= _FLEXIBLE_PRODUCE
        size = 0 if flexible else 4
        tag = 1 if flexible else 0
        table = self._book.produced[version >= _BY_ID]
        if flexible:
            if at >= end or data[at] != 0:
                return False
            at += 1
        # Index, error, offset; the time, the begin of the log; no errors of records, no text.
        each = 14 + (8 if version >= 2 else 0) + (8 if version >= 5 else 0)
        topics, at = pieces.length(data, at, end, size)
        while topics > 0:
            topics -= 1
            if version >= _BY_ID:
                behind = at + _ID
            else:
                length, at = pieces.length(data, at, end, 0 if flexible else 2)
                if at <= 0 or length < 0:
                    return False
                behind = at + length
            if behind > end:
                return False
            account = table.get(octets.piece(chunk, at, behind))
            if account is None or account.is_held():
                return False
            ends = account.ends if receipts else None
            partitions, at = pieces.length(data, behind, end, size)
            if at <= 0:
                return False
            if partitions > 0:
                account.receipts += receipts
            while partitions > 0:
                partitions -= 1
                if end - at < each or octets.i16(data, at + 4) != 0:
                    return False
                if ends is not None:
                    self._appended(ends, octets.i32(data, at), octets.i64(data, at + 6))
                at += each
                if version >= 8:
                    length, at = pieces.length(data, at, end, size)
                    if at <= 0 or length > 0:
                        return False
                    length, at = pieces.length(data, at, end, 0 if flexible else 2)
                    if at <= 0 or length >= 0:
                        return False
                if at + tag > end or (flexible and data[at] != 0):
                    return False
                at += tag
            if at + tag > end or (flexible and data[at] != 0):
                return False
            at += tag
        at += 4 if version >= 1 else 0
        return at > 0 and at + tag == end and (not flexible or data[at] == 0)

    def _appended(self, ends: dict[int, int], partition: int, offset: int) -> None:
        """Note that a partition has a batch at this offset, so that it ends behind it."""
        if offset >= ends.get(partition, 0) and len(ends) < _MOST_ENDS:
            ends[partition] = offset + 1
