"""The session of one connection; see `contract.Session`.

Each request is read, judged and written anew, and so is each reply, so what a server reads is what
was judged. A request that is written as it came teaches the scanner to pass others like it, and so
does a receipt. Requests and replies belong together by their serial numbers.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import (
    DROP,
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
    Start,
)
from gateway.wire.questions import Questions
from gateway.wire.services import Tokens
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.alike import learn_receipt, learn_request
from gateway.wire.tubemq.answering import overflowed, refused, unknown
from gateway.wire.tubemq.asking import STANDBY
from gateway.wire.tubemq.assembly import Assembly
from gateway.wire.tubemq.bringing import learn_lead
from gateway.wire.tubemq.callers import Asking, Callers, has_proof, is_signed
from gateway.wire.tubemq.context import Client, Listener
from gateway.wire.tubemq.directions import directions
from gateway.wire.tubemq.envelopes import (
    Reply,
    Request,
    content,
    failed,
    parsed,
    read_reply,
    read_request,
    succeeded,
    written,
)
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.frames import Frame, framed
from gateway.wire.tubemq.in_flight import MOST, Asked, InFlight, date
from gateway.wire.tubemq.judging import Judge
from gateway.wire.tubemq.methods import METHODS
from gateway.wire.tubemq.names import is_trimmed
from gateway.wire.tubemq.progress import TOLD_BY, Partition, note, partition_of
from gateway.wire.tubemq.waiting import LONGEST_WAIT, Overdrawn, Waiting

IDLE = 700.0
"""Seconds without a byte after which a pair ends: clients in Java drop a broker that they do not
use after ten minutes."""

FULL_WAIT = 0.05
"""Seconds until a client is read again that has too many of them."""

PROVEN_WITHIN = 60.0
"""Seconds within which somebody must have proven who it is, where requests say it: consumers in
Java do so in their first heartbeats, each 13 seconds by default."""

SWEPT = 60.0
"""Seconds between two looks for requests that nobody answers any more."""

LONGEST_MS = 600_000
"""Milliseconds for which a server may take, as far as they are believed: clients have 10,000."""

LEAST_PAUSE, LONGEST_PAUSE = 0.001, 0.25
"""Seconds between two looks whether messages that wait may go on: not more often than clients could
tell, and often enough to notice in time that a rule has changed."""

MOST_OFTEN = 16
"""Topics whose messages are looked at so often; if more wait, looks are rarer, as each takes
microseconds for each topic."""

MOST_WRONG = 10
"""Requests of one connection that show what is wrong, and whose replies wait. Then it ends."""


MOST_HELD = 100
"""Requests of one connection that wait until others have said whether the client may."""


_TRIMMED_NAMES = ("clientId", "groupName")
"""Fields of requests whose names servers trim."""


class TubeSession:
    """See `contract.Session`."""

    __slots__ = (
        "_asked",
        "_assemblies",
        "_callers",
        "_client",
        "_held",
        "_hiding",
        "_is_leaving",
        "_judge",
        "_listener",
        "_replies",
        "_requests",
        "_services",
        "_settings",
        "_sweeps",
        "_waiting",
        "_wrong",
        "stopwatch",
    )

    idle = IDLE
    holding = None
    expires_at = None
    moves_at = None
    may_move = True

    def __init__(self, listener: Listener, client: Client) -> None:
        self._listener = listener
        self._settings = settings = listener.settings
        self._services = settings.services
        self._hiding = listener.hiding
        self._client = client
        self._callers = Callers(settings.services, client) if client.signs else None
        self._wrong = 0  # replies that wait
        self._held = 0  # requests that wait until others have said whether the client may
        largest = (settings.bounds.collected, settings.bounds.all_collected)
        self._asked: InFlight = {}
        self._requests, self._replies = directions(largest, self._asked, settings.services)
        self._assemblies = tuple(Assembly(it, client.quota) for it in largest)
        self._judge = Judge(settings.services, client.quota)
        self._waiting = Waiting(client.quota)
        self._is_leaving = self._sweeps = False
        self.stopwatch: Stopwatch | None = None

    @property
    def caller(self) -> Caller:
        """See `contract.Session`."""
        return self._client.subject.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """See `contract.Session`."""
        return self._requests, self._replies

    @property
    def collected_bound(self) -> int:
        """See `contract.Session`."""
        return self._settings.bounds.all_collected

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        principal = self._client.principal
        if principal is None:
            return () if self._callers is None else (Later(now + PROVEN_WITHIN, self._unproven),)
        if principal.expires_at is None:
            return ()
        return (Prolong(now + self._services.left(principal)),)

    def _unproven(self, _now: float) -> Effects:
        """End a connection on which nobody has proven anything."""
        if self._callers is None or self._callers.has_proven:
            return ()
        return (End(EndReason.AUTHENTICATION_FAILED, detail="nobody has shown who it is"),)

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        if direction is Direction.TO_BROKER:
            waits = math.inf if self._is_leaving else now + FULL_WAIT
            if self._is_leaving or len(self._asked) >= MOST:
                self._requests.offer_again()
                return (Postpone(waits),)
        missing = (self._requests, self._replies)[direction].missing
        whole = self._assemblies[direction].take(frame, missing)
        if whole is None:
            return DROP
        if direction is Direction.TO_CLIENT:
            return self._answered(whole)
        return self._request(whole, now)

    # -- requests ----------------------------------------------------------------------------

    def _request(
        self, frame: Frame, now: float, *, was_asked: bool = False, has_waited: bool = False
    ) -> Effects:
        request = read_request(frame.envelope)
        number = request.body.method
        method = METHODS.get(number)
        if method is None or method.of_master != (self._client.node is None):
            return self._own(failed(frame.serial, f"{methods.name_of(number)} is not offered here"))
        message: Any = parsed(method.request(), request.body.request)
        if not all(is_trimmed(getattr(message, it, "")) for it in _TRIMMED_NAMES):
            return self._own(failed(frame.serial, "a name begins or ends with a blank"))
        asking = self._find_caller(number, message, now)
        if not isinstance(asking, Asking):
            return self._unknown(frame.serial, number, message, asking, now)
        found = self._judge.judge(number, message, asking.subject, has_waited=has_waited)
        if self._judge.undecided and not was_asked and self._holds(frame):
            ask = Questions(tuple(self._judge.undecided))
            return (Drop(), Start(ask, partial(self._decided, frame)))
        if isinstance(found, Overdrawn):
            return self._wait(frame, request.body.timeout, found.account, now)
        if isinstance(found, bytes):
            return self._own(succeeded(frame.serial, number, found))
        if self._callers is not None:
            full = self._callers.note(number, message, asking.subject)
            if full is not None:
                data = refused(method, ErrorCode.UNAUTHORIZED, full.text)
                return self._own(succeeded(frame.serial, number, data))
            if number in (methods.REGISTER_PARTITION, methods.BEAT_PARTITIONS):
                self._requests.forget()  # others may ask for a partition's messages now
        tokens = self._hide_proofs(number, message, asking)
        self._hiding.change_request(number, message)
        request.body.request = message.SerializeToString()
        partition = self._partition(number, message)
        patience = 2 * min(request.body.timeout, LONGEST_MS) / 1000
        asked = Asked(number, asking.subject, found, patience, tokens, partition)
        self._note(frame.serial, asked, now)
        data = framed(frame.serial, written(*request))
        if found is not None and patience > 0 and data == frame.data and not self._is_leaving:
            self._learn(frame, request, message, asked)
        return (Replace(data), *self._sweep_later(now))

    def _learn(self, frame: Frame, request: Request, message: Any, asked: Asked) -> None:
        """Have requests like this one pass, which the gateway writes as it came. None does that
        shows who asks: what it shows is valid for some time only."""
        kind = learn_request(frame.data, len(frame.envelope), request, message)
        if kind is not None:
            self._requests.learn(kind, asked)

    def _holds(self, frame: Frame) -> bool:
        """Keep a request until others have said whether the client may; return whether there is
        room for it."""
        size, quota = len(frame.envelope), self._client.quota
        if self._held >= MOST_HELD or not quota.fits(size):
            return False
        quota.take(size)
        self._held += 1
        return True

    def _decided(self, frame: Frame, _result: bytes | Denial, now: float) -> Effects:
        """Go on with a request that was kept; if nobody has said anything, it is refused."""
        self._client.quota.give_back(len(frame.envelope))
        self._held -= 1
        return _later(self._request(frame, now, was_asked=True))

    def _wait(self, frame: Frame, timeout: int, account: Account, now: float) -> Effects:
        """Have a message wait that is above a limit. `timeout`: milliseconds that its request
        has."""
        seconds = min(LONGEST_WAIT, timeout / 2000)
        is_first = not self._waiting.number
        if seconds <= 0 or not self._waiting.put(account, frame, now + seconds):
            return self._own(succeeded(frame.serial, methods.SEND_MESSAGE, overflowed()))
        return (Drop(), self._look_again(now)) if is_first else DROP

    def _look_again(self, now: float) -> Later:
        accounts = self._waiting.accounts
        least = LEAST_PAUSE * (1 + len(accounts) // MOST_OFTEN)
        due = min(map(self._services.due_in, accounts))
        return Later(now + min(LONGEST_PAUSE, max(least, due)), self._release)

    def _release(self, now: float) -> Effects:
        """Let messages go on that have waited for allowance, and refuse those that did so in
        vain."""
        effects: list[Effect] = []
        for account in self._waiting.accounts:
            while (first := self._waiting.first(account)) is not None:
                if not account.held or self._services.wants(account):
                    frame = self._waiting.take(account)
                    effects += _later(self._request(frame, now, has_waited=True))
                elif first.until <= now:
                    frame = self._waiting.take(account)
                    data = succeeded(frame.serial, methods.SEND_MESSAGE, overflowed())
                    effects.append(Inject(Direction.TO_CLIENT, data))
                else:
                    break
        if self._waiting.number:
            effects.append(self._look_again(now))
        return tuple(effects)

    def _own(self, reply: bytes) -> Effects:
        return (Drop(), Inject(Direction.TO_CLIENT, reply))

    # -- who asks ----------------------------------------------------------------------------

    def _find_caller(self, number: int, message: Any, now: float) -> Asking | Denial | None:
        """Return who asks; a denial: what it shows is wrong; None: it shows nothing, and has to."""
        if self._callers is None:
            return Asking(self._client.subject)
        found = self._callers.find(number, message, now)
        if found is None and self._client.principal is not None:
            return Asking(self._client.subject)
        return found

    def _unknown(
        self, serial: int, number: int, message: Any, denial: Denial | None, now: float
    ) -> Effects:
        """Answer a client that is not known; one that shows what is wrong waits, ever longer."""
        data = succeeded(serial, number, unknown(number, denial, signed=is_signed(message)))
        if denial is None:
            return self._own(data)
        wait = self._services.setback(self.caller.host or "")
        if not wait:
            return self._own(data)
        if self._wrong >= MOST_WRONG:
            return (Drop(), End(EndReason.AUTHENTICATION_FAILED, detail=denial.text))
        self._wrong += 1
        return (Drop(), Later(now + wait, partial(self._answer_late, data)))

    def _answer_late(self, data: bytes, _now: float) -> Effects:
        self._wrong -= 1
        return (Inject(Direction.TO_CLIENT, data),)

    def _hide_proofs(self, number: int, message: Any, asking: Asking) -> Tokens | None:
        """Take from a request what the client shows to the gateway, and put the master's own token
        in its place; return the tokens that the client gets with the reply."""
        if self._callers is None or not has_proof(message):
            return None
        if number not in methods.OF_BROKER:
            message.ClearField("authInfo")
            return self._callers.tokens(asking, message.clientId)
        if message.HasField("authInfo"):
            message.authInfo.ClearField("authAuthorizedToken")
            message.authInfo.visitAuthorizedToken = self._listener.visit
        return None

    def _tell_tokens(self, asked: Asked, message: Any) -> None:
        """Put the client's tokens in the place of the master's own, which is kept."""
        if self._callers is None or "authorizedInfo" not in message.DESCRIPTOR.fields_by_name:
            return
        if message.HasField("authorizedInfo"):
            self._listener.visit = message.authorizedInfo.visitAuthorizedToken
        if asked.tokens is not None:
            message.authorizedInfo.visitAuthorizedToken = asked.tokens.number
            message.authorizedInfo.authAuthorizedToken = asked.tokens.text

    # -- what is asked -----------------------------------------------------------------------

    def _note(self, serial: int, asked: Asked, now: float) -> None:
        """Remember a request until it is answered; one without patience never is. Raises
        `PeerError` if another request with this number waits: nobody could tell which of them a
        reply answers, and so where it names brokers."""
        if serial in self._asked:
            raise PeerError(f"a second request {serial}, while the first has no reply")
        if asked.patience > 0:
            self._asked[serial] = asked._replace(until=now + asked.patience)

    def _partition(self, number: int, message: Any) -> Partition | None:
        """Return the partition whose offsets the reply to a request tells."""
        if number not in TOLD_BY or self._client.node is None:
            return None
        return partition_of(message, self._client.node)

    # -- replies -----------------------------------------------------------------------------

    def _answered(self, frame: Frame) -> Effects:
        asked = self._asked.pop(frame.serial, None)
        if asked is None:
            return DROP  # clients ignore it too
        if asked.method == methods.GET_MESSAGES and self._brings_messages(frame, asked):
            return (Replace(frame.data),)
        reply = read_reply(frame.envelope)
        if reply.error is not None:
            return self._failed(frame.serial, reply)
        assert reply.body is not None
        if reply.body.method != asked.method:
            raise PeerError(f"a reply to {methods.name_of(reply.body.method)}, which was not asked")
        message: Any = parsed(METHODS[asked.method].reply(), reply.body.data)
        self._count(asked, message)
        self._judge.show_allowed(asked.method, message, asked.client)
        self._tell_tokens(asked, message)
        self._hiding.change_reply(asked.method, message)
        reply.body.data = message.SerializeToString()
        data = framed(frame.serial, written(reply.connection, reply.header, reply.body))
        if asked.method == methods.SEND_MESSAGE and message.success and data == frame.data:
            receipt = learn_receipt(frame.data, reply, message)
            if receipt is not None:
                self._replies.learn(len(data), receipt)
        return (Replace(data),)

    def _brings_messages(self, frame: Frame, asked: Asked) -> bool:
        """Count the messages that a reply brings, and return whether it goes on as it came: it has
        no text but theirs, so that half a megabyte need not be written anew."""
        found = content(frame.envelope) if frame.fits else None
        if found is None or found[0] != asked.method:
            return False
        message: Any = parsed(METHODS[asked.method].reply(), found[1])
        if not self._hiding.leaves(message):
            return False
        self._count(asked, message)
        lead = learn_lead(frame.envelope, message) if message.messages else None
        if lead is not None:
            self._replies.learn_lead(lead)
        return True

    def _failed(self, serial: int, reply: Reply) -> Effects:
        """Send on what a server says of its failure, without its address. A master that is not the
        active one ends the connection: the client comes again, and gets another."""
        error = reply.error
        assert error is not None
        if error.exceptionName.endswith(STANDBY):
            return (Drop(), End(EndReason.BROKER_REFUSED, detail="the master is not active"))
        error.stackTrace = self._services.clean(error.stackTrace)
        return (Replace(framed(serial, written(reply.connection, reply.header, error))),)

    def _count(self, asked: Asked, message: Any) -> None:
        if asked.partition is not None:
            offset = message.currOffset if message.HasField("currOffset") else None
            note(self._services, asked.partition, offset, message.maxOffset)
        account = asked.account
        if account is None:
            return
        if asked.method == methods.SEND_MESSAGE:
            account.receipts += 1
            account.errors += not message.success
        elif message.messages:
            account.count(len(message.messages))
            account.bytes += sum(len(it.payLoadData) for it in message.messages)

    # -- sweeps ------------------------------------------------------------------------------

    def _sweep_later(self, now: float) -> Effects:
        if self._sweeps:
            return ()
        self._sweeps = True
        return (Later(now + SWEPT, self._sweep),)

    def _sweep(self, now: float) -> Effects:
        """Forget requests that servers have dropped, and close accounts that nobody uses."""
        self._sweeps = False
        date(self._asked, now)
        for serial in [serial for serial, asked in self._asked.items() if asked.until <= now]:
            del self._asked[serial]
        busy = {asked.account for asked in self._asked.values() if asked.account is not None}
        closed = self._judge.close_idle(busy.union(self._waiting.accounts))
        if closed:
            self._requests.forget()
        again = self._sweep_later(now) if self._asked or not self._judge.is_idle else ()
        return (*map(Discard, closed), *again)

    # -- ends --------------------------------------------------------------------------------

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`. The next request is judged anew."""
        self._requests.forget()
        waiting = self._waiting.take_all(account)
        self._judge.withdraw(account)
        again = [effect for it in waiting for effect in _later(self._request(it, now))]
        return (Discard(account), *again)

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`. Take no more requests, and wait for replies to earlier ones."""
        self._is_leaving = True
        self._requests.forget()
        date(self._asked, now)
        owes = (
            self._held or self._waiting.number or any(it.until > now for it in self._asked.values())
        )
        return () if owes else None

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. The protocol has no frame that answers nothing."""
        return b""

    def close(self) -> bool:
        """See `contract.Session`."""
        self._waiting.clear()
        self._judge.close()
        self._client.leave()
        return False


def _later(effects: Effects) -> Effects:
    """Return the effects of a request that was kept, which is no stop frame any more."""
    return tuple(
        Inject(Direction.TO_BROKER, it.data) if isinstance(it, Replace) else it
        for it in effects
        if not isinstance(it, Drop)
    )
