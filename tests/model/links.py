"""The link between a model client and a model broker: a plain connection or a gateway's session.

Frames move only when the test says so, one at a time, so that every interleaving is possible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gateway.errors import PeerError
from gateway.plane.hold import HeldFrames
from gateway.plane.memory import Memory
from gateway.wire.account import Account, Action
from gateway.wire.contract import (
    Attend,
    Await,
    Credential,
    Denial,
    Direction,
    Discard,
    Drop,
    Effect,
    EndReason,
    Forward,
    Hold,
    Inject,
    Later,
    Pause,
    Principal,
    Replace,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.context import Client
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.subject import Subject
from tests.playbooks.frames import connect, read
from tests.playbooks.script import listener
from tests.playbooks.services import BROKER_1, FakeServices
from tests.support.effects import at_once
from tests.support.requests import from_session, to_session
from tests.support.subjects import caller_of

Frames = deque[bytes]


class Direct:
    """A plain connection: frames of one side are on their way to the other."""

    def __init__(self) -> None:
        self.to_broker: Frames = deque()  # unread by the broker
        self.to_client: Frames = deque()

    def client_says(self, frame: bytes) -> None:
        self.to_broker.append(frame)

    def broker_says(self, frame: bytes) -> None:
        self.to_client.append(frame)

    @property
    def moves(self) -> list[Callable[[], None]]:
        """Return the possible next events on the link itself."""
        return []

    @property
    def accounts(self) -> list[Account]:
        """Return the accounts that a limit may hold."""
        return []

    def limit(self, messages: int) -> None:
        """Give accounts opened from now on an allowance of this many messages."""

    def hold(self, account: Account) -> None:
        """Take away the account's allowance."""

    def grant(self, account: Account, messages: int) -> None:
        """Grant the account this many messages."""

    def grant_all(self) -> None:
        """Grant all accounts more than they can use."""

    def pace(self, delay: float | Denial) -> None:
        """Delay openings by this long from now on, or refuse them."""

    can_stop = False
    stops = False
    resets = False
    """True once the link has withheld frames of a client, which sends them again."""

    def reset(self, account: Account) -> None:
        """Reset a producer that a limit has held for too long."""

    @property
    def is_resetting(self) -> bool:
        """Return True while a reset is unfinished."""
        return False

    is_holding = False
    """Return True while frames wait for allowance."""

    def go_on(self) -> None:
        """Take one more step of each unfinished reset."""

    def leave(self, now: float) -> bool:
        """Take one more step of stopping. Return False if nothing is left to do."""
        return False

    def close(self) -> None:
        """End the connection."""

    def check(self) -> None:
        """Check the link after all frames have moved."""


