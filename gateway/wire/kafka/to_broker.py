# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""The scanner of requests: Produce passes while it arrives and is counted, Fetch passes if all its
topics have accounts, and all other requests stop.

Theory of operation
===================
A Produce request is read piece by piece, and every topic, partition and batch of it is met. Between
two pieces the scanner's state is a few numbers: how many topics, partitions and tagged fields
follow, and how many bytes of the partition's batches and of the frame. A piece that the chunk's end
cuts is offered again with the bytes that follow.

Nothing passes for which no account is open. So before the first byte of a frame passes, its topics
are looked up, as far as they have come:

- A frame that is whole in the chunk is walked twice: for its topics, then to count. If the client
  may not use one of them, the frame stops, and the session takes out what is denied. So does a
  frame with more than a few new topics, whose accounts the session opens in slices.
- Of a frame that the chunk's end cuts, the only topic stands at the begin.
- A cut frame with several topics passes if the connection has as many accounts: clients send to the
  same topics again and again. Otherwise the frame stops, and the session collects it. So it does
  once the client was denied a topic.
- A cut frame that is too large to be collected passes up to its first topic without an account, if
  the client may use the first of all, or that is not known yet.

A topic without an account within a frame that passes already stops alone, by its name, until the
session knows the client's right to it. If there is none, the connection ends: the broker does
nothing with a part of a frame.

A frame whose accounts lack allowance for it stops at its head, and passes once they had their turn.
So where limits apply a frame of several topics is read whole, as only then their sizes are known.

