"""How a playbook is written: `Play` for an open pair, `Talk` for a conversation."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Self

from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.contract import (
    AfterJob,
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
    Hold,
    Inject,
    Job,
    Later,
    Opened,
    Peer,
    Principal,
    Receive,
    Refused,
    Replace,
    Settle,
    Start,
    Step,
    StepResult,
    Transmit,
    Wait,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.chase import Chase
from gateway.wire.pulsar.context import Bounds, Client, ListenerContext
from gateway.wire.pulsar.opening import open_pair
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.subject import Subject
from tests.support.effects import at_once
from tests.support.requests import FIRST_OWN, from_session, to_session
from tests.support.subjects import caller_of

from .frames import close_consumer, connect, read
from .services import BROKER_1, ORIGIN, FakeServices

VERSION = "gateway/test"
PASS_THROUGH, VERIFY, FORWARD_TOO = Mode.PASS_THROUGH, Mode.VERIFY, Mode.VERIFY_AND_FORWARD


def listener(services: FakeServices, mode: Mode = PASS_THROUGH, **settings: Any) -> ListenerContext:
    return ListenerContext(
        services=services,
        commands=COMMANDS,
        mode=mode,
        version=VERSION,
        first_request=lambda: FIRST_OWN,
        **settings,
    )


def at(until: float) -> Later:
    """Return a `Later` of this time; comparisons ignore its `then`."""
    return Later(until, lambda now: ())


@dataclass(frozen=True)
class Outcome:
    """The outcome of one frame. `effects`: None if it passed unread."""

    effects: Effects | None

    def happens(self) -> None:
        """Accept any outcome, because another playbook checks it."""

    def passes(self) -> None:
        """Check that the frame passed unread, but was counted."""
        assert self.effects is None

    def gives(self, *effects: Effect) -> None:
        """Check that the session returned exactly these effects."""
        assert self.effects == effects

    def forwards(self) -> None:
        self.gives(Forward())

    def drops(self) -> None:
        self.gives(Drop())

    def holds(self, account: Account) -> None:
        self.gives(Hold(account))

    def replaces(self, data: bytes) -> None:
        self.gives(Replace(data))

    def refuses(self, data: bytes) -> None:
        """Check that the frame is dropped and the client gets this frame."""
        self.gives(Drop(), Inject(Direction.TO_CLIENT, data))

    def refuses_consumer(self, data: bytes, id: int = 1) -> None:
        """Check that the frame is dropped and the client gets this frame and a CLOSE_CONSUMER."""
        told = (data, close_consumer(id))
        self.gives(Drop(), *(Inject(Direction.TO_CLIENT, it) for it in told))

    def replaced(self) -> BaseCommand:
        """Return the command that went on in place of the frame."""
        assert self.effects is not None
        (effect,) = self.effects
        assert isinstance(effect, Replace)
        return read(effect.data)

    def ended(self, reason: EndReason) -> BaseCommand:
        """Check that the pair ended; return the farewell."""
        assert self.effects is not None
        drop, end = self.effects
        assert drop == Drop()
        assert isinstance(end, End)
        assert end.reason is reason
        return read(end.farewell)

    def started(self) -> tuple[Chase, AfterJob]:
        """Check that the frame is withheld and a chase started; return chase and `then`."""
        assert self.effects is not None
        drop, start = self.effects
        assert drop == Drop()
        assert isinstance(start, Start)
        assert isinstance(start.job, Chase)
        return start.job, start.then

    def asked(self) -> tuple[Job, AfterJob]:
        """Check that the frame is withheld until a response about the client; return the job that
        asks for it, and `then`."""
        assert self.effects is not None
        drop, start = self.effects
        assert drop == Drop()
        assert isinstance(start, Start)
        return start.job, start.then

    @property
    def words(self) -> str:
        """Return the names of the effects, as in the tables of the docs."""
        if self.effects is None:
            return "pass"
        return " + ".join(type(effect).__name__.lower() for effect in self.effects)


class Play:
    """An open pair without sockets. All frames come whole: tests of scanners cut them.

    `translates`: the broker side uses the client's request ids; see `support.requests`.
    """

    translates = True

    def __init__(
        self,
        mode: Mode = PASS_THROUGH,
        *,
        max_message_size: int = 0,
        version: str = "Pulsar-CPP-v4.2.0",
        services: FakeServices | None = None,
        **settings: Any,
    ) -> None:
        self.services = services or FakeServices()
        self.laters: list[Later] = []  # of the session
        self.listener = listener(self.services, mode, **settings)
        hello = read(connect(client_version=version)).connect
        self.hello = Client(
            hello,
            Principal("alice", verified=mode is not PASS_THROUGH, expires_at=1000.0),
            Credential("token", b"alice's token"),
            Subject(self.services.complete(caller_of(hello))),
            budget=self.listener.budget,
        )
        self.session = PulsarSession(self.listener, self.hello, BROKER_1, max_message_size)

    def client(self, frame: bytes) -> Outcome:
        """Receive a frame from the client."""
        return self._say(Direction.TO_BROKER, frame)

    def broker(self, frame: bytes) -> Outcome:
        """Receive a frame from the broker."""
        return self._say(Direction.TO_CLIENT, frame)

    def _say(self, direction: Direction, frame: bytes) -> Outcome:
        said = frame
        if direction is Direction.TO_CLIENT and self.translates:
            frame = to_session(self.session, frame)
        scanner = self.session.scanners[direction]
        cleared = scanner.scan(bytearray(frame), 0, len(frame))
        if not scanner.stop:
            assert cleared == len(frame)
            assert scanner.owed == 0
            return Outcome(None)
        assert (cleared, scanner.stop) == (0, len(frame))
        effects = self._seen(at_once(self.session.decide(direction, frame, now=0.0)), said)
        for effect in effects:
            if isinstance(effect, Hold):
                effect.account.queued += len(frame)
        return Outcome(effects)

    def _seen(self, effects: Effects, said: bytes = b"") -> Effects:
        """Return the effects with the client's request ids."""
        self._note(effects)
        if not self.translates:
            return effects
        return tuple(from_session(self.session, effect, said) for effect in effects)

    def _note(self, effects: Effects) -> None:
        self.laters += [effect for effect in effects if isinstance(effect, Later)]

    def release(self) -> None:
        """Grant allowance to the latest account; its held frames have passed."""
        self.account.grant()
        self.account.queued = 0

    def reset(self) -> Outcome:
        """Take the next step of resetting the latest producer."""
        return self._stepped(self.session.reset(self.account))

    def leave(self, now: float = 0.0) -> Outcome:
        """Take the next step of leaving, because the gateway stops."""
        return self._stepped(self.session.leave(now))

    def resume(self, then: AfterJob, result: bytes | Denial) -> Outcome:
        """Finish a job with this result."""
        return self._stepped(then(result, 0.0))

    def delivered(self) -> Effects | None:
        """Report a delivery to the client."""
        effects = self.session.delivered(0.0)
        self._note(effects or ())
        return effects

    def goes_on(self, number: int, now: float) -> Effects:
        """Call the `then` of the session's `Later` of this number, counted from 0."""
        effects = self.laters[number].then(now)
        self._note(effects)
        return effects

    def _stepped(self, effects: Effects | None) -> Outcome:
        return Outcome(None if effects is None else self._seen(effects))

    @property
    def our_close(self) -> int:
        """Return the request id of the gateway's latest close; a new id if there is none."""
        incarnations = self.session.incarnations
        closes = () if incarnations._leaving is None else incarnations._leaving._waiting
        return max(closes) if closes else incarnations.handles.draw()

    @property
    def account(self) -> Account:
        """Return the account that was admitted last."""
        return self.services.admitted[-1]

    @property
    def over(self) -> Discard:
        """Return the last effect of the latest account's incarnation."""
        return Discard(self.account)

    def state(self, action: Action, id: int = 1) -> State | None:
        handle = self.session.incarnations.handles.table(action).get(id)
        return None if handle is None else handle.state


