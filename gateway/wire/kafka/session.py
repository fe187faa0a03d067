"""The session of one connection; see `contract.Session`.

Requests are forwarded in the client's order to the one broker of the connection, and the broker
responds in the same order (`in_flight`). Kafka clients cannot be told to wait before they send, so
the session queues no frame. Instead the gateway leaves a request unread if its topics have used up
their allowance, and states the throttle time in the response to the request before it (KIP-219).
"""

from __future__ import annotations

import math
from functools import partial

from gateway.wire.account import Account, Action
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Denial,
    Direction,
    Discard,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Later,
    Postpone,
    Prolong,
    Replace,
    Resume,
    Scanner,
    Sliced,
    Start,
    decided,
)
from gateway.wire.kafka.addresses import FETCH, METADATA, PRODUCE, SHARE_FETCH
from gateway.wire.kafka.answering import Answering
from gateway.wire.kafka.asking import LONGEST_QUESTION, OWN, Asking
from gateway.wire.kafka.authenticating import credential_of
from gateway.wire.kafka.authorizing import Authorizing
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.codec import encoded
from gateway.wire.kafka.commits import COMMITS
from gateway.wire.kafka.context import Client, Listener
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.fields import DEAR
from gateway.wire.kafka.frames import API_VERSIONS, RESPONSE, Head, response
from gateway.wire.kafka.frames import request as read_head
from gateway.wire.kafka.in_flight import Asked, InFlight
from gateway.wire.kafka.producing import Producing, is_head
from gateway.wire.kafka.reauthentication import Reauthentication, Settling
from gateway.wire.kafka.renewal import Renewal, due_in
from gateway.wire.kafka.sasl.claims import Claim
from gateway.wire.kafka.sasl.handshake import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    mechanism_of,
    read_answer,
    read_bare,
    read_offer,
    token_of,
)
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.synthetic import ERROR, refused, responded
from gateway.wire.kafka.throttle import OVERDUE, Throttle
from gateway.wire.kafka.to_broker import ToBrokerScanner
from gateway.wire.kafka.to_client import ToClientScanner
from gateway.wire.kafka.versions import is_offered, unsupported
from gateway.wire.plugin import Mode
from gateway.wire.services import Again, LookupOutcome, LookupTimes
from gateway.wire.slices import Slices
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller, Subject
from gateway.wire.waiting import Postponing

IDLE = 620.0
"""Seconds without a byte after which a pair ends. Clients say nothing for up to 9 minutes while
they have nothing to do, or wait for a group; brokers close a connection after 10."""

FULL_WAIT = 0.05
"""Seconds until a client with too many in-flight requests is read again."""

PASSING = 0.1
"""Seconds between two checks whether a response has passed, behind which the pair ends."""

SWEPT = 120.0
"""Seconds after which the account of an unused topic is closed."""

JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
OF_GROUPS = frozenset({JOIN_GROUP, HEARTBEAT, SYNC_GROUP, 68, 76, 88})
"""APIs that members of groups call, of all kinds of groups."""

LONG = frozenset({JOIN_GROUP, SYNC_GROUP})
"""APIs whose responses may take minutes, and which clients may call again without harm."""

REBOOTSTRAP = 13
"""The first version of Metadata whose clients return to their bootstrap servers if told to."""

BARE = 0
"""The version of SaslHandshake after which tokens have no requests around them."""


SASL = frozenset({SASL_HANDSHAKE, SASL_AUTHENTICATE})