class Gateway(Direct):
    """A gateway's session on the link: frames wait before it too.

    `finds_fault`: peers may violate the protocol; an empty frame then stands for the end of the
    connection.
    """

    finds_fault = False

    def __init__(self) -> None:
        super().__init__()
        self.services = FakeServices()
        hello = read(connect()).connect
        client = Client(
            hello,
            Principal("alice", verified=False),
            Credential("token", b"x"),
            Subject(self.services.complete(caller_of(hello))),
        )
        limited = listener(self.services, Mode.PASS_THROUGH, limited=True)
        self.session = PulsarSession(limited, client, BROKER_1)
        self.now = 0.0
        self._later: list[Later] = []
        self.held = HeldFrames(Memory(1, 1 << 30))
        self._resetting: list[Account] = []
        self._waiting: dict[Direction, Frames] = {way: deque() for way in Direction}
        self._out = {Direction.TO_BROKER: self.to_broker, Direction.TO_CLIENT: self.to_client}

    def client_says(self, frame: bytes) -> None:
        self._waiting[Direction.TO_BROKER].append(frame)

    def broker_says(self, frame: bytes) -> None:
        self._waiting[Direction.TO_CLIENT].append(frame)

    @property
    def moves(self) -> list[Callable[[], None]]:
        frames: list[Callable[[], None]] = [
            lambda way=way: self._pass(way, self._waiting[way].popleft())  # type: ignore[misc]
            for way in Direction
            if self._waiting[way]
        ]
        return [*frames, self._wake] if self._later else frames

    def _wake(self) -> None:
        """Advance to the next time at which the session wants to be called."""
        later = min(self._later, key=lambda it: it.until)
        self._later.remove(later)
        self.now = max(self.now, later.until)
        for effect in later.then(self.now):
            self._carry_out(effect, Direction.TO_BROKER, b"")

    def _pass(self, way: Direction, frame: bytes) -> None:
        if way is Direction.TO_CLIENT:
            frame = to_session(self.session, frame)
        scanner = self.session.scanners[way]
        cleared = scanner.scan(bytearray(frame), 0, len(frame))
        if not scanner.stop:
            assert (cleared, scanner.owed) == (len(frame), 0)
            self._out[way].append(frame)
            self._attend()
            return
        try:
            effects = at_once(self.session.decide(way, frame, now=self.now))
        except PeerError as error:
            if not self.finds_fault:
                raise AssertionError(f"it finds fault with a good peer: {error}") from error
            told = self.session.farewell(EndReason.CLIENT_VIOLATION, str(error))
            self._out[Direction.TO_CLIENT] += (told, b"")  # the connection ends
            return
        for effect in effects:
            self._carry_out(effect, way, frame)
        self._attend()

    def _attend(self) -> None:
        for effect in self.session.delivered(self.now) or ():
            self._carry_out(effect, Direction.TO_BROKER, b"")

    def _carry_out(self, effect: Effect, way: Direction, frame: bytes) -> None:
        match from_session(self.session, effect, frame):
            case Forward():
                self._out[way].append(frame)
            case Replace(data):
                self._out[way].append(data)
            case Drop():
                pass
            case Inject(direction, data):
                self._out[direction].append(data)
            case Later() as later:
                self._later.append(later)
            case Hold(account):
                self.held.put(account, frame, 0.0)
            case Discard(account):
                self.held.discard(account)
            case Await() | Attend() | Pause():
                # The session is called after every frame, and frames move when the test says so.
                pass
            case _:
                raise AssertionError(f"the model knows no {effect}")

    @property
    def accounts(self) -> list[Account]:
        return self.services.live

    def limit(self, messages: int) -> None:
        self.services.lease = messages

    def hold(self, account: Account) -> None:
        account.hold()

    def grant(self, account: Account, messages: int) -> None:
        account.grant(messages)
        while (frame := self.held.first(account)) is not None:
            self.held.passed(account, len(frame))
            self._pass(Direction.TO_BROKER, bytes(frame))
        self._attend()

    def grant_all(self) -> None:
        for account in self.services.live:
            self.grant(account, 1 << 40)

    def reset(self, account: Account) -> None:
        self.resets = True
        self._resetting.append(account)
        self.go_on()

    @property
    def is_resetting(self) -> bool:
        return bool(self._resetting)

    @property
    def is_holding(self) -> bool:  # type: ignore[override]
        return bool(self.held.size)

    def go_on(self) -> None:
        self._resetting = [account for account in self._resetting if self._reset(account)]

    def _reset(self, account: Account) -> bool:
        effects = self.session.reset(account)
        for effect in effects or ():
            self._carry_out(effect, Direction.TO_CLIENT, b"")
        return effects is not None

    def pace(self, delay: float | Denial) -> None:
        self.services.paced, self.services.delay = {Action.PRODUCE, Action.CONSUME}, delay

    can_stop = True

    def leave(self, now: float) -> bool:
        effects = self.session.leave(now)
        for effect in effects or ():
            self._carry_out(effect, Direction.TO_CLIENT, b"")
        return effects is not None or any(self._waiting.values())

    def close(self) -> None:
        self.session.close()
        self.held.clear()
        assert not self.services.live, "an account outlives its connection"
        assert not self.session._delays, "frames wait on a connection that is over"
        self._later.clear()

    def check(self) -> None:
        assert not self.held.size, "frames are held without an account"