def answer_of(question: Settle) -> Principal | Denial:
    """Return the response to a question, which services of tests know at once."""
    asking = question.response()
    assert isinstance(asking, Coroutine)
    try:
        asking.send(None)
    except StopIteration as stop:
        found: Principal | Denial = stop.value
        return found
    raise AssertionError("the answer is not known")


class Talk:
    """A conversation, step by step. Each method checks the next step."""

    def __init__(self, steps: Generator[Step, StepResult, Any]) -> None:
        self._steps = steps
        self._outcome: Any = None
        self._over = False
        self._step: Step | None = None
        self._go_on(None)

    def _go_on(self, result: StepResult) -> None:
        try:
            self._step = self._steps.send(result)
        except StopIteration as stop:
            self._step, self._over, self._outcome = None, True, stop.value

    def _expect(self, step: Step, result: StepResult) -> Self:
        assert not self._over, f"{step} was expected, but it is over: {self._outcome}"
        assert self._step == step
        self._go_on(result)
        return self

    def client_says(self, frame: bytes | Denial) -> Self:
        return self._expect(Receive(Peer.CLIENT), frame)

    def broker_says(self, frame: bytes | Denial) -> Self:
        return self._expect(Receive(Peer.BROKER), frame)

    def tells_client(self, frame: bytes) -> Self:
        return self._expect(Transmit(Peer.CLIENT, frame), None)

    def tells_broker(self, frame: bytes) -> Self:
        return self._expect(Transmit(Peer.BROKER, frame), None)

    def dials(
        self, target: Address | None, *, pooled: bool = False, refused: Denial | None = None
    ) -> Self:
        """Check a `Dial`. `pooled`: the connection was opened before."""
        dialled = Dialled(target or BROKER_1, fresh=not pooled)
        return self._expect(Dial(target), refused or dialled)

    def settles(self, late: Denial | None = None) -> Self:
        """Ask who the client is, and go on. `late`: the response takes too long."""
        assert isinstance(self._step, Settle)
        self._go_on(late or answer_of(self._step))
        return self

    def dials_for(self, principal: str | None) -> None:
        """Check whose connection the next `Dial` makes."""
        assert isinstance(self._step, Dial)
        assert self._step.principal == principal

    def waits(self, seconds: float) -> Self:
        return self._expect(Wait(seconds), None)

    def said_to_broker(self) -> BaseCommand:
        """Return the command that the broker gets now, and go on."""
        assert isinstance(self._step, Transmit)
        assert self._step.peer is Peer.BROKER
        data = self._step.data
        self._go_on(None)
        return read(data)

    def ends(self, outcome: bytes | Denial) -> None:
        assert self._over
        assert self._outcome == outcome

    def opens(self) -> PulsarSession:
        assert isinstance(self._outcome, Opened)
        assert isinstance(self._outcome.session, PulsarSession)
        return self._outcome.session

    def refused(self, reason: EndReason) -> BaseCommand:
        """Check that the opening ended without a pair; return the farewell."""
        assert isinstance(self._outcome, Refused)
        assert self._outcome.reason is reason
        return read(self._outcome.farewell)

    @property
    def outcome(self) -> Any:
        assert self._over
        return self._outcome


def opening(
    mode: Mode = PASS_THROUGH, services: FakeServices | None = None, **settings: Any
) -> Talk:
    """Begin the opening conversation of a listener."""
    return Talk(open_pair(listener(services or FakeServices(), mode, **settings), ORIGIN))


FEW = Bounds(handles=2, lookups=2, rounds=3)
"""Bounds that a playbook can reach."""
