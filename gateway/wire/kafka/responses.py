"""The scanner of responses. Answers to Fetch pass, and the scanner counts them as they come.
Answers to Produce pass too, unless the session has to decide them.

A response to Fetch stops at its head if the gateway has to send a response of its own behind it.
`quick` reads most answers in one go. Successive answers to a producer of one topic differ in little
but their ids and offsets, so the scanner compares each with the last one (`Accepted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.alike import (
    NOT_ACCEPTED,
    NOT_GIVING,
    Accepted,
    Giving,
    learn_accepted,
    learn_giving,
)
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.in_flight import Asked, InFlight
from gateway.wire.kafka.records import FORMAT, HEAD
from gateway.wire.kafka.scanning import (
    ANSWER,
    NOTHING,
    FrameScanner,
    schemas,
)
from gateway.wire.kafka.stream import Reader, Stream, skip_tags
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle, tell
from gateway.wire.kafka.traffic import (
    BY_ID,
    Original,
    Portion,
    Traffic,
    fetched,
    one_partition,
)
from gateway.wire.services import Services

MOST_ENDS = 200_000
"""Partitions of one topic whose ends are kept, 20 MB. Clusters have no more; what else a broker
names is not noted."""


_LEAST = HEAD - quick.AFTER_LENGTH
"""The least length that a batch may say that it has."""

_ANSWER = schemas(FETCH)[1]
_FETCH_NAME = "Fetch"


class Responses(FrameScanner):
    """Scans answers; those to Fetch pass.

    A response to Fetch tells the client for how long its messages have it wait. The head of one
    that a read cuts goes on before these are counted, so it tells what earlier answers owe.
    """

    __slots__ = (
        "_accepted",
        "_book",
        "_giving",
        "_in_flight",
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
        self._traffic = NOTHING
        self._version = 0
        self._accepted = NOT_ACCEPTED
        self._giving = NOT_GIVING
        self._says_at = 0  # where in the chunk the response that passes says how long; 0: cut off

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        if self._giving is not NOT_GIVING:
            pos = self._give(self._giving, chunk, pos, end)
        if pos < end and self._accepted is not NOT_ACCEPTED:
            pos = self._accept(self._accepted, chunk, pos, end)
        return pos

    def _accept(self, accepted: Accepted, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the responses at `pos` that are like the last accepted one, and return the offset
        behind them; `pos` if none is. Flat, because it runs for each response."""
        size, lead, rest, version, unpack = accepted
        last, accounts = end - size, self._book.produced[version >= quick.BY_ID]
        if pos > last or self._book.has_new or len(self._substitutes) or len(accounts) != 1:
            return pos
        (account,), take = accounts.values(), self._in_flight.take
        like = Asked(PRODUCE, version, 0, (account,))
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

    def _give(self, giving: Giving, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the responses to Fetch at `pos` that are like the last one, and return the offset
        behind them; `pos` if none is. The end of the last one may not have come. Flat, because most
        answers of consumers pass here."""
        head, around, version, lead, middle, topic, unpack = giving
        last = end - head
        if pos > last or self._throttle.consumed or self._book.has_new or len(self._substitutes):
            return pos
        account = self._book.consumed[version >= quick.BY_ID].get(topic)
        if account is None:
            return pos
        take, length_of = self._in_flight.take, quick.length_of
        like = Asked(FETCH, version, 0)
        ends = account.ends
        while pos <= last:
            parts = unpack(chunk, pos)
            size, correlation, led, index, error, offset, between, told, *_ = parts
            length, format, count = parts[8:]
            if led != lead or error or between != middle or format != FORMAT or count <= 0:
                break
            batches, behind = size - around, pos + SIZE.size + size
            at, until = pos + head - HEAD + quick.AFTER_LENGTH + length, behind - quick.TAIL
            if length < _LEAST or at > until or told != length_of(batches):
                break
            if at < until:  # several batches, of which a cut response does not tell all
                more = quick.messages_in(chunk, at, until) if behind <= end else -1
                if more < 0:
                    break
                count += more
            if not take(correlation, like):
                break
            account.messages += count
            account.surplus += count - 1
            account.bytes += batches
            if ends is not None and (index in ends or len(ends) < MOST_ENDS):
                ends[index] = offset
            if account.held:
                self._throttle.used_up(account)
                self._says_at = pos + ANSWER.size + 1
                self._tell(chunk, (account,), end)
                self._says_at = 0
                return behind
            pos = behind
        return pos

    def go_on(self, head: bytes) -> bytes:
        """Let a response to Fetch pass whose head the session has decided. Return the gateway's own
        answers, which follow it."""
        size, correlation = ANSWER.unpack(head)
        version = self._in_flight.next(correlation).version
        self._pass(size, version)
        return self._in_flight.answered()

    def note(self, asked: Asked, frame: bytes) -> None:
        """Note where a partition ends, as a response to Produce says that the session decides: one
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
        in_flight = self._in_flight
        asked = in_flight.next(correlation)
        if asked.key != FETCH and asked.key != PRODUCE:
            self.stop = SIZE.size + size
            return 0
        own = in_flight.precedes_own_answer
        is_plain = not (own or self._book.has_new or len(self._substitutes))
        if asked.key == PRODUCE:
            self.stop = SIZE.size + size  # unless it passes
            return self._begin_produced(asked, chunk, pos, end, size) if is_plain else 0
        if own:
            self.stop = ANSWER.size
            return 0
        if is_plain and asked.version >= quick.FLEXIBLE[FETCH]:
            begun = self._begin_fetched(asked, chunk, pos, end, size)
            if begun is not None:
                return begun
        self._pass(size, asked.version)
        self._pass_head(chunk, pos, end, size, asked.version)
        return ANSWER.size

    def _begin_produced(self, asked: Asked, chunk: bytearray, pos: int, end: int, size: int) -> int:
        """Begin with a response to Produce, see `_begin`: one that says nothing but that all went
        well passes."""
        at, until, version = pos + ANSWER.size, pos + SIZE.size + size, asked.version
        is_flexible = version >= quick.FLEXIBLE[PRODUCE]
        if until > end or not is_flexible or any(it.held for it in asked.accounts):
            return 0
        if not quick.accepted(chunk, at, until, version):
            return 0
        for account in asked.accounts:
            account.receipts += 1
        if len(asked.accounts) == 1:
            self._learn(asked, chunk, pos, end, SIZE.size + size)
        self._in_flight.answered()
        self.stop = 0
        return SIZE.size + size

    def _begin_fetched(
        self, asked: Asked, chunk: bytearray, pos: int, end: int, size: int
    ) -> int | None:
        """Begin with a response to Fetch of the usual form, see `_begin`; None: it has another."""
        if self._is_cut(chunk, pos, end, size, asked.version):
            return 0
        at, until, version = pos + ANSWER.size, pos + SIZE.size + size, asked.version
        head = quick.head(chunk, at, end, until, version)
        if head is not None:
            self._book.sessions.gave(quick.session_given(chunk, at))
        if head is not None and head.batches >= HEAD:
            self._giving = learn_giving(chunk, at, version, head)
            passed = self._give(self._giving, chunk, pos, end)
            if passed > pos:
                return passed - pos
        if until <= end:
            if not self._read_at_once(chunk, at, until, version):
                return None
            self._in_flight.answered()
            return until - pos
        if head is None or head.topic not in self._book.consumed[version >= quick.BY_ID]:
            return None
        self._traffic, self._version = Traffic(), version
        read = one_partition(self._traffic, head.topic, head.batches, head.ends)
        self._stream = Stream(read, head.batches + quick.TAIL)
        self._pass_head(chunk, pos, end, size, version)
        return ANSWER.size + head.size

    def _pass_head(self, chunk: bytearray, pos: int, end: int, size: int, version: int) -> None:
        """Pass the head of a response that is read while it comes. One that is cut says already
        what earlier answers owe."""
        self._in_flight.answered()
        self._says_at = self._place_of_throttle(chunk, pos, version)
        if pos + SIZE.size + size > end:
            self._tell(chunk, self._throttle.consumed, end)
            self._says_at = 0

    def _is_cut(self, chunk: bytearray, pos: int, end: int, size: int, version: int) -> bool:
        """Return whether the chunk cuts the head of a response that begins like the last one: with
        the bytes that follow, it is read in one go."""
        giving, at = self._giving, pos + ANSWER.size
        if version != giving.version or not end - pos < giving.head <= SIZE.size + size:
            return False
        return giving.lead.startswith(bytes(chunk[at : min(end, at + len(giving.lead))]))

    def _place_of_throttle(self, chunk: bytearray, pos: int, version: int) -> int:
        """Return where a response of Fetch says how long the client is held; 0: nobody can tell."""
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

    def _read_at_once(self, chunk: bytearray, at: int, end: int, version: int) -> bool:
        """Count a whole answer to Fetch whose head ends at `at`, if it is of the usual form and
        nothing in it has to change."""
        found = quick.fetched(chunk, at, end, version)
        if found is None:
            return False
        table = self._book.consumed[version >= quick.BY_ID]
        if not all(it.topic in table for it in found):
            return False
        self._book.sessions.gave(quick.session_given(chunk, at))
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
        like = learn_accepted(chunk, pos, size, asked.version)
        if like is None:
            return
        if len(self._book.produced[asked.version >= quick.BY_ID]) == 1:
            self._accepted = like
        if pos + size == end:
            *_, partition, _, offset, _ = like.unpack(chunk, pos)
            self._appended(asked.accounts[0], partition, offset)

    def _appended(self, account: Account, partition: int, offset: int) -> None:
        """Note that a partition has a batch at this offset, so that it ends behind it. The scanner
        notes the last response of a read alone: those before it are many, and say less."""
        ends = account.ends
        if ends is not None and offset >= ends.get(partition, 0) and len(ends) < MOST_ENDS:
            ends[partition] = offset + 1

    def _counted(self, account: Account, messages: int, size: int) -> bool:
        """Count what a response has of a topic; return whether its allowance is used up."""
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
        yield from fetched(version, self._traffic, self._restore)

    def _restore(self, topic: bytes) -> Original | None:
        """Return what the client gets in place of a topic; None: it has an account. A broker goes
        on with the topics of a session, whatever has become of the client's rights since."""
        original = self._substitutes.original(topic)
        if original is not None:
            return original
        found = self._book.use(Action.CONSUME, topic, by_id=self._version >= BY_ID[FETCH])
        if isinstance(found, ErrorCode):
            return Original(topic, found)
        return Original(topic, ErrorCode.UNKNOWN_TOPIC) if found is STRAY else None

    def _passed(self, chunk: bytearray) -> None:
        by_id, traffic = self._version >= BY_ID[FETCH], self._traffic
        self._book.sessions.gave(traffic.session)
        for error in traffic.errors:
            self._services.answered_by_error(_FETCH_NAME, error)
        held: list[Account] = []
        for portion in traffic.portions:
            # Mostly the account that `_restore` has opened; it may have been closed since.
            account = self._book.use(Action.CONSUME, portion.topic, by_id=by_id)
            if not portion.messages or not isinstance(account, Account):
                continue
            if self._counted(account, portion.messages, portion.size):
                held.append(account)
        self._fetched(traffic.portions, self._book.consumed[by_id])
        self._tell(chunk, held, len(chunk))
        self._traffic = NOTHING
        self._says_at = 0
