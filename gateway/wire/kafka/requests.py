"""The scanner of requests. Produce requests pass, and the scanner counts them as they come.

A Produce request names its topics behind its head, so it cannot stop where it names one: what is
denied in it is written over (`substitutes`). What concerns the whole request, such as a limit that
an earlier one has used up, stops it at its head, and the session decides when it goes on.

`quick` reads most requests in one go. Successive requests of a producer begin alike, so the scanner
compares their beginning with that of the last one, and reads the batch alone (`Shape`).
"""

from __future__ import annotations

from functools import partial

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.alike import (
    NOT_ASKING,
    NOT_PRODUCING,
    Asking,
    Producing,
    learn_asking,
    learn_producing,
)
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import LONGEST_CLIENT, SIZE
from gateway.wire.kafka.in_flight import Asked, InFlight
from gateway.wire.kafka.records import FORMAT, HEAD
from gateway.wire.kafka.scanning import (
    NO_ACKS,
    NOTHING,
    REQUEST,
    UNASKED,
    FrameScanner,
    schemas,
)
from gateway.wire.kafka.stream import Reader, Stream, length, skip, skip_tags
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.traffic import (
    BY_ID,
    Traffic,
    produced,
)

_NO_ACCOUNTS: list[Account] = []
"""What stands in place of the accounts of a request that passes, while none does."""

_REQUEST = schemas(PRODUCE)[0]
_LAST_FETCH = schemas(FETCH)[0].last


class Requests(FrameScanner):
    """Scans requests: those of Produce pass, and those of Fetch whose topics have accounts.

    `stops`: the session has to decide whether a request of Produce or Fetch may go on.
    """

    __slots__ = (
        "_accounts",
        "_asked",
        "_asking",
        "_book",
        "_in_flight",
        "_producing",
        "_substitutes",
        "_throttle",
        "_traffic",
        "_transacts",
        "stops",
    )

    def __init__(
        self,
        book: Book,
        in_flight: InFlight,
        substitutes: Substitutes,
        throttle: Throttle,
    ) -> None:
        super().__init__()
        self._book = book
        self._in_flight = in_flight
        self._substitutes = substitutes
        self._throttle = throttle
        self._traffic = NOTHING
        self._accounts = _NO_ACCOUNTS  # of the request that passes, by topic
        self._asked = UNASKED
        self._transacts: ErrorCode | None = None  # why the request may not be in its transaction
        self._producing = NOT_PRODUCING
        self._asking = NOT_ASKING
        self.stops = False

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        if self.stops:
            return pos
        if self._asking is not NOT_ASKING:
            pos = self._run_fetches(self._asking, chunk, pos, end)
        if pos < end and self._producing is not NOT_PRODUCING:
            pos = self._run_produces(self._producing, chunk, pos, end)
        return pos

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
        if self.stops or self._in_flight.is_full:
            self.stop = REQUEST.size
            return 0
        if version >= quick.FLEXIBLE[PRODUCE]:
            if self._is_cut(chunk, pos, end, size, version):
                return 0
            passed = 0
            like = learn_producing(self._producing, chunk, pos, end, version)
            if like is not None:
                self._producing = like
                passed = self._run_produces(like, chunk, pos, end) - pos
            passed = passed or self._at_once(chunk, pos, end)
            if passed:
                return passed
        self._pass(size, version, correlation)
        return REQUEST.size

    # -- Produce -----------------------------------------------------------------------------

    def _is_cut(self, chunk: bytearray, pos: int, end: int, size: int, version: int) -> bool:
        """Return whether the chunk cuts the numbers of a request that begins like the last one:
        with the bytes that follow, it is read in one go."""
        last, at = self._producing, pos + REQUEST.size
        if version != last.version or not end - pos < last.layout.size <= SIZE.size + size:
            return False
        return last.lead.startswith(bytes(chunk[at : min(end, at + len(last.lead))]))

    def _run_produces(self, like: Producing, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the requests of one shape that begin at `pos`, and return the offset behind them;
        `pos`: none passes. The end of the last one may not have come. Flat, because most bytes of
        small requests pass here."""
        lead, kind, version, acks, topic, layout = like
        account = self._book.produced[version >= quick.BY_ID].get(topic)
        if account is None:
            return pos
        unpack, least, around, _ = layout
        length_of, ask = quick.length_of, self._in_flight.ask
        accounts, room, last = (account,), self._in_flight.room, end - least
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
                self._throttle.used_up(account)
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
            if not topic:
                raise PeerError("a topic without a name")
            other = self._substitutes.id if by_id else self._substitutes.name
            return other(topic, found)
        self._accounts.append(found)
        return None

    def _passed(self, chunk: bytearray) -> None:
        sent = zip(self._accounts, self._traffic.portions, strict=True)
        accounts = [account for account, it in sent if self._counted(account, it.messages, it.size)]
        _, version, correlation, *_ = self._asked
        self._sent(Asked(PRODUCE, version, correlation, tuple(accounts)), self._traffic.acks)
        self._traffic, self._accounts, self._asked = NOTHING, _NO_ACCOUNTS, UNASKED

    def _counted(self, account: Account, messages: int, size: int) -> bool:
        """Count what a request has of a topic; return whether it has any message."""
        if not messages or account is STRAY:
            return False
        account.count(messages)
        account.bytes += size
        if account.held:
            self._throttle.used_up(account)
            self.stops = True
        return True

    def _sent(self, asked: Asked, acks: int) -> None:
        """Note a request that has passed."""
        if acks != NO_ACKS:
            self._in_flight.ask(asked)
            return
        for account in asked.accounts:
            account.receipts += 1

    # -- Fetch -------------------------------------------------------------------------------

    def _fetches(self, chunk: bytearray, pos: int, end: int, size: int) -> bool:
        """Note a request of Fetch that may pass: all its topics have accounts, and none of these
        has used up its allowance."""
        until = pos + SIZE.size + size
        if until > end or self.stops or self._throttle.consumed or self._in_flight.is_full:
            return False
        if self._book.has_questions:
            return False
        _, _, version, correlation = REQUEST.unpack_from(chunk, pos)
        if not quick.FLEXIBLE[FETCH] <= version <= _LAST_FETCH:
            return False
        wanted = quick.fetches(chunk, pos + REQUEST.size, until, version)
        table = self._book.consumed[version >= quick.BY_ID]
        if wanted is None or not all(topic in table for topic in wanted.topics):
            return False
        session = quick.session_asked(chunk, wanted)
        if not self._book.sessions.may_fetch(session):
            return False
        self._asking = learn_asking(chunk, pos, version, wanted)
        self._in_flight.ask(Asked(FETCH, version, correlation))
        return True

    def _run_fetches(self, like: Asking, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the requests of Fetch at `pos` that are like the last one, and return the offset
        behind them; `pos`: none is."""
        size, kind, version, lead, topic, rest, name, unpack = like
        last = end - SIZE.size - size
        if size < 0 or pos > last or self._throttle.consumed or self._book.has_questions:
            return pos
        if name and name not in self._book.consumed[version >= quick.BY_ID]:
            return pos
        ask, room = self._in_flight.ask, self._in_flight.room
        while pos <= last and room > 0:
            length, said, correlation, led, named, left = unpack(chunk, pos)
            if length != size or said != kind or led != lead or named != topic or left != rest:
                break
            ask(Asked(FETCH, version, correlation))
            room -= 1
            pos += SIZE.size + size
        return pos
