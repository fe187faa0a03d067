"""How a playbook is written: `Play` for an open pair, `Talk` for a conversation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

from gateway.wire.account import Account, Right
from gateway.wire.address import Address
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import (
    AfterJob,
    Await,
    Credential,
    Denial,
    Dial,
    Dialled,
    Direction,
    Discard,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Forward,
    Inject,
    Job,
    Later,
    Opened,
    Peek,
    Peer,
    Postpone,
    Principal,
    Receive,
    Refused,
    Replace,
    Resume,
    Settle,
    Sliced,
    Start,
    Step,
    StepResult,
    Transmit,
    Wait,
)
from gateway.wire.contract import Session as AnySession
from gateway.wire.kafka.context import Client, Listener
from gateway.wire.kafka.opening import open_pair
from gateway.wire.kafka.session import KafkaSession
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.services import Undecided
from gateway.wire.subject import Caller, Subject, TopicName
from tests.playbooks.services import BROKER_1, FORBIDDEN, ORIGIN
from tests.unit.wire.kafka.sasl.doubles import SaslServices

from .frames import id_of

TO_BROKER, TO_CLIENT = Direction
PASS_THROUGH, VERIFY, FORWARD_TOO = Mode.PASS_THROUGH, Mode.VERIFY, Mode.VERIFY_AND_FORWARD

NOW = 1000.0

CLUSTER = ""
"""What `forbidden` says for the right on the cluster."""

EVERY = "*"
"""What `judged` says for a right to all topics."""


class KafkaServices(SaslServices):
    """Also decides about groups, transactions and the cluster: `forbidden` has (right, name), of a
    group or a transaction with `group:` before it."""

    def __init__(self, *, methods: tuple[str, ...] = ()) -> None:
        super().__init__(methods=methods)
        self.judged: list[tuple[Right, str]] = []
        self.expiry: float | None = None  # of alice's password

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """See `Services`. Whoever has asked once knows it."""
        name = CLUSTER if subject.topic is None else subject.topic.whole
        if subject.subscription is not None:
            name = f"group:{subject.subscription}"
        self.judged.append((right, name))
        if name in self.undecided:

            async def ask() -> None:
                self.undecided.discard(name)

            return Undecided(ask)
        return FORBIDDEN if (right, name) in (self.forbidden or ()) else None

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """See `Services`. What is forbidden of groups and of the cluster is of no topic."""
        self.judged.append((right, EVERY))
        names = [name for it, name in self.forbidden or () if it is right]
        of_topics = [it for it in names if it != CLUSTER and not it.startswith("group:")]
        return FORBIDDEN if of_topics else None

    def _principal(self, credential: Credential) -> Principal | Denial:
        if credential.method == "":
            return Principal("nobody", verified=True)
        if credential.method == "tls":
            return Principal("certified", verified=True)
        if credential == Credential("basic", b"bob:builder"):
            return Principal("bob", verified=True)
        return super()._principal(credential)

    def scram_ended(self, secret: Any, *, right: bool) -> Principal | Denial:
        """See `Services`."""
        found = super().scram_ended(secret, right=right)
        if isinstance(found, Denial):
            return found
        return Principal(found.name, verified=True, expires_at=self.expiry)


def listener(
    services: KafkaServices | None = None, mode: Mode = PASS_THROUGH, **settings: Any
) -> Listener:
    return Listener(EntrySettings(services=services or KafkaServices(), mode=mode, **settings))


def answered(question: Settle) -> StepResult:
    """Return the response to a question that waits for nothing."""
    asking = question.response().__await__()
    try:
        next(asking)
    except StopIteration as stop:
        found: StepResult = stop.value
        return found
    raise AssertionError("the answer is not known")


class Play:
    """An open pair without sockets, which moves bytes as the plane does.

    `sent`: bytes that have gone, by direction, since somebody looked. `jobs`: that were started,
    with what comes after them. `awaited`: accounts whose next grant is told. `end`: how it ended.
    `slices`: that decisions took beyond their first. `between_slices`: is called before each.
    """

    def __init__(
        self,
        services: KafkaServices | None = None,
        mode: Mode = PASS_THROUGH,
        *,
        of: Listener | None = None,
        session: AnySession | None = None,
        principal: str = "alice",
        known: tuple[str, ...] = (),
        node: int | None = None,
        guessed: Address | None = None,
        lifetime: float = math.inf,
        **settings: Any,
    ) -> None:
        self.listener = of or listener(services, mode, **settings)
        self.services: Any = self.listener.settings.services
        for name in known:
            self.listener.ids.learn(id_of(name), name.encode())
        self.budget = Budget()
        self.client_of = Client(
            Subject(Caller(protocol="kafka", principal=principal, connection=1)),
            Quota(self.budget, "client"),
            Principal(principal, verified=mode is not PASS_THROUGH),
            node=node,
            guessed=guessed,
            lifetime=lifetime,
        )
        self.session = session or KafkaSession(self.listener, self.client_of)
        self.now = NOW
        self.slices = 0
        self.between_slices: Callable[[], object] = lambda: None
        self.sent = {TO_BROKER: bytearray(), TO_CLIENT: bytearray()}
        self.jobs: list[tuple[Job, AfterJob]] = []
        self.laters: list[Later] = []
        self.awaited: set[Account] = set()
        self.prolonged: list[Effect] = []
        self.end: End | None = None
        self._carry = {TO_BROKER: b"", TO_CLIENT: b""}
        self._collects = {TO_BROKER: 0, TO_CLIENT: 0}  # the length of a stop frame that is cut
        self._postponed: dict[Direction, float] = {}
        self._resumed: list[Direction] = []
        self._at_border: dict[Direction, list[bytes]] = {TO_BROKER: [], TO_CLIENT: []}
        self._carry_out(self.session.opened(self.now), TO_BROKER)

    # -- what peers say ------------------------------------------------------------------------

    def client(self, *data: bytes) -> bytes:
        """Say this to the gateway as the client; return what the broker has got since."""
        self._say(TO_BROKER, b"".join(data))
        return self.broker_got()

    def broker(self, *data: bytes) -> bytes:
        """Say this to the gateway as the broker; return what the client has got since."""
        self._say(TO_CLIENT, b"".join(data))
        return self.client_got()

    def broker_got(self) -> bytes:
        return self._got(TO_BROKER)

    def client_got(self) -> bytes:
        return self._got(TO_CLIENT)

    def _got(self, direction: Direction) -> bytes:
        data = bytes(self.sent[direction])
        self.sent[direction].clear()
        return data

    def _say(self, direction: Direction, data: bytes) -> None:
        self._carry[direction] += data
        self._move(direction)
        self._settle()

    def _settle(self) -> None:
        """Offer again what was resumed, or is due: the plane does so when others had their turn."""
        while self.end is None:
            self._resumed += [way for way, until in self._postponed.items() if until <= self.now]
            if not self._resumed:
                return
            direction = self._resumed.pop(0)
            if self._postponed.pop(direction, None) is not None:
                self._move(direction)

    def _move(self, direction: Direction) -> None:
        scanner = self.session.scanners[direction]
        if self._collects[direction] and not self._decide(direction):
            return
        while self._carry[direction] and self.end is None and direction not in self._postponed:
            chunk = bytearray(self._carry[direction])
            end = len(chunk)
            if self._at_border[direction]:
                end = min(end, scanner.owed)
            size = len(chunk)
            cleared = scanner.scan(chunk, 0, end)
            assert len(chunk) == size, "what passes has another length"
            self.sent[direction] += chunk[:cleared]
            self._carry[direction] = bytes(chunk[cleared:])
            if not scanner.owed:
                self._do_at_border(direction)
            if not scanner.stop:
                if cleared == end < len(chunk):
                    continue
                return
            self._collects[direction] = scanner.stop
            if not self._decide(direction):
                return

    def _decide(self, direction: Direction) -> bool:
        """Have the stop frame decided once it is whole, which is not scanned again before; return
        whether it was."""
        length = self._collects[direction]
        frame, rest = self._carry[direction][:length], self._carry[direction][length:]
        if len(frame) < length:
            return False
        self._collects[direction] = 0
        self._carry[direction] = rest
        effects = self.session.decide(direction, frame, self.now)
        self._carry_out(self._in_slices(effects), direction, frame)
        if direction in self._postponed:
            self._carry[direction] = frame + rest
        return True

    def _in_slices(self, effects: Effects) -> Effects:
        """Return the effects of a decision, which may take more slices than the first."""
        for effect in effects:
            if isinstance(effect, Sliced):
                assert len(effects) == 1
                return self._taken(effect)
        return effects

    def _taken(self, sliced: Sliced) -> Effects:
        while True:
            self.slices += 1
            self.between_slices()
            try:
                next(sliced.steps)
            except StopIteration as end:
                effects: Effects = end.value
                return effects

    def _do_at_border(self, direction: Direction) -> None:
        for data in self._at_border[direction]:
            self.sent[direction] += data
        self._at_border[direction].clear()

    # -- effects -------------------------------------------------------------------------------

    def _carry_out(self, effects: Effects, direction: Direction, frame: bytes = b"") -> None:
        verdicts = [it for it in effects if isinstance(it, Forward | Replace | Drop | Postpone)]
        ends = any(isinstance(it, End) for it in effects)
        assert len(verdicts) == bool(frame) or ends, f"{len(verdicts)} verdicts"
        for effect in effects:
            if self.end is None:
                self._effect(effect, direction, frame)

    def _effect(  # noqa: C901 - an arm for each effect
        self, effect: Effect, direction: Direction, frame: bytes
    ) -> None:
        match effect:
            case Forward():
                self.sent[direction] += frame
            case Replace(data):
                self.sent[direction] += data
            case Inject(way, data):
                if self.session.scanners[way].owed:
                    self._at_border[way].append(data)
                else:
                    self.sent[way] += data
            case Postpone(until):
                self._postponed[direction] = until
            case Resume(way):
                self._resumed.append(way)
            case Start(job, then):
                self.jobs.append((job, then))
            case Later():
                self.laters.append(effect)
            case Await(account):
                self.awaited.add(account)
            case Discard(account):
                self.awaited.discard(account)
            case End(_, farewell):
                self.sent[TO_CLIENT] += farewell
                self.end = effect
            case Drop():
                pass
            case _:
                self.prolonged.append(effect)

    # -- what else happens ---------------------------------------------------------------------

    def after(self, seconds: float) -> None:
        """Let time pass; what is due by then happens at that time."""
        self.now += seconds
        for later in [it for it in self.laters if it.until <= self.now]:
            self.laters.remove(later)
            if self.end is None:
                self._carry_out(later.then(self.now), TO_BROKER)
        for direction in [way for way, until in self._postponed.items() if until <= self.now]:
            del self._postponed[direction]
            self._move(direction)
        self._settle()

    @property
    def waits(self) -> float:
        """Return for how many seconds the client's request waits."""
        return self._postponed[TO_BROKER] - self.now

    @property
    def is_waiting(self) -> bool:
        """Return whether a request of the client waits."""
        return TO_BROKER in self._postponed

    def grant(self, account: Account, messages: int = 1, size: int = 1 << 30) -> None:
        """Grant allowance, which the session is told of if it awaits it."""
        account.grant(messages, size)
        if account in self.awaited and self.end is None:
            self.awaited.discard(account)
            assert self.session.holding is not None
            self._carry_out(self.session.holding.delivered(self.now) or (), TO_BROKER)
            self._settle()

    def finish(self, late: Denial | None = None) -> None:
        """Finish the job that was started first. `late`: it took too long."""
        job, then = self.jobs.pop(0)
        result: bytes | Denial = late or b""
        if late is None:
            steps = job.converse()
            given: StepResult = None
            with suppress(StopIteration):
                while True:
                    step = steps.send(given)
                    assert isinstance(step, Settle)
                    given = answered(step)
        self._carry_out(then(result, self.now), TO_BROKER)
        self._settle()

    def leave(self) -> bool:
        """Take a step of leaving; return whether there are more."""
        effects = self.session.leave(self.now)
        self._carry_out(effects or (), TO_CLIENT)
        self._settle()
        return effects is not None

    def revoke(self, account: Account, denial: Denial = FORBIDDEN) -> None:
        """Withdraw the admission of an account."""
        self._carry_out(self.session.revoke(account, denial, self.now), TO_CLIENT)
        self._settle()

    def close(self) -> None:
        """Close the session; all that it has is given back."""
        while self.session.close():
            pass
        assert self.budget.taken == 0
        assert not self.services.live

    @property
    def ended(self) -> EndReason | None:
        """Return why the pair has ended."""
        return None if self.end is None else self.end.reason

    def account(self, topic: str) -> Account:
        """Return the account of a topic that was opened last."""
        found: list[Account] = [it for it in self.services.admitted if it.topic == topic]
        return found[-1]