class KafkaSession:
    """Holds the state of one Kafka connection, and returns what to do with each of its stop frames;
    see `contract.Session`."""

    __slots__ = (
        "_again",
        "_answering",
        "_asking",
        "_authorizing",
        "_book",
        "_claim",
        "_client",
        "_in_flight",
        "_is_leaving",
        "_listener",
        "_paced_until",
        "_producing",
        "_reauthentication",
        "_refused",
        "_renewal",
        "_renews",
        "_requests",
        "_responses",
        "_services",
        "_slices",
        "_substitutes",
        "_sweeps",
        "_throttle",
        "stopwatch",
    )

    holding = Postponing()
    idle = IDLE

    def __init__(self, listener: Listener, client: Client) -> None:
        self._listener = listener
        self._services = listener.settings.services
        self._client = client
        self._in_flight = InFlight()
        self._substitutes = Substitutes(listener.ids)
        self.stopwatch = Stopwatch() if self._services.timed else None
        self._book = Book(self._services, client, listener.ids, self.stopwatch)
        self._authorizing = Authorizing(self._services, client, self._book, self._substitutes)
        self._throttle = Throttle(self._services)
        self._requests = ToBrokerScanner(
            self._book, self._in_flight, self._throttle, self.collected_bound
        )
        self._responses = ToClientScanner(
            self._services, self._book, self._in_flight, self._substitutes, self._throttle
        )
        self._book.readers = (self._requests, self._responses)
        self._asking = Asking(self._book, self._in_flight, self._requests)
        self._producing = Producing(
            self._book,
            self._in_flight,
            self._requests,
            self._throttle,
            self._asking,
            self._substitutes,
        )
        self._requests.stops = client.guessed is not None
        self._answering = Answering(listener, client, self._book, self._substitutes, self._throttle)
        self._again: Again | None = None
        self._paced_until: float | None = None  # when the counted lookup may go on
        self._claim: Claim | None = None
        self._reauthentication: Reauthentication | None = None
        self._refused: Denial | None = None  # ends the pair when no request is in flight
        self._renewal: Renewal | None = None  # under way
        self._renews = False  # begins once no request passes
        self._slices = 0  # decisions that are under way
        self._is_leaving = self._sweeps = False

    @property
    def caller(self) -> Caller:
        """Return the client, as rules, metrics and logs read it; see `contract.Session`."""
        return self._client.subject.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """Return the scanner of requests and that of responses; see `contract.Session`."""
        return self._requests, self._responses

    @property
    def collected_bound(self) -> int:
        """Return the size in bytes of the largest stop frame that may be collected in memory; see
        `contract.Session`."""
        return self._listener.settings.bounds.collected

    @property
    def expires_at(self) -> float | None:
        """Return the wall-clock time at which the client's credential expires; None if it does not
        expire, or if the broker checks that. See `contract.Session`."""
        verifies = self._listener.settings.mode is Mode.VERIFY
        return self._client.principal.expires_at if verifies else None

    @property
    def moves_at(self) -> float | None:
        """Return None: the session renews the gateway's credential at the broker (`renewal`), so
        the client need not be moved."""
        return None

    @property
    def may_move(self) -> bool:
        """Return True. The value has no effect, because `moves_at` is None; see
        `contract.Session`."""
        return True

    @property
    def is_known(self) -> bool:
        """Return whether the gateway verifies clients, or the broker has accepted this one; see
        `contract.Session`."""
        is_open = self._listener.settings.mode is Mode.PASS_THROUGH
        return not is_open or self._in_flight.has_served

    def opened(self, now: float) -> Effects:
        """Return the first effects of the pair: a timer that starts the gateway's reauthentication
        at the broker, if the broker accepts the credential only for a limited time. See
        `contract.Session`."""
        return self._renew_later(self._client.lifetime, now)

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """Return the effects for a stop frame: a whole request or response, or only the head of a
        Produce request or of a Fetch response. See `contract.Session`."""
        if direction is Direction.TO_CLIENT:
            effects = self._decide_response(frame, now)
        else:
            effects = self._decide_request(frame, now)
        if effects and isinstance(effects[0], Sliced):
            return (Sliced(self._in_slices(direction, effects[0].steps, now)),)
        return self._after(direction, effects, now)

    def _after(self, direction: Direction, effects: Effects, now: float) -> Effects:
        """Return the effects of a decision, and those that ask questions and schedule the sweep."""
        asks = self._asking.ask() if direction is Direction.TO_CLIENT else ()
        return (*effects, *asks, *self._sweep_later(now))

    def _in_slices(
        self, direction: Direction, slices: Slices[Effects], now: float
    ) -> Slices[Effects]:
        """Take the rest of a decision in slices. Meanwhile substitutes are kept, as the frame may
        have some."""
        self._slices += 1
        try:
            effects = yield from slices
        finally:
            self._slices -= 1
        return self._after(direction, effects, now)

    # -- requests ----------------------------------------------------------------------------

    def _decide_request(self, frame: bytes, now: float) -> Effects:
        if self._requests.within:
            return self._producing.within(now)
        if self._is_leaving or self._refused is not None:
            return self._decide_while_leaving(frame)
        if self._is_misled():
            return (End(EndReason.TARGET_REFUSED, detail="this is another broker"),)
        if self._renewal is not None or self._renews:
            return (Postpone(math.inf),)
        if self._in_flight.is_full():
            return (Postpone(now + FULL_WAIT),)
        if self._requests.raw:
            return self._bare_token(frame, now)
        if is_head(frame):
            return self._producing.begin(now, stops=self._client.guessed is not None)
        head = read_head(frame)
        known = api(head.key)
        if known is None or head.body < 0 or not self._is_offered(head.key):
            return self._unknown(head)
        if head.key in SASL:
            return self._sasl(head, frame, now)
        if head.key == PRODUCE:
            return self._producing.decide(known, head, frame, now)
        return self._delayed(known, head, frame, now) or self._authorize(known, head, frame, now)

    def _delayed(self, known: Api, head: Head, frame: bytes, now: float) -> Effects | None:
        """Return the effects that make a request wait for a limit; None if it may go on."""
        self._throttle.in_group |= head.key in OF_GROUPS
        if head.key in (FETCH, SHARE_FETCH):
            waits = self._throttle.wait(self._throttle.consumed, now)
            return decided(self._throttled(known, head)) if waits == OVERDUE else waits
        if head.key in DEAR and Action.LOOKUP in self._services.paced:
            return self._pace(known, head, frame, now)
        return None

    def _throttled(self, known: Api, head: Head) -> Slices[Effects]:
        """Respond to a fetch without messages, as brokers above a quota do (KIP-219): its client
        waits for the stated time, without which some take it for a fault. It has no session any
        more, since the broker does not know of this fetch."""
        milliseconds = self._throttle.milliseconds(self._throttle.consumed)
        body = {"ThrottleTimeMs": max(1, milliseconds)}
        if head.key == SHARE_FETCH:
            body[ERROR] = ErrorCode.SHARE_SESSION_NOT_FOUND
        data = yield from encoded(known.response, head.version, body)
        return self._respond(response(known, head.version, head.correlation, data))

    def _authorize(self, known: Api, head: Head, frame: bytes, now: float) -> Effects:
        """Forward a request, with substitutes for what the client has no right to; or refuse it."""
        under_way = self._asking.under_way(now)
        if under_way is not None:
            return under_way
        return decided(self._authorized(known, head, frame, now))

    def _authorized(self, known: Api, head: Head, frame: bytes, now: float) -> Slices[Effects]:
        authorizing = self._authorizing
        outcome = yield from authorizing.authorize(known.request, head, frame)
        waits = self._asking.wait(now)
        if waits is not None:
            # Brokers keep the topics of a fetch session, and clients keep other responses: none of
            # these may get a substitute that is out of date a moment later.
            return waits
        self._paced_until = None
        if outcome.error is not None:
            return (yield from self._refused_as(known, head, frame, outcome.error))
        data = yield from authorizing.without(frame, outcome)
        request = Asked(head.key, head.version, head.correlation, since=now)
        if head.key in COMMITS:
            yield from self._answering.commits(known, head, frame, request)
        if self._asking.is_renewing:  # since meanwhile
            return (Postpone(math.inf),)
        self._in_flight.ask(request)
        return FORWARD if data is frame else (Replace(data),)

    def _refused_as(
        self, known: Api, head: Head, frame: bytes, error: ErrorCode
    ) -> Slices[Effects]:
        return self._respond((yield from refused(known, head, frame, error)))

    def _looked_up(self, since: float, now: float) -> None:
        times = LookupTimes(self._client.subject, since, now, proven=True)
        self._services.looked_up(LookupOutcome.CONNECT, times if self._services.timed else None)

    def _is_offered(self, key: int) -> bool:
        return is_offered(key) and key not in self._listener.hidden

    def _is_misled(self) -> bool:
        """Return whether the client got another broker than it wanted, as far as that is known by
        now. A right guess is no guess any more."""
        client = self._client
        if client.guessed is None or client.node is None:
            return False
        wanted = self._services.broker(client.node)
        if wanted == client.guessed:
            client.guessed = None
            return False
        return wanted is not None

    def _unknown(self, head: Head) -> Effects:
        """Respond to a version of ApiVersions that is too new; for any other unknown request end
        the pair, as brokers do."""
        known = api(head.key)
        if head.key != API_VERSIONS or known is None:
            detail = f"a request of API {head.key} in version {head.version}"
            return (End(EndReason.UNKNOWN_COMMAND, detail=detail),)
        return self._respond(response(known, 0, head.correlation, unsupported()))

    def _respond(self, data: bytes) -> Effects:
        """Drop a request and send a synthetic response, in the order of responses."""
        return responded(self._in_flight, data)

    def _pace(self, known: Api, head: Head, frame: bytes, now: float) -> Effects | None:
        """Return the effects that make a lookup wait for its rate limit, or refuse it; None if it
        may go on."""
        if self._paced_until is None:
            outcome = self._services.wait(Action.LOOKUP, self._client.subject, self._again)
            if isinstance(outcome, Denial):
                self._again = None
                self._services.looked_up(LookupOutcome.REFUSED)
                error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
                return decided(self._refused_as(known, head, frame, error))
            self._again = outcome if isinstance(outcome, Again) else None
            if isinstance(outcome, Again):
                return (Postpone(now + outcome.seconds),)
            self._paced_until = now + outcome
        return (Postpone(self._paced_until),) if now < self._paced_until else None

    # -- responses ---------------------------------------------------------------------------

    def _decide_response(self, frame: bytes, now: float) -> Effects:
        if self._responses.within:
            return self._within(now)
        if self._responses.raw:
            return self._bare_response(frame)
        _, correlation = RESPONSE.unpack_from(frame)
        request = self._in_flight.next(correlation)
        if request.key == FETCH:  # the head alone, and the gateway's own response follows
            own = self._responses.go_on(frame)
            return (Forward(), Inject(Direction.TO_CLIENT, own), *self._end_of_refused(now))
        if request.key in SASL:
            if request.is_own:
                return self._renewed(request, frame, now)
            self._sasl_answered(request, frame)
        if request.key == METADATA and not request.is_own:
            self._looked_up(request.since, now)
        return decided(self._answered(request, frame, now))

    def _within(self, now: float) -> Effects:
        """Return the effects that make the rest of a response to Fetch wait for allowance."""
        waits = self._throttle.wait(self._throttle.received, now)
        if waits == OVERDUE:
            detail = "a response to Fetch that waited too long for a limit"
            return (End(EndReason.OVER_LIMIT, detail=detail),)
        self._responses.passes = waits is None
        return waits or (Postpone(now),)

    def _answered(self, request: Asked, frame: bytes, now: float) -> Slices[Effects]:
        changed = yield from self._answering.response(request, frame)
        own = self._in_flight.answered()
        effect: Effect = Forward() if changed is frame else Replace(changed)
        after: Effects = (Inject(Direction.TO_CLIENT, own),) if own else ()
        after = (*after, *self._end_of_refused(now))
        if request.is_own:
            self._asking.unanswered -= 1
            return (Drop(), *after, Resume(Direction.TO_BROKER))
        return (effect, *after)

    def _end_of_refused(self, now: float) -> Effects:
        """Return the end of a refused client's pair, once it has all responses to its earlier
        requests."""
        if self._refused is None or self._in_flight.open:
            return ()
        if self._responses.owed:
            return (Later(now + PASSING, self._end_of_refused),)
        return (End(EndReason.AUTHENTICATION_FAILED, detail=self._refused.detail),)

    def _settled(self, settling: Settling, _result: bytes | Denial, _now: float) -> Effects:
        settling.until = -math.inf
        return (Resume(Direction.TO_BROKER),)

    # -- SASL --------------------------------------------------------------------------------

    def _sasl(self, head: Head, frame: bytes, now: float) -> Effects:
        """Forward a SASL request where brokers verify clients; otherwise respond to it, as a
        reauthentication of the client."""
        if self._listener.settings.mode is Mode.PASS_THROUGH:
            return self._pass_sasl(head, frame)
        if self._reauthentication is None:
            self._reauthentication = Reauthentication(self._listener, self._client)
        decision = self._reauthentication.decide(head, frame, now)
        if isinstance(decision, Settling):
            asks = () if decision.is_asked else (Start(decision, partial(self._settled, decision)),)
            decision.is_asked = True
            return (*asks, Postpone(decision.until))
        if decision.denial is not None:
            self._refused = decision.denial
            self._stop_requests()
            detail = decision.denial.detail
            at_once = self._in_flight.respond(decision.data)
            if not self._in_flight.open:
                return (Drop(), End(EndReason.AUTHENTICATION_FAILED, at_once, detail))
            return DROP
        if decision.principal is None:
            return self._respond(decision.data)
        self._client.principal = decision.principal
        self._client.credential = decision.credential
        if self._listener.settings.mode is not Mode.VERIFY:  # when it ends is the broker's affair
            return self._respond(decision.data)
        left = self._services.left(decision.principal)
        return (*self._respond(decision.data), Prolong(now + left))

    def _pass_sasl(self, head: Head, frame: bytes) -> Effects:
        if head.key == SASL_HANDSHAKE:
            mechanism = mechanism_of(head, frame)
            self._claim = Claim(mechanism, bare=head.version == BARE)
            if self._claim.bare and not self._claim.is_known:
                detail = f"SaslHandshake 0 with {mechanism}"
                return (End(EndReason.UNKNOWN_COMMAND, detail=detail),)
        elif self._claim is not None:
            self._claim.add(token_of(head, frame))
        request = Asked(head.key, head.version, head.correlation, claim=self._claim)
        self._in_flight.ask(request)
        return FORWARD

    def _sasl_answered(self, request: Asked, frame: bytes) -> None:
        """Note a broker's response to a client that the broker verifies."""
        claim = request.claim
        if claim is None:
            return
        if request.key == SASL_AUTHENTICATE:
            outcome = read_answer(request.version, frame)
            self._name("" if outcome.error else claim.accepted(outcome.data))
            self._in_flight.has_served |= claim.is_accepted
        elif claim.bare:
            accepted = not read_offer(request.version, frame).error
            self._requests.raw = self._responses.raw = accepted
            self._claim = claim

    def _bare_token(self, frame: bytes, now: float) -> Effects:
        claim = self._claim
        assert claim is not None
        if claim.is_over:  # the broker has to accept the last token first
            return (Postpone(now + LONGEST_QUESTION),)
        claim.add(read_bare(frame))
        return FORWARD

    def _bare_response(self, frame: bytes) -> Effects:
        claim = self._claim
        assert claim is not None
        self._name(claim.accepted(read_bare(frame)))
        self._in_flight.has_served |= claim.is_accepted
        if not claim.is_answered:
            return FORWARD
        self._requests.raw = self._responses.raw = False
        return (Forward(), Resume(Direction.TO_BROKER))

    def _name(self, name: str) -> None:
        """Note the name by which the broker knows the client."""
        if name:
            caller = self._client.subject.caller._replace(principal=name)
            self._client.subject = Subject(caller)

    # -- the gateway's credential ------------------------------------------------------------

    def _renew_later(self, lifetime: float, now: float) -> Effects:
        """Schedule the gateway's reauthentication at the broker, if the broker's time for it is
        limited."""
        return () if math.isinf(lifetime) else (Later(now + due_in(lifetime), self._renew),)

    def _renew(self, now: float) -> Effects:
        """Begin the gateway's reauthentication at the broker, as soon as no request passes."""
        if self._is_leaving or self._refused is not None:
            return ()
        self._stop_requests()
        self._renews = self._requests.owed > 0
        if self._renews:
            return (Later(now + PASSING, self._renew),)
        credential = credential_of(
            self._listener, self._client.subject.caller.principal, self._client.credential
        )
        mechanism = self._listener.mechanism
        if isinstance(credential, Denial) or mechanism is None:
            self._let_requests_pass()
            return (Resume(Direction.TO_BROKER),)  # the broker ends the connection when it has to
        self._renewal = Renewal(credential, mechanism, OWN)
        self._asking.is_renewing = True
        request, data = self._renewal.begin()
        self._in_flight.ask(request)
        return (Inject(Direction.TO_BROKER, data),)

    def _renewed(self, request: Asked, frame: bytes, now: float) -> Effects:
        """Go on with the reauthentication after the broker's response."""
        renewal = self._renewal
        assert renewal is not None
        outcome = renewal.answered(request, frame)
        own = self._in_flight.answered()
        before: Effects = (Drop(), Inject(Direction.TO_CLIENT, own)) if own else DROP
        if isinstance(outcome, Denial):
            return (*before, End(EndReason.BROKER_REFUSED, detail=outcome.text))
        if outcome is not None:
            following, data = outcome
            self._in_flight.ask(following)
            return (*before, Inject(Direction.TO_BROKER, data))
        self._renewal = None
        self._asking.is_renewing = False
        self._let_requests_pass()
        next_renewal = self._renew_later(renewal.lifetime, now)
        return (*before, Resume(Direction.TO_BROKER), *next_renewal, *self._end_of_refused(now))

    # -- sweeps ------------------------------------------------------------------------------

    def _sweep_later(self, now: float) -> Effects:
        """Schedule a sweep, if the connection has an account or a substitute and none is due."""
        has_some = self._book.has_new or len(self._substitutes)
        self._book.has_new = False
        if self._sweeps or not has_some:
            return ()
        self._sweeps = True
        return (Later(now + SWEPT, self._sweep),)

    def _sweep(self, now: float) -> Effects:
        """Close unused accounts, some at a time, and schedule the next sweep while any are left,
        since passing frames give no occasion for it."""
        scanners = (self._requests, self._responses)
        closed = self._book.close_idle([it.account for it in scanners if it.owed])
        for account in closed:
            self._throttle.forget(account)
        discards = tuple(map(Discard, closed))
        if self._book.is_sweeping:
            return (*discards, Later(now, self._sweep))
        self._sweeps = False
        if self._is_at_rest and not self._book.sessions.any_fetch:
            self._substitutes.clear()
        # An account that is still open has to be looked at again.
        self._book.has_new |= len(self._book) > 0
        return (*discards, *self._sweep_later(now))

    def _stop_requests(self) -> None:
        """Make each request stop from now on."""
        self._requests.stops = True
        self._requests.passes = False

    def _let_requests_pass(self) -> None:
        """Undo `_stop_requests`, unless requests have to stop for another reason."""
        self._requests.stops = self._client.guessed is not None or bool(self._throttle.produced)

    @property
    def _is_at_rest(self) -> bool:
        """Return whether no response is in flight, and no frame has passed in part or is being
        decided."""
        owed = self._requests.owed or self._responses.owed
        return not (self._in_flight.open or owed or self._slices)

    # -- ends --------------------------------------------------------------------------------

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """Close the account of a producer or consumer that rules no longer allow, and return the
        effects; see `contract.Session`. For a consumer, the effects end the pair: the broker would
        go on sending the topic's messages in a fetch session, so the client has to connect again.
        """
        self._book.withdraw(account)
        self._throttle.forget(account)
        if account.action is Action.PRODUCE:
            return (Discard(account), Resume(Direction.TO_BROKER))
        return (End(EndReason.OPERATOR_CLOSED, detail=denial.text),)

    def expiring(self, now: float) -> Effects:
        """Return no effects: Kafka's clients cannot be asked for a newer credential. They know
        themselves when their credential expires."""
        return ()

    def leave(self, now: float) -> Effects | None:
        """Take one step of moving the client to another gateway; see `contract.Session`. The first
        step ends the forwarding of requests, and gives a postponed request to `decide` again, which
        may respond to it. Later steps wait for the rest of a frame that is being forwarded, and for
        the responses to in-flight requests, except JoinGroup and SyncGroup."""
        if not self._is_leaving:
            self._is_leaving = True
            self._stop_requests()
            return (Resume(Direction.TO_BROKER),)
        passes = self._requests.owed or self._responses.owed
        return None if self._in_flight.waits_only_for(LONG) and not passes else ()

    def _decide_while_leaving(self, frame: bytes) -> Effects:
        """Send clients back to their bootstrap servers if they understand it (KIP-1102), and leave
        all other requests unread, so that clients send them again elsewhere."""
        if not self._requests.raw and not is_head(frame):
            head = read_head(frame)
            if head.key == METADATA and head.version >= REBOOTSTRAP and head.body >= 0:
                return self._respond(self._answering.rebootstrap(head))
        return (Postpone(math.inf),)

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """Return no bytes: in Kafka a server sends a frame only in response to a request."""
        return b""

    def close(self) -> bool:
        """Release some of the pair's accounts, and the pair's memory quota after the last account;
        return whether accounts are left. See `contract.Session`."""
        for scanner in (self._requests, self._responses):
            scanner.finish()
        if self._book.close_some():
            return True
        self._client.leave()
        return False