Sources: the schemas of Produce and Fetch; KIP-482 (tagged fields), KIP-516 (topic ids).
"""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire import octets
from gateway.wire.account import Account, Action
from gateway.wire.kafka import pieces
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.frames import LONGEST_CLIENT
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.scanner import BaseScanner

_PRODUCE = PRODUCE
_FETCH = FETCH

_REQUEST = 12
"""Bytes of a request up to its client id: size, API key, version, correlation id."""

_SIZE = 4
_ID = 16  # bytes of a topic's id
_LONGEST_CLIENT = LONGEST_CLIENT

LONGEST_TEXT = 4096
"""Bytes of a text that is waited for: names of topics have 249, of transactions rarely 100."""

MOST_TOPICS = 10_000
"""Topics of one frame. A broker leads some thousands of partitions."""

_MOST_TAGS = 16
"""Tagged fields of one struct. Produce has none; what passes of them is not counted."""

_LONGEST_TEXT = LONGEST_TEXT
_MOST_TOPICS = MOST_TOPICS
_MOST_NEW = 4
"""Accounts that a scan opens at once, of up to 0.5 ms each. The session opens more in slices."""

LAST_PRODUCE = 13
LAST_FETCH = 18
FLEXIBLE_PRODUCE = 9
FLEXIBLE_FETCH = 12
BY_ID = 13
"""Versions, which a test compares with the schemas: the last ones known here, the first with
compact lengths and tagged fields, and of both APIs the first that names topics by ids."""

_LAST_PRODUCE = LAST_PRODUCE
_LAST_FETCH = LAST_FETCH
_FLEXIBLE_PRODUCE = FLEXIBLE_PRODUCE
_FLEXIBLE_FETCH = FLEXIBLE_FETCH
_BY_ID = BY_ID
_WITH_TRANSACTIONS = 3

_BORDER = 0
_TOPIC = 1
_PARTITION = 2
_BATCH = 3
_TAGS = 4
_END = 5
"""The piece that is read next; `_BORDER`: a frame begins."""

_COUNT = -1  # of tagged fields, which is read next

TAIL = 3
"""Bytes behind the last batch: no tagged fields, of the partition, the topic and the frame. If
others stood there, nobody could read the frame; so they pass with the batch."""

_TAIL = TAIL

_BEHIND = "bytes behind a request of Produce"
_TORN = "a request of Produce whose parts do not fit into it"


class ToBrokerScanner(BaseScanner):
    """Scans requests, see the module.

    `raw`: frames are bare SASL tokens without heads, as after SaslHandshake 0; the scanner halts at
    each of them. `stops`: each request of Produce (at its head) or Fetch stops, so that the session
    decides when it goes on. `passes`: the next request of Produce does not stop for that. `within`:
    the scanner stopped at a topic within a request, and did so `halts` times. `collects`: cut
    requests of several topics are collected, because the client was denied a topic, or a limit
    applies. `overdrawn`: the request at which the scanner stopped waits, or has waited, until its
    accounts have had their turn.
    `collected_bound`: bytes of the largest request that the session collects.
    """

    __slots__ = (
        "_acks",
        "_after",
        "_book",
        "_bytes",
        "_collected_bound",
        "_has_any",
        "_in_flight",
        "_is_closed",
        "_is_cut",
        "_is_id",
        "_known",
        "_messages",
        "_part",
        "_partitions",
        "_records",
        "_refused",
        "_seen",
        "_tags",
        "_throttle",
        "_topic",
        "_topics",
        "_version",
        "account",
        "collects",
        "halts",
        "overdrawn",
        "passes",
        "raw",
        "stops",
        "within",
    )

    collects: bool
    halts: int
    overdrawn: bool
    passes: bool
    raw: bool
    stops: bool
    within: bool
    account: Account | None
    _acks: int
    _after: int
    _book: Book
    _bytes: int
    _collected_bound: int
    _has_any: bool
    _in_flight: InFlight
    _is_closed: bool
    _is_cut: bool
    _is_id: bool
    _known: Account | None
    _messages: int
    _part: int
    _partitions: int
    _records: int
    _refused: bool
    _seen: set[Account | None]
    _tags: int
    _throttle: Throttle
    _topic: bytes
    _topics: int
    _version: int

    def __init__(
        self, book: Book, in_flight: InFlight, throttle: Throttle, collected_bound: int
    ) -> None:
        super().__init__()
        self._collected_bound = collected_bound
        self._book = book
        self._in_flight = in_flight
        self._throttle = throttle
        self.stops = self.passes = self.raw = self.within = self.collects = False
        self.overdrawn = False
        self.halts = 0
        # Of the request that passes: its version and acks; topics, partitions and tagged fields
        # that follow, and the piece behind these fields; bytes of the partition's batches; what was
        # counted of the topic, and its account.
        self._part = self._after = _BORDER
        self._version = self._acks = self._topics = self._partitions = self._records = 0
        self._tags = _COUNT
        self._messages = self._bytes = 0
        self.account = None
        self._topic = b""  # the last one, by its name or its id, and its account
        self._is_id = False
        self._known = None
        self._is_closed = False  # the account of the topic that passes was closed
        self._is_cut = False  # the request that passes came in parts
        self._has_any = False  # the topic that passes has partitions
        self._seen = set()  # accounts of the request that passes, if it has several topics
        self._refused = False  # the client may not use the request's transaction

    def scan(self, chunk: bytearray, start: int, end: int) -> int:  # noqa: C901 - flat: the hot loop
        """See `contract.Scanner`."""
        data = chunk
        self.stop = 0
        self.within = False
        frame_end = start + self.owed
        part = self._part
        at = frame_end if part == _BORDER else start + self.skips
        flexible = self._version >= _FLEXIBLE_PRODUCE
        size = 0 if flexible else 4  # of lengths
        tail = _TAIL if flexible else 0
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
                if batch < 0 or batch > self._records:
                    raise PeerError("a batch that is torn")
                self._messages += messages
                self._bytes += batch
                self._records -= batch
                at += batch
                is_last = self._records == 0 and self._partitions == 0 and self._topics == 0
                if is_last and frame_end - at == tail:
                    self._count()
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
                    value, behind = octets.varint(data, behind, here)
                    if behind > 0 and value <= _LONGEST_TEXT and value <= frame_end - behind:
                        self._tags -= 1
                        at = behind + value
                        continue
                if behind < 0:
                    break
                raise PeerError(_TORN)
            elif part == _PARTITION:
                if self._partitions == 0:
                    self._count()
                    self._after = _TOPIC
                    part = _TAGS
                    continue
                records, behind = pieces.length(data, at + 4, here, size)
                if behind == 0:
                    break
                if behind < 0 or records > frame_end - behind:
                    raise PeerError(_TORN)
                self._partitions -= 1
                self._records = records if records > 0 else 0
                at = behind
                part = _BATCH
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
                if self.account is None or (self._is_cut and self.account.is_held()):
                    self.within = True
                    self.halts += 1
                    self.stop = behind - at
                    break
                if self.account in self._seen:
                    raise PeerError("a topic twice in a request of Produce")
                self._seen.add(self.account)
                self.halts = 0
                self._topics -= 1
                self._partitions = partitions if partitions > 0 else 0
                self._has_any = partitions > 0
                at = behind
                part = _PARTITION
            elif part == _END:
                if at != frame_end:
                    raise PeerError(_BEHIND)
                part = _BORDER
            else:
                if end - at < _SIZE:
                    break
                total = octets.i32(data, at)
                if total < 0:
                    raise PeerError(f"a frame of {total} bytes")
                frame_end = at + _SIZE + total
                if self.raw:
                    self.stop = _SIZE + total
                    break
                if total < _REQUEST - _SIZE:
                    raise PeerError("a request without a head")
                if end - at < _REQUEST:
                    break
                behind = self._begin(chunk, at, end, frame_end)
                if behind == 0:
                    break
                at = behind
                part = self._part
                flexible = self._version >= _FLEXIBLE_PRODUCE
                size = 0 if flexible else 4
                tail = _TAIL if flexible else 0
        if part != _BORDER and at <= end and frame_end <= end and self.stop == 0:
            raise PeerError(_TORN)
        cleared = at if at < end else end
        self._part = part
        self.owed = (at if part == _BORDER else frame_end) - cleared
        self.skips = at - cleared
        return cleared

    # -- the begin of a frame ----------------------------------------------------------------

    def _begin(self, chunk: bytearray, at: int, end: int, frame_end: int) -> int:
        """Begin with the frame at `at`. Return the offset up to which it passes now; 0 if it stops,
        or if too few bytes have come to tell."""
        key = octets.u16(chunk, at + 4)
        version = octets.u16(chunk, at + 6)
        self._part = _BORDER
        if key == _PRODUCE and version <= _LAST_PRODUCE:
            if self._in_flight.is_full() or (self.stops and not self.passes):
                self.stop = _REQUEST
                return 0
            return self._begin_produce(chunk, at, end, frame_end, version)
        is_fetch = key == _FETCH and version <= _LAST_FETCH and frame_end <= end
        if is_fetch and self._may_fetch(chunk, at, frame_end, version):
            self._in_flight.passes(_FETCH, version, octets.i32(chunk, at + 8))
            return frame_end
        return self._halt(at, frame_end)

    def _begin_produce(  # noqa: C901 - flat: it runs for each request
        self, chunk: bytearray, begin: int, end: int, frame_end: int, version: int
    ) -> int:
        """Read the head of a Produce request, and look its topics up as far as they have come."""
        here = end if end < frame_end else frame_end
        flexible = version >= _FLEXIBLE_PRODUCE
        self._refused = False
        at = self._head(chunk, begin, here, 1 if flexible else 0)
        if at > 0 and version >= _WITH_TRANSACTIONS:
            at = self._read_transaction(chunk, at, here, 0 if flexible else 2)
        topics = behind = 0
        if at > 0:
            topics, behind = pieces.length(chunk, at + 6, here, 0 if flexible else 4)
        if behind < 0 or topics > _MOST_TOPICS or (behind == 0 and here == frame_end and at >= 0):
            raise PeerError(_TORN)
        if behind == 0 and at >= 0:
            return 0
        if at < 0 or topics < 0 or self._refused:
            return self._halt(begin, frame_end)
        self._version, self._topics, self._part = version, topics, _TOPIC
        first = behind
        if topics == 1:
            name_end, partitions = self._find(chunk, behind, here), 0
            if name_end > 0:
                partitions, behind = pieces.length(chunk, name_end, here, 0 if flexible else 4)
            if behind < 0 or (frame_end <= end and (name_end == 0 or behind == 0)):
                raise PeerError(_TORN)
            if name_end == 0 or behind == 0:
                self._part = _BORDER
                return 0
            self._topics = 0
            self._partitions = partitions if partitions > 0 else 0
            self._has_any = partitions > 0
            self._part = _PARTITION
            passes = self.account is not None
            self._note_needs(frame_end - behind)
        elif frame_end <= end:
            passes = self._may_use_all(chunk, behind, frame_end, topics)
        else:
            passes = not self.collects and topics <= len(self._book.produced[version >= _BY_ID])
        if not passes and frame_end > end and frame_end - begin > self._collected_bound:
            if topics > 1 and self._find(chunk, first, here) == 0:
                self._part = _BORDER
                return 0
            behind = first
            passes = self._begins_large(topics)
        if not passes:
            self._part = _BORDER
            return self._halt(begin, frame_end)
        if not self.overdrawn and self._throttle.produced:
            return self._overdraw()
        self._acks = octets.i16(chunk, at)
        self.passes = self.overdrawn = False
        self._is_cut = frame_end > end
        if self._part == _TOPIC:
            self._seen = set()
        if self._acks != 0:
            self._in_flight.passes(_PRODUCE, version, octets.i32(chunk, begin + 8))
        return behind

    def _begins_large(self, topics: int) -> bool:
        """Begin with the topics of a request that is too large to be collected; return whether it
        may pass up to the first of them."""
        self._topics = topics
        self._part = _TOPIC
        return self.account is not None or bool(self._book.undecided)

    def _note_needs(self, size: int) -> None:
        """Note that a request of one topic has to wait if its account lacks `size` bytes."""
        account = self.account
        if account is not None and not self.overdrawn and account.lacks(size):
            self._throttle.lacks(account, size)

    def _overdraw(self) -> int:
        """Stop at the head of a request until its accounts have had their turn."""
        self._part = _BORDER
        self.overdrawn = self.stops = self.collects = True
        self.stop = _REQUEST
        return 0

    def _halt(self, begin: int, frame_end: int) -> int:
        self.stop = frame_end - begin
        return 0

    def _head(self, chunk: bytearray, begin: int, end: int, tag: int) -> int:
        """Return the offset of the body of the request at `begin`: 0 if the head has not come, -1
        if it has tagged fields, which no client sends. `tag`: 1 if it may have them."""
        length, at = pieces.length(chunk, begin + _REQUEST, end, 2)
        if length > _LONGEST_CLIENT or at < 0:
            raise PeerError(f"a client id of {length} bytes")
        if length > 0:
            at += length
        if at == 0 or at > end:
            return 0
        if tag == 0:
            return at
        if at == end:
            return 0
        return at + 1 if chunk[at] == 0 else -1

    def _read_transaction(self, chunk: bytearray, at: int, end: int, size: int) -> int:
        """Note whether the client may use the transactional id at `at`. Return the offset behind
        the id, 0 if it has not come. `size`: bytes of its length."""
        length, begin = pieces.length(chunk, at, end, size)
        if begin < 0 or length > _LONGEST_TEXT:
            raise PeerError(f"a transactional id of {length} bytes")
        if length < 0 or begin == 0:
            return begin
        if begin + length > end:
            return 0
        transaction = octets.piece(chunk, begin, begin + length)
        self._refused = self._book.refuses_transaction(transaction) is not None
        return begin + length

    # -- topics ------------------------------------------------------------------------------

    def _find(self, chunk: bytearray, at: int, end: int) -> int:
        """Look up the account of the topic that is named at `at`: None if the client may not use
        the topic. Return the offset behind the name, 0 if the end cuts the name."""
        by_id = self._version >= _BY_ID
        if by_id:
            behind = at + _ID
            if behind > end:
                return 0
        else:
            length, at = pieces.length(
                chunk, at, end, 0 if self._version >= _FLEXIBLE_PRODUCE else 2
            )
            if at < 0 or length > _LONGEST_TEXT or (length < 0 and at > 0):
                raise PeerError("a topic without a name, or with one that is too long")
            behind = at + length
            if at == 0 or behind > end:
                return 0
        self._is_closed = False
        is_known = self._known is not None and by_id == self._is_id
        if is_known and octets.same(chunk, at, behind, self._topic):
            self.account = self._known
            return behind
        topic = octets.piece(chunk, at, behind)
        table = self._book.produced[by_id]
        account = table.get(topic)
        if account is None:
            used = self._book.use(Action.PRODUCE, topic, by_id=by_id)
            if isinstance(used, Account) and used is not STRAY:
                account = used
        self.account = account
        if account is not None:
            self._topic = topic
            self._is_id = by_id
            self._known = account
        return behind

    def forget(self, account: Account) -> None:
        """Forget the account of the last topic: `account` was closed."""
        self._known = None
        self.overdrawn = False  # a new account has to have its turn
        if account is self.account:
            self._is_closed = True

    def finish(self) -> None:
        """Count what has come of a topic whose rest never comes."""
        if self._messages > 0:
            self._count()

    def _may_use_all(  # noqa: C901 - flat: it runs for each request
        self, chunk: bytearray, at: int, end: int, topics: int
    ) -> bool:
        """Return whether the client may use all topics of a whole request, opening accounts. A
        request with tagged fields, or with many new topics, is left to the session."""
        if topics > len(self._book.produced[self._version >= _BY_ID]) + _MOST_NEW:
            return False
        data = chunk
        flexible = self._version >= _FLEXIBLE_PRODUCE
        size = 0 if flexible else 4
        tag = 1 if flexible else 0
        while topics > 0:
            topics -= 1
            at = self._find(chunk, at, end)
            if at == 0:
                raise PeerError(_TORN)
            if self.account is None:
                return False
            partitions, at = pieces.length(data, at, end, size)
            topic_size = 0
            while partitions > 0:
                partitions -= 1
                records, at = pieces.length(data, at + 4, end, size)
                if at > 0 and records > 0:
                    at += records
                    topic_size += records
                if at <= 0 or at + tag > end:
                    raise PeerError(_TORN)
                if flexible and data[at] != 0:
                    return False
                at += tag
            if not self.overdrawn and self.account.lacks(topic_size):
                self._throttle.lacks(self.account, topic_size)
            if at <= 0 or at + tag > end:
                raise PeerError(_TORN)
            if flexible and data[at] != 0:
                return False
            at += tag
        if at + tag > end:
            raise PeerError(_TORN)
        if flexible and data[at] != 0:
            return False
        if at + tag < end:
            raise PeerError(_BEHIND)
        return True

    def _count(self) -> None:
        """Count what the request has of the topic that ends here. Nothing is counted on an account
        that was closed meanwhile."""
        account = self.account
        if account is not None and self._has_any and not self._is_closed:
            self.count(account, self._messages, self._bytes, self._acks)
        self._messages = self._bytes = 0

    def count(self, account: Account, messages: int, size: int, acks: int) -> None:
        """Count what a request of Produce has of a topic. A topic without a message counts as one,
        because its response is a receipt. `size`: bytes of batches."""
        account.add(messages if messages > 0 else 1, size)
        if acks == 0:
            account.receipts += 1
        if account.lacks(size):  # another one like it
            account.hold()
            self.collects = True

    # -- Fetch -------------------------------------------------------------------------------

    def _may_fetch(self, chunk: bytearray, begin: int, end: int, version: int) -> bool:
        """Return whether a whole request of Fetch may pass: its fetch session is one of this
        connection, all its topics have accounts, and no account has used up its allowance."""
        data = chunk
        book = self._book
        if self.stops or self._throttle.consumed or book.has_questions or self._in_flight.is_full():
            return False
        flexible = version >= _FLEXIBLE_FETCH
        tag = 1 if flexible else 0
        at = self._head(chunk, begin, end, tag)
        if at <= 0 or end - at < 25:
            return False
        if version < 15:
            if octets.i32(data, at) != -1:  # a replica
                return False
            at += 4
        at += 8 + (4 if version >= 3 else 0) + (1 if version >= 4 else 0)
        session = 0
        if version >= 7:
            session = octets.i32(data, at)
            at += 8
        at = self._pass_wanted(chunk, at, end, version)
        if at > 0 and version >= 7:
            forgotten, at = pieces.length(data, at, end, 0 if flexible else 4)
            if forgotten > 0:
                return False
        if at > 0 and version >= 11:
            length, at = pieces.length(data, at, end, 0 if flexible else 2)
            if at > 0 and length > 0:
                at += length
        if at <= 0 or at + tag != end or (flexible and data[at] != 0):
            return False
        return book.sessions.may_fetch(session)

    def _pass_wanted(self, chunk: bytearray, at: int, end: int, version: int) -> int:
        """Return the offset behind the topics of a request of Fetch; 0 if one has no account, or if
        they are torn or have tagged fields."""
        data = chunk
        flexible = version >= _FLEXIBLE_FETCH
        by_id = version >= _BY_ID
        table = self._book.consumed[by_id]
        size = 0 if flexible else 4
        tag = 1 if flexible else 0
        # Index, offset and size; the leader's epoch, that of what was fetched, the log's begin.
        each = 16 + (4 if version >= 9 else 0) + (4 if version >= 12 else 0)
        each += (8 if version >= 5 else 0) + tag
        topics, at = pieces.length(data, at, end, size)
        while topics > 0:
            topics -= 1
            if by_id:
                behind = at + _ID
            else:
                length, at = pieces.length(data, at, end, 0 if flexible else 2)
                if at <= 0 or length < 0:
                    return 0
                behind = at + length
            if behind > end or octets.piece(chunk, at, behind) not in table:
                return 0
            partitions, at = pieces.length(data, behind, end, size)
            if at <= 0:
                return 0
            while partitions > 0:
                partitions -= 1
                at += each
                if at > end or (flexible and data[at - 1] != 0):
                    return 0
            at += tag
            if at > end or (flexible and data[at - 1] != 0):
                return 0
        return at if at > 0 else 0
