"""The session of one connection; see `contract.Session`.

The gateway decodes each request, authorizes it, and encodes it again, so a server reads exactly
what was authorized. Replies are decoded and encoded again too. A request to send or to get messages
whose encoded bytes equal those that came gives its account to the scanner, which passes later
requests of the same use itself. The serial number says which request a reply belongs to.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import (
    DROP,
    Await,
    Denial,
    Direction,
    Discard,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Inject,
    Later,
    Postpone,
    Prolong,
    Replace,
    Scanner,
    Sliced,
    Start,
    ViolationError,
    decided,
)
from gateway.wire.questions import Questions
from gateway.wire.services import Tokens
from gateway.wire.slices import Slices, finished
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller, Subject
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.answering import overflowed, refused, too_fast, unknown
from gateway.wire.tubemq.asking import STANDBY
from gateway.wire.tubemq.assembly import Assembly
from gateway.wire.tubemq.callers import Asking, Callers, has_proof, is_signed
from gateway.wire.tubemq.clients import Own
from gateway.wire.tubemq.context import Client, Listener
from gateway.wire.tubemq.envelopes import (
    LARGE,
    Reply,
    Request,
    content,
    count_fields,
    failed,
    parsed,
    read_reply,
    read_request,
    succeeded,
    written,
)
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.frames import BLOCK, Frame, framed, head
from gateway.wire.tubemq.in_flight import MOST, Asked, InFlight, date
from gateway.wire.tubemq.judging import Judge, Unasked
from gateway.wire.tubemq.methods import HAVE_LISTS, METHODS
from gateway.wire.tubemq.names import WHOLE
from gateway.wire.tubemq.progress import TOLD_BY, Partition, note, partition_of
from gateway.wire.tubemq.rewriting import Scope, own_of
from gateway.wire.tubemq.to_broker import ToBrokerScanner, use_of
from gateway.wire.tubemq.to_client import ToClientScanner, lead_of
from gateway.wire.tubemq.waiting import LONGEST_WAIT, Overdrawn, Waiting
from gateway.wire.waiting import Postponing

IDLE = 700.0
"""Seconds without a byte after which a pair ends: clients in Java drop an unused broker after ten
minutes."""

FULL_WAIT = 0.05
"""Seconds until a client with too many in-flight requests is read again."""

PROVEN_WITHIN = 60.0
"""Seconds within which a client must have authenticated, where requests do so: consumers in Java do
it in their first heartbeats, each 13 seconds by default."""

SWEPT = 60.0
"""Seconds between two sweeps for requests that get no reply any more."""

LONGEST_MS = 600_000
"""The longest timeout of a request that is believed, in milliseconds: clients have 10,000."""

LEAST_PAUSE, LONGEST_PAUSE = 0.001, 0.25
"""Seconds between two checks whether waiting messages may go on: not more often than clients could
tell, and often enough to notice in time that a rule has changed."""

MOST_OFTEN = 16
"""The number of topics whose waiting messages are checked so often; if more wait, checks are rarer,
as each takes microseconds for each topic."""

CHECKED = 2.0
"""Seconds after which a reply that waits for allowance is decided anew, though none was granted:
its account may be closed."""

RELEASED_AT_ONCE = 32
"""Effects of one step in which waiting messages go on; a message has one or two, and takes up to
100 µs."""

MOST_WRONG = 10
"""The most requests of one connection with a wrong credential whose replies wait. Beyond it the
pair ends."""


MOST_ASKED = 4
"""The most requests for messages of one consumer under a limit that are in flight: a reply has some
hundred kilobytes, and waits at the broker while the consumer has no allowance for it."""

LONGEST_ASKED = 60.0
"""Seconds for which a consumer is told to wait at most; then it asks again."""

SMALL = 500
"""Bytes of a reply that does not wait for allowance: one without messages has a hundred. What
little a small one brings is charged."""

MOST_HELD = 100
"""The most requests of one connection that wait for a right to be looked up."""


class TubeSession:
    """Holds the state of one TubeMQ connection, and returns what to do with the frames at which its
    scanners halt; see `contract.Session`."""

    __slots__ = (
        "_asked",
        "_assemblies",
        "_callers",
        "_client",
        "_held",
        "_in_flight",
        "_is_answered",
        "_is_leaving",
        "_judge",
        "_listener",
        "_replies",
        "_requests",
        "_rewriting",
        "_services",
        "_settings",
        "_slicing",
        "_sweeps",
        "_unread_until",
        "_waiting",
        "_wrong",
        "stopwatch",
    )

    idle = IDLE
    holding = Postponing()
    expires_at = None
    moves_at = None
    may_move = True

    def __init__(self, listener: Listener, client: Client) -> None:
        self._listener = listener
        self._settings = settings = listener.settings
        self._services = settings.services
        self._rewriting = listener.rewriting
        self._client = client
        self._callers = Callers(settings.services, client) if client.signs else None
        self._wrong = 0  # replies that wait
        self._asked: dict[Account, tuple[int, ...]] = {}  # serials of requests for messages
        self._unread_until = -math.inf  # after a refusal
        self._held = 0  # requests that wait for a right to be looked up
        self._slicing = 0  # frames that are decided in slices
        largest = (settings.bounds.collected, settings.bounds.all_collected)
        self._in_flight: InFlight = {}
        bound, in_flight = largest[0], self._in_flight
        self._requests = ToBrokerScanner(bound, in_flight, verifies=client.signs)
        self._replies = ToClientScanner(largest[1], self._in_flight, settings.services)
        self._assemblies = tuple(Assembly(bound, client.quota) for bound in largest)
        self._judge = Judge(settings.services, client.quota)
        self._waiting = Waiting(client.quota)
        self._is_leaving = self._sweeps = self._is_answered = False
        self.stopwatch: Stopwatch | None = None

    @property
    def caller(self) -> Caller:
        """Return the client, as rules, metrics and logs read it; see `contract.Session`."""
        return self._client.subject.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """Return the scanner of requests and that of replies; see `contract.Session`."""
        return self._requests, self._replies

    @property
    def collected_bound(self) -> int:
        """Return the size in bytes of the largest stop frame that may be collected in memory; see
        `contract.Session`."""
        return self._settings.bounds.all_collected

    @property
    def is_known(self) -> bool:
        """Return whether the client has authenticated; if the gateway verifies nobody, whether the
        server has replied to it. See `contract.Session`."""
        if self._callers is None:
            return self._client.principal is not None or self._is_answered
        return self._callers.has_proven

    def opened(self, now: float) -> Effects:
        """Return the first effects of the pair: a timer that ends the pair if no request
        authenticates a client in time, or when the client's certificate expires; see
        `contract.Session`."""
        principal = self._client.principal
        if principal is None:
            return () if self._callers is None else (Later(now + PROVEN_WITHIN, self._unproven),)
        if principal.expires_at is None:
            return ()
        return (Prolong(now + self._services.left(principal)),)

    def _unproven(self, _now: float) -> Effects:
        """End a connection on which no client has authenticated."""
        if self._callers is None or self._callers.has_proven:
            return ()
        return (End(EndReason.AUTHENTICATION_FAILED, detail="nobody has shown who it is"),)

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """Return the effects for the blocks at which a scanner halted. Blocks of an unfinished
        frame are collected, and the frame is decided when it is whole; see `contract.Session`."""
        if direction is Direction.TO_BROKER:
            until = self._decides_from(now)
            if until > now:
                self._requests.offer_again()
                return (Postpone(until),)
        elif not self._assemblies[direction].has_begun and (held := self._waits(frame, now)):
            self._replies.offer_again()
            return held
        missing = (self._requests, self._replies)[direction].missing
        complete = self._assemblies[direction].take(frame, missing)
        if complete is None:
            return DROP
        if direction is Direction.TO_CLIENT:
            return self._begin(complete, self._decide_reply(complete))
        return self._begin(complete, self._request(complete, now))

    def _decides_from(self, now: float) -> float:
        """Return the time from which requests are decided."""
        if self._is_leaving:
            return math.inf
        full = now + FULL_WAIT if len(self._in_flight) >= MOST else now
        return max(full, self._unread_until)

    # -- slices ------------------------------------------------------------------------------

    def _begin(self, frame: Frame, steps: Slices[Effects]) -> Effects:
        """Return the effects for a frame, or slices of the decision if it takes long."""
        effects = decided(steps)
        if not (effects and isinstance(effects[0], Sliced)):
            return effects
        size = len(frame.data)
        if not self._client.quota.fits(size):
            raise ViolationError(EndReason.OUT_OF_MEMORY, "no room for a frame that takes long")
        self._client.quota.take(size)
        self._slicing += 1
        return (Sliced(self._sliced(size, steps)),)

    def _sliced(self, size: int, steps: Slices[Effects]) -> Slices[Effects]:
        """Go on with a decision, at whose end `size` bytes of the quota are given back."""
        effects = yield from steps
        self._client.quota.give_back(size)
        self._slicing -= 1
        return effects

    # -- requests ----------------------------------------------------------------------------

    def _request(
        self, frame: Frame, now: float, *, was_asked: bool = False, has_waited: bool = False
    ) -> Slices[Effects]:
        request = read_request(frame.envelope)
        number = request.body.method
        method = METHODS.get(number)
        if method is None or method.of_master != (self._client.node is None):
            text = f"{methods.name_of(number)} is not offered here"
            return self._respond(failed(frame.serial, text))
        data, message = request.body.request, method.request()
        if len(data) > LARGE:
            yield from count_fields(message, data)
        parsed(message, data)
        if len(data) > LARGE and number in HAVE_LISTS:
            yield
        if not all(name.fullmatch(getattr(message, field, "")) for field, name in WHOLE.items()):
            return self._respond(failed(frame.serial, "a name that servers would not read whole"))
        asking = self._find_caller(number, message, now)
        if not isinstance(asking, Asking):
            return self._unknown(frame.serial, number, message, asking, now)
        outcome = yield from self._judge.judge(
            number, message, asking.subject, has_waited=has_waited
        )
        if isinstance(outcome, Unasked):
            if not was_asked and self._holds(frame):
                return (Drop(), Start(Questions(outcome.asks), partial(self._decided, frame)))
            outcome = outcome.reply
        if isinstance(outcome, Overdrawn):
            return self._overdrawn(frame, request.body, asking.subject, outcome.account, now)
        if isinstance(outcome, bytes):
            return self._respond(succeeded(frame.serial, number, outcome))
        asks = number == methods.GET_MESSAGES
        if asks and outcome is not None and not self._may_ask(frame.serial, outcome):
            return self._ask_later(frame.serial, asking.subject, outcome, now)
        return (yield from self._send_on(frame, request, message, asking, outcome, now))

    def _send_on(
        self,
        frame: Frame,
        request: Request,
        message: Any,
        asking: Asking,
        account: Account | None,
        now: float,
    ) -> Slices[Effects]:
        """Forward a request that may go on. `account`: of the topic that it uses, if it needs
        one."""
        number, subject = request.body.method, asking.subject
        if self._callers is not None:
            full = yield from self._callers.note(number, message, subject)
            if full is not None:
                data = refused(METHODS[number], ErrorCode.UNAUTHORIZED, full.text)
                return self._respond(succeeded(frame.serial, number, data))
            if number in (methods.REGISTER_PARTITION, methods.BEAT_PARTITIONS):
                self._requests.forget()  # others may ask for a partition's messages now
        tokens = self._replace_proofs(number, message, asking)
        partition = self._partition(number, message)
        patience = 2 * min(request.body.timeout, LONGEST_MS) / 1000
        own = own_of(message, subject.principal)
        entry = Asked(number, subject, account, patience, tokens, partition, own=own)
        is_long = len(frame.envelope) > LARGE and number in HAVE_LISTS
        yield from self._rewrite(message, entry)
        if is_long:
            yield
        request.body.request = message.SerializeToString()
        if is_long:
            yield
        self._note(frame.serial, entry, now)
        data = framed(frame.serial, written(*request))
        if account is not None and patience > 0 and not self._is_leaving:
            self._learn(frame, data, request, message, entry)
        return (Replace(data), *self._sweep_later(now))

    def _rewrite(self, message: Any, entry: Asked) -> Slices[None]:
        """Rewrite a request for a server. Topics without the right leave its lists."""
        number, subject, own = entry.method, entry.client, entry.own
        allowed = self._judge.filter(number, subject, own.group)
        shown = f"{own.known_as}@{own.group}"
        yield from self._rewriting.change_request(message, Scope(own, shown, allowed))
        if allowed is not None:
            self._judge.count(number, subject, own.group, allowed.missing)

    def _learn(
        self, frame: Frame, data: bytes, request: Request, message: Any, entry: Asked
    ) -> None:
        """Have the scanner pass requests like this one, if it was written as usual. `data`: the
        frame for the server, which may differ by the id of the client alone."""
        id, known_as = entry.own.id.encode(), entry.own.known_as.encode()
        renamed = known_as != id
        if len(id) != len(known_as):
            return
        if frame.data != (data.replace(known_as, id, 1) if renamed else data):
            return
        use = use_of(request, message)
        if use is not None:
            sent = use._replace(names=use.names.replace(known_as, id, 1)) if renamed else use
            self._requests.learn(sent, entry, use.names if renamed else b"")

    def _holds(self, frame: Frame) -> bool:
        """Keep a request until its rights are looked up; return whether there was room for it."""
        size, quota = len(frame.envelope), self._client.quota
        if self._held >= MOST_HELD or not quota.fits(size):
            return False
        quota.take(size)
        self._held += 1
        return True

    def _decided(self, frame: Frame, _result: bytes | Denial, now: float) -> Effects:
        """Go on with a request that was kept; if its rights are still unknown, it is refused."""
        if self._requests.owed:
            return (Later(now + LONGEST_PAUSE, partial(self._decided, frame, _result)),)
        return self._go_on(frame, self._request(frame, now, was_asked=True), now)

    def _go_on(self, frame: Frame, steps: Slices[Effects], now: float) -> Effects:
        """Take the next slice of the decision about a request that was kept."""
        try:
            next(steps)
        except StopIteration as end:
            self._client.quota.give_back(len(frame.envelope))
            self._held -= 1
            return _later(end.value)
        return (Later(now, partial(self._go_on, frame, steps)),)

    def _overdrawn(
        self, frame: Frame, body: Any, client: Subject, account: Account, now: float
    ) -> Effects:
        """Let a message above a limit wait, or refuse it; have a consumer ask again later."""
        if body.method == methods.GET_MESSAGES:
            return self._ask_later(frame.serial, client, account, now)
        seconds = min(LONGEST_WAIT, body.timeout / 2000)
        is_first = not self._waiting.number
        if seconds <= 0 or not self._waiting.put(account, frame, now + seconds):
            return self._respond(succeeded(frame.serial, methods.SEND_MESSAGE, overflowed()))
        return (Drop(), self._look_again(now)) if is_first else DROP

    def _look_again(self, now: float) -> Later:
        accounts = self._waiting.accounts
        least = LEAST_PAUSE * (1 + len(accounts) // MOST_OFTEN)
        due = min(map(self._services.due_in, accounts))
        return Later(now + min(LONGEST_PAUSE, max(least, due)), self._release)

    def _release(self, now: float) -> Effects:
        """Forward the waiting messages whose accounts have allowance, and refuse those that have
        waited too long, some at a time."""
        if self._requests.owed:  # they would wait for its end, beyond the memory quota
            return (self._look_again(now),)
        effects: list[Effect] = []
        for account in self._waiting.accounts:
            while (first := self._waiting.first(account)) is not None:
                if len(effects) >= RELEASED_AT_ONCE:
                    return (*effects, Later(now, self._release))
                if not account.is_short or self._services.wants(account):
                    frame = self._waiting.take(account)
                    effects += _later(finished(self._request(frame, now, has_waited=True)))
                elif first.until <= now:
                    frame = self._waiting.take(account)
                    data = succeeded(frame.serial, methods.SEND_MESSAGE, overflowed())
                    effects.append(Inject(Direction.TO_CLIENT, data))
                else:
                    break
        if self._waiting.number:
            effects.append(self._look_again(now))
        return tuple(effects)

    def _may_ask(self, serial: int, account: Account) -> bool:
        """Return whether the consumer of an account may have one more request for messages in
        flight. If it may, note the serial number of that request."""
        if account.is_endless:
            return True
        asked = [it for it in self._asked.get(account, ()) if it in self._in_flight]
        if len(asked) == MOST_ASKED:
            return False
        self._asked[account] = (*asked, serial)
        return True

    def _ask_later(self, serial: int, client: Subject, account: Account, now: float) -> Effects:
        """Have a consumer ask again when its limits may have units, and not read it before its
        turn."""
        who = client.caller.host if client.principal is None else (client.principal,)
        self._unread_until = self._listener.turns.take(who, now)
        due = max(self._services.due_in(account), self._unread_until - now)
        data = too_fast(min(LONGEST_ASKED, due))
        return self._respond(succeeded(serial, methods.GET_MESSAGES, data))

    def _respond(self, reply: bytes) -> Effects:
        return (Drop(), Inject(Direction.TO_CLIENT, reply))

    # -- clients -----------------------------------------------------------------------------

    def _find_caller(self, number: int, message: Any, now: float) -> Asking | Denial | None:
        """Return the client of a request; a denial if its credential is wrong; None if it lacks one
        that it must have."""
        if self._callers is None:
            return Asking(self._client.subject)
        asking = self._callers.find(number, message, now)
        if asking is None and self._client.principal is not None:
            return Asking(self._client.subject)
        return asking

    def _unknown(
        self, serial: int, number: int, message: Any, denial: Denial | None, now: float
    ) -> Effects:
        """Respond to a client that is not authenticated; after a wrong credential the reply waits,
        ever longer."""
        data = succeeded(serial, number, unknown(number, denial, signed=is_signed(message)))
        if denial is None:
            return self._respond(data)
        wait = self._services.setback(self.caller.host or "")
        if not wait:
            return self._respond(data)
        if self._wrong >= MOST_WRONG:
            return (Drop(), End(EndReason.AUTHENTICATION_FAILED, detail=denial.detail))
        self._wrong += 1
        return (Drop(), Later(now + wait, partial(self._answer_late, data)))

    def _answer_late(self, data: bytes, _now: float) -> Effects:
        self._wrong -= 1
        return (Inject(Direction.TO_CLIENT, data),)

    def _replace_proofs(self, number: int, message: Any, asking: Asking) -> Tokens | None:
        """Remove the client's credential from a request, and put the master's own token in its
        place; return the tokens that the client gets with the reply."""
        if self._callers is None or not has_proof(message):
            return None
        if number not in methods.OF_BROKER:
            message.ClearField("authInfo")
            return self._callers.tokens(asking, message.clientId)
        if message.HasField("authInfo"):
            message.authInfo.ClearField("authAuthorizedToken")
            message.authInfo.visitAuthorizedToken = self._listener.visit
        return None

    def _tell_tokens(self, request: Asked, message: Any) -> None:
        """Put the client's tokens into a reply in place of the master's own token, which is
        kept."""
        if self._callers is None or "authorizedInfo" not in message.DESCRIPTOR.fields_by_name:
            return
        if message.HasField("authorizedInfo"):
            self._listener.visit = message.authorizedInfo.visitAuthorizedToken
        if request.tokens is not None:
            message.authorizedInfo.visitAuthorizedToken = request.tokens.number
            message.authorizedInfo.authAuthorizedToken = request.tokens.text

    # -- in-flight requests ------------------------------------------------------------------

    def _note(self, serial: int, request: Asked, now: float) -> None:
        """Note a request as in flight; a request without patience gets no reply. Raises `PeerError`
        if another request with this serial number is in flight, as their replies could not be told
        apart."""
        if serial in self._in_flight:
            raise PeerError(f"a second request {serial}, while the first has no reply")
        if request.patience > 0:
            self._in_flight[serial] = request._replace(until=now + request.patience)

    def _partition(self, number: int, message: Any) -> Partition | None:
        """Return the partition whose offsets the reply to a request states; None for other
        requests."""
        if number not in TOLD_BY or self._client.node is None:
            return None
        return partition_of(message, self._client.node)

    # -- replies -----------------------------------------------------------------------------

    def _decide_reply(self, frame: Frame) -> Slices[Effects]:
        request = self._in_flight.pop(frame.serial, None)
        if request is None:
            return DROP  # clients ignore it too
        self._is_answered = True
        if request.method == methods.GET_MESSAGES and self._brings_messages(frame, request):
            return (Replace(frame.data),)
        reply = read_reply(frame.envelope)
        if reply.error is not None:
            return self._failed(frame.serial, reply, request.own)
        assert reply.body is not None
        if reply.body.method != request.method:
            raise PeerError(f"a reply to {methods.name_of(reply.body.method)}, which was not asked")
        is_long = len(reply.body.data) > LARGE and request.method in HAVE_LISTS
        if is_long:
            yield
        message: Any = parsed(METHODS[request.method].reply(), reply.body.data)
        if is_long:
            yield
        self._count(request, message)
        self._tell_tokens(request, message)
        yield from self._rewriting.change_reply(message, self._scope_of_reply(request))
        if is_long:
            yield
        reply.body.data = message.SerializeToString()
        if is_long:
            yield
        data = framed(frame.serial, written(reply.connection, reply.header, reply.body))
        return (Replace(data),)

    def _waits(self, blocks: bytes, now: float) -> Effects:
        """Return the effects by which the reply that begins with these blocks waits for allowance,
        if it has to. No request tells how many bytes it brings, and clients may send many at once,
        so what brings messages waits, and all behind it."""
        serial, number = head(blocks)
        request = self._in_flight.get(serial)
        if request is None or request.account is None or request.method != methods.GET_MESSAGES:
            return ()
        if number == 1 and len(blocks) <= SMALL:
            return ()
        account = request.account
        account.needs = len(blocks) if number == 1 else (number - 1) * BLOCK
        if not account.is_short:
            return ()
        if self._services.wants(account):
            return (Postpone(now),)  # the scanner may pass it
        return (Await(account), Postpone(now + CHECKED))

    def _scope_of_reply(self, request: Asked) -> Scope:
        own, client = request.own, request.client
        may = self._judge.shown(request.method, client, own.group)
        hides = client.principal is not None or self._services.guarded
        return Scope(own, f"{own.id}@{own.group}", may, hides)

    def _brings_messages(self, frame: Frame, request: Asked) -> bool:
        """Count the messages in a reply, and return whether it may go on as it came: it has no text
        but that of messages, so half a megabyte need not be encoded anew."""
        reply = content(frame.envelope) if frame.fits else None
        if reply is None or reply[0] != request.method:
            return False
        message: Any = parsed(METHODS[request.method].reply(), reply[1])
        if not self._rewriting.leaves(message):
            return False
        self._count(request, message)
        if message.messages:
            self._replies.lead = lead_of(message)
        return True

    def _failed(self, serial: int, reply: Reply, own: Own) -> Effects:
        """Forward a server's exception without broker addresses. If the master is not the active
        one, end the pair: the client reconnects, and gets another master."""
        error = reply.error
        assert error is not None
        if error.exceptionName.endswith(STANDBY):
            return (Drop(), End(EndReason.BROKER_REFUSED, detail="the master is not active"))
        error.stackTrace = self._rewriting.clean(error.stackTrace, own)
        return (Replace(framed(serial, written(reply.connection, reply.header, error))),)

    def _count(self, request: Asked, message: Any) -> None:
        if request.partition is not None:
            offset = message.currOffset if message.HasField("currOffset") else None
            note(self._services, request.partition, offset, message.maxOffset)
        account = request.account
        if account is None:
            return
        if request.method == methods.SEND_MESSAGE:
            account.receipts += 1
            account.errors += not message.success
        elif message.messages:
            size = sum(len(transferred.payLoadData) for transferred in message.messages)
            account.count(len(message.messages))
            account.bytes += size
            if account.lacks(size):  # another reply like it
                account.hold()

    # -- sweeps ------------------------------------------------------------------------------

    def _sweep_later(self, now: float) -> Effects:
        if self._sweeps:
            return ()
        self._sweeps = True
        return (Later(now + SWEPT, self._sweep),)

    def _sweep(self, now: float) -> Effects:
        """Forget requests that servers have dropped, and close unused accounts, some at a time."""
        date(self._in_flight, now)
        for serial in [
            serial for serial, request in self._in_flight.items() if request.until <= now
        ]:
            del self._in_flight[serial]
        busy = {
            request.account for request in self._in_flight.values() if request.account is not None
        }
        passing = {scanner.passing for scanner in (self._requests, self._replies)}
        closed = self._judge.close_idle(busy.union(self._waiting.accounts, passing))
        for account in closed:
            self._asked.pop(account, None)
        if closed:
            self._requests.forget()
        discards = tuple(map(Discard, closed))
        if self._judge.is_sweeping:
            return (*discards, Later(now, self._sweep))
        self._sweeps = False
        next_sweep = self._sweep_later(now) if self._in_flight or len(self._judge) else ()
        return (*discards, *next_sweep)

    # -- ends --------------------------------------------------------------------------------

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """Close the account of a producer or consumer that rules no longer allow, and return the
        effects; see `contract.Session`. The account's waiting messages wait no longer: they are
        authorized again."""
        if account in (self._requests.passing, self._replies.passing):
            return (End(EndReason.OPERATOR_CLOSED, detail=denial.text),)
        self._requests.forget()
        self._asked.pop(account, None)
        self._judge.withdraw(account)
        account.grant()
        return (Discard(account),)

    def expiring(self, now: float) -> Effects:
        """Return no effects: TubeMQ's clients cannot be asked for a newer credential."""
        return ()

    def leave(self, now: float) -> Effects | None:
        """Take one step of moving the client to another gateway; see `contract.Session`. After the
        first step no request is forwarded any more. The client may be moved once no request is in
        flight, and no request or message waits in the gateway."""
        self._is_leaving = True
        self._requests.forget()
        date(self._in_flight, now)
        owes = (
            self._requests.owed
            or self._replies.owed
            or self._held
            or self._slicing
            or self._waiting.number
            or any(request.until > now for request in self._in_flight.values())
        )
        return () if owes else None

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """Return no bytes: in TubeMQ a server sends a frame only in reply to a request."""
        return b""

    def close(self) -> bool:
        """Release some of the pair's accounts, and the pair's memory quota after the last account;
        return whether accounts are left. See `contract.Session`."""
        self._requests.finish()
        self._replies.finish()
        self._waiting.clear()
        if self._judge.close_some():
            return True
        self._client.leave()
        return False


def _later(effects: Effects) -> Effects:
    """Return the effects of a kept request, which is no stop frame any more: it is injected instead
    of replaced."""
    return tuple(
        Inject(Direction.TO_BROKER, effect.data) if isinstance(effect, Replace) else effect
        for effect in effects
        if not isinstance(effect, Drop)
    )