class Talk:
    """A conversation, as far as it goes without hearing more. `dials`: what was dialled. `waited`:
    seconds. `outcome`: None while it goes on."""

    def __init__(
        self,
        steps: Generator[Step, StepResult, Any],
        *,
        reach: Callable[[Address | None], Dialled | Denial] | None = None,
    ) -> None:
        self._steps = steps
        self._reach = reach or (lambda target: Dialled(target or BROKER_1))
        self._heard: dict[Peer, deque[bytes | Denial]] = {peer: deque() for peer in Peer}
        self._told: dict[Peer, list[bytes]] = {peer: [] for peer in Peer}
        self.dials: list[Dial] = []
        self.waited: list[float] = []
        self.outcome: Opened | Refused | None = None
        self._step: Step | None = None
        self._go_on(None)

    def client(self, *frames: bytes | Denial) -> bytes:
        """Say this as the client; return what it has been told since."""
        self._heard[Peer.CLIENT].extend(frames)
        self._advance()
        return self.client_got()

    def broker(self, *frames: bytes | Denial) -> bytes:
        """Say this as the broker; return what it has been told since."""
        self._heard[Peer.BROKER].extend(frames)
        self._advance()
        return self.broker_got()

    def client_got(self) -> bytes:
        return self._got(Peer.CLIENT)

    def broker_got(self) -> bytes:
        return self._got(Peer.BROKER)

    def _got(self, peer: Peer) -> bytes:
        data = b"".join(self._told[peer])
        self._told[peer].clear()
        return data

    def _go_on(self, result: StepResult) -> None:
        try:
            self._step = self._steps.send(result)
        except StopIteration as stop:
            self._step, self.outcome = None, stop.value
            return
        self._advance()

    def _advance(self) -> None:
        while self._step is not None:
            for result in self._result(self._step):
                self._go_on(result)
                break
            else:
                return

    def _result(self, step: Step) -> Iterator[StepResult]:
        """Yield the result of a step, if there is one yet."""
        match step:
            case Peek(peer, count):
                yield from self._peeked(peer, count)
            case Receive(peer):
                if self._heard[peer]:
                    yield self._heard[peer].popleft()
            case Transmit(peer, data):
                assert peer is Peer.CLIENT or self.dials, "a broker that was not dialled"
                self._told[peer].append(data)
                yield None
            case Wait(seconds):
                self.waited.append(seconds)
                yield None
            case Dial(target):
                self.dials.append(step)
                self._heard[Peer.BROKER].clear()
                yield self._reach(target)
            case Settle():
                yield answered(step)

    def _peeked(self, peer: Peer, count: int) -> Iterator[StepResult]:
        seen = b""
        for heard in self._heard[peer]:
            if isinstance(heard, Denial):
                yield heard
                return
            seen += heard
            if len(seen) >= count:
                yield seen[:count]
                return

    def peeks(self, seen: bytes) -> None:
        """Let the client's first bytes be seen, of a frame that has not come whole."""
        assert self._step == Peek(Peer.CLIENT, len(seen))
        self._go_on(seen)

    def refused(self, reason: EndReason) -> Refused:
        """Check that the opening ended without a pair."""
        assert isinstance(self.outcome, Refused)
        assert self.outcome.reason is reason, self.outcome
        return self.outcome

    def opens(self) -> KafkaSession:
        """Check that the opening ended with a pair."""
        assert isinstance(self.outcome, Opened), self.outcome
        assert isinstance(self.outcome.session, KafkaSession)
        return self.outcome.session

    def goes_on(self, services: KafkaServices) -> Play:
        """Return the open pair, which hears what the opening has left."""
        play = Play(of=listener(services), session=self.opens())
        left = [it for it in self._heard[Peer.CLIENT] if isinstance(it, bytes)]
        play._say(TO_BROKER, b"".join(left))
        return play


def opening(of: Listener, origin: Any = ORIGIN) -> Talk:
    """Begin the opening conversation of a listener."""
    return Talk(open_pair(of, origin))
