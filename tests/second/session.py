"""The session of one `memo` connection; see `contract.Session`.

No frame is held: a request above a limit gets an ERROR in its place, and the client is not read for
a moment. The first request for a topic opens its account, which lives as long as the connection.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.budget import Quota
from gateway.wire.contract import (
    FORWARD,
    Denial,
    Direction,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Later,
    Pause,
    Refusal,
    Replace,
    Scanner,
)
from gateway.wire.first_use import Accounts
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.services import Again, LookupOutcome
from gateway.wire.subject import Caller, Subject
from tests.second.ledger import Ledger
from tests.second.memo import (
    ANSWER,
    Kind,
    error_of,
    frame,
    head_of,
    places,
    places_of,
    read_sections,
    refusal,
    topics_of,
)
from tests.second.scanning import ToBrokerScanner, ToClientScanner, count
from tests.second.topics import read_topic

REFUSED = 0.02
"""Seconds without reading after a refusal, so that a client that repeats its request must wait."""

TOPIC_SIZE = 512
"""Bytes of the budget that an open topic takes."""

MOVED = Denial(Refusal.NOT_READY, "this gateway stops; connect again")
TOO_OFTEN = Denial(Refusal.TOO_OFTEN, "a limit is reached; try again later")
UNNAMED = Denial(Refusal.NAME, "not the name of a topic")
UNKNOWN = Denial(Refusal.UNSUPPORTED, "not a request that this gateway knows")


class MemoSession:
    """See `contract.Session`. `holding`: no frame waits. `stopwatch`: nothing is timed. `idle`: as
    the plane is set."""

    holding = None
    idle = None
    stopwatch = None

    def __init__(
        self, settings: EntrySettings, subject: Subject, expires_at: float | None = None
    ) -> None:
        self._settings = settings
        self._services = settings.services
        self._subject = subject
        self._ledger = Ledger()
        self._waiting = 0  # delayed requests
        self._to_broker = ToBrokerScanner(self._ledger)
        self._to_client = ToClientScanner(self._ledger)
        quota = Quota(settings.budget, subject.host or "")
        self._topics = Accounts[bytes](settings.services, quota, TOPIC_SIZE)
        self.expires_at = expires_at if settings.mode is Mode.VERIFY else None
        self.collected_bound = settings.bounds.collected

    @property
    def caller(self) -> Caller:
        """See `contract.Session`."""
        return self._subject.caller

    @property
    def scanners(self) -> tuple[Scanner, Scanner]:
        """See `contract.Session`."""
        return self._to_broker, self._to_client

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        id, kind = head_of(frame)
        if direction is Direction.TO_CLIENT:
            return self._answered(kind, frame)
        if self._to_broker.closed:
            return self._refuse(id, MOVED)
        match kind:
            case Kind.PUT:
                found = read_sections(frame, 0, len(frame), len(frame)) or []
                topics = [section.topic.decode(errors="replace") for section in found]
                return self._use(Action.PRODUCE, topics, frame, now)
            case Kind.GET:
                return self._use(Action.CONSUME, topics_of(frame), frame, now)
            case Kind.WHERE:
                return self._where(topics_of(frame), frame, now)
            case Kind.HELLO:
                raise PeerError("a second HELLO on one connection")
        if self._settings.unknown_pass:
            return self._refuse(id, UNKNOWN, now)
        return (End(EndReason.UNKNOWN_COMMAND, refusal(id, UNKNOWN)),)

    # -- requests ----------------------------------------------------------------------------

    def _use(self, action: Action, topics: list[str], frame: bytes, now: float) -> Effects:
        """Decide a PUT or GET with a topic that is not open or has no allowance."""
        accounts = [self._open(action, topic) for topic in topics] or [UNNAMED]
        for account in accounts:
            if isinstance(account, Denial):
                return self._refuse(head_of(frame)[0], account, now)
            if account.held and not self._services.wants(account):
                return self._refuse(head_of(frame)[0], TOO_OFTEN, now)
        if action is Action.PRODUCE:
            found = read_sections(frame, 0, len(frame), len(frame)) or []
            count(found, self._to_broker.accounts, len(frame))
        self._ledger.add_request()
        return FORWARD

    def _open(self, action: Action, topic: str) -> Account | Denial:
        """Return the account of a topic; open it at its first use."""
        accounts = self._accounts(action)
        if (known := accounts.get(topic.encode())) is not None:
            return known
        name = read_topic(topic)
        if name is None:
            return UNNAMED
        account = self._topics.admit(action, self._subject.about(name))
        if isinstance(account, Account):
            self._topics.keep(accounts, topic.encode(), account)
        return account

    def _accounts(self, action: Action) -> dict[bytes, Account]:
        """Return the open accounts of an action. Each direction counts one action."""
        return (self._to_broker if action is Action.PRODUCE else self._to_client).accounts

    def _refuse(self, id: int, denial: Denial, now: float | None = None) -> Effects:
        """Refuse a request in its place. `now`: do not read the client for a moment from then."""
        at_once = self._ledger.add_own_answer(refusal(id, denial))
        effects: list[Effect] = [Drop()]
        if at_once:
            effects.append(Inject(Direction.TO_CLIENT, at_once))
        if now is not None:
            effects.append(Pause(Direction.TO_BROKER, now + REFUSED))
        return tuple(effects)

    # -- WHERE -------------------------------------------------------------------------------

    def _where(self, topics: list[str], frame: bytes, now: float) -> Effects:
        subjects = []
        for topic in topics:
            name = read_topic(topic)
            subject = self._subject if name is None else self._subject.about(name)
            found = UNNAMED if name is None else self._services.admit(Action.LOOKUP, subject)
            if isinstance(found, Denial):
                return self._not_found(frame, found, now)
            self._services.release(found)
            subjects.append(subject)
        if Action.LOOKUP not in self._services.paced:
            subjects.clear()
        return self._in_time(subjects, frame, now, now)

    def _in_time(
        self, subjects: list[Subject], frame: bytes, until: float, now: float, *again: Again
    ) -> Effects:
        """Forward a lookup once all its topics may be looked up."""
        for number, subject in enumerate(subjects):
            response = self._services.wait(Action.LOOKUP, subject, *again)
            if isinstance(response, Denial):
                return self._not_found(frame, response, now)
            if isinstance(response, Again):
                rest = subjects[number:]
                asked = partial(self._ask_again, rest, frame, until, response)
                return self._later(now + response.seconds, asked)
            until, again = max(until, now + response), ()
        if until > now:
            return self._later(until, partial(self._go_on, frame))
        self._ledger.add_request()
        return FORWARD

    def _later(self, until: float, then: partial[Effects]) -> Effects:
        """Delay a request, and read no other one meanwhile, so that none overtakes it. The request
        goes on before reading does: of two equal deadlines the first one runs first."""
        self._waiting += 1
        return (Drop(), Later(until, then), Pause(Direction.TO_BROKER, until))

    def _ask_again(
        self, subjects: list[Subject], frame: bytes, until: float, again: Again, now: float
    ) -> Effects:
        self._waiting -= 1
        effects = self._in_time(subjects, frame, until, now, again)
        return tuple(_inject_in_place_of_forward(effect, frame) for effect in effects)

    def _go_on(self, frame: bytes, now: float) -> Effects:
        self._waiting -= 1
        self._ledger.add_request()
        return (Inject(Direction.TO_BROKER, frame),)

    def _not_found(self, frame: bytes, denial: Denial, now: float) -> Effects:
        self._services.looked_up(LookupOutcome.REFUSED)
        return self._refuse(head_of(frame)[0], denial, now)

    # -- answers -----------------------------------------------------------------------------

    def _answered(self, kind: int, frame: bytes) -> Effects:
        """Decide a response of the broker that is rewritten, or that an own response follows."""
        if not self._ledger.owed:
            raise PeerError("an answer without a request")
        effect: Effect = Forward()
        match kind:
            case 0x82:
                effect = Replace(self._places(frame))
            case 0x83:
                pass
            case 0x84:
                found = read_sections(frame, 0, len(frame), len(frame)) or []
                count(found, self._to_client.accounts, len(frame))
            case Kind.ERROR:
                effect = Replace(cleaned(frame, self._settings))
            case _:
                raise PeerError(f"an answer of kind {kind}")
        own = self._ledger.pass_answer()
        return (effect, Inject(Direction.TO_CLIENT, own)) if own else (effect,)

    def _places(self, response: bytes) -> bytes:
        """Return a response to WHERE with the gateway's address for each broker."""
        id, _ = head_of(response)
        found = []
        for topic, host, port in places_of(response):
            place = self._services.advertise(Address(host, port))
            if isinstance(place, Denial):
                self._services.looked_up(LookupOutcome.REFUSED)
                return refusal(id, Denial(Refusal.NOT_READY, place.text))
            found.append((topic, place.host, place.port))
        self._services.looked_up(LookupOutcome.CONNECT)
        return frame(id, Kind.WHERE | ANSWER, places(found))

    # -- ends --------------------------------------------------------------------------------

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`. The next use of the topic is admitted anew, or refused."""
        self._topics.withdraw(account)
        return ()

    @property
    def moves_at(self) -> float | None:
        """See `contract.Session`."""
        return None

    @property
    def may_move(self) -> bool:
        """See `contract.Session`."""
        return True

    @property
    def is_known(self) -> bool:
        """See `contract.Session`."""
        return True

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`. Clients cannot be asked."""
        return ()

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`. Refuse new requests, and wait for answers to earlier ones."""
        self._to_broker.closed = True
        return () if self._ledger.owed or self._waiting else None

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. It answers no request, so it has id 0."""
        told = reason in (EndReason.CLIENT_VIOLATION, EndReason.FRAME_TOO_LARGE)
        return refusal(0, Denial(Refusal.UNSUPPORTED, detail)) if told else b""

    def close(self) -> bool:
        """See `contract.Session`."""
        return self._topics.close_some()


def cleaned(error: bytes, settings: EntrySettings) -> bytes:
    """Return a broker's ERROR without broker addresses in its text."""
    denial = error_of(error)
    text = settings.services.clean(denial.text[: settings.bounds.text])
    return refusal(head_of(error)[0], replace(denial, text=text))


def _inject_in_place_of_forward(effect: Effect, frame: bytes) -> Effect:
    """Return the effect for a frame that was dropped before, and so cannot be forwarded."""
    return Inject(Direction.TO_BROKER, frame) if isinstance(effect, Forward) else effect
