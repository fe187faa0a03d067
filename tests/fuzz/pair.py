"""An open pair without sockets: carries effects out as the plane does, and watches them."""

from __future__ import annotations

from collections import deque
from itertools import count

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import (
    AfterJob,
    Attend,
    Await,
    Denial,
    Direction,
    Discard,
    Drop,
    Effect,
    Effects,
    End,
    EndReason,
    Forward,
    Hold,
    Holding,
    Inject,
    Later,
    Pause,
    Refusal,
    Refuse,
    Replace,
    Session,
    Start,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.chase import Chase
from gateway.wire.pulsar.entry import PulsarEntry
from gateway.wire.pulsar.idtable import id_of
from gateway.wire.pulsar.incarnations import UNANSWERED
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.trace import LONGEST
from gateway.wire.traced import TracedSession
from tests.fuzz.reading import is_in_place_of, shown, walk, whole
from tests.playbooks.services import FakeServices
from tests.support.effects import at_once
from tests.support.scanners import scanners_of

LATE = Denial(Refusal.TIMEOUT, "too late")
MOST_REQUESTS = UNANSWERED + 2
"""Of one incarnation: to open, and to open again; to unsubscribe, to close."""

_VIOLATIONS = {
    Direction.TO_BROKER: EndReason.CLIENT_VIOLATION,
    Direction.TO_CLIENT: EndReason.BROKER_VIOLATION,
}


def _told(_direction: Direction, frame: str, size: int, decision: str) -> None:
    """What a trace says is of bounded length."""
    assert frame
    assert len(frame) <= LONGEST
    assert size >= 0
    assert decision


def _shows_nothing(passed: bytes) -> None:
    """Commands that are not looked at have no place for an address, if they are what they seem."""
    for said in walk(passed):
        command = said.command
        if command is not None and command.type == said.data[9]:
            assert shown(command) == [], "a broker shows where nobody looks"


class Pair:
    """`asked`: whole frames that the broker got and may answer. `jobs`: chases by number, each with
    what comes after it.

    `traced`: the session is spoken to by way of one that tells what it decides.
    """

    def __init__(
        self, session: PulsarSession, services: FakeServices, *, traced: bool = False
    ) -> None:
        self.session = session
        self._front: Session = session
        if traced:
            self._front = TracedSession(session, _told, PulsarEntry(session._listener))
        self._services = services
        self._carry = dict.fromkeys(Direction, b"")
        self._held: dict[Account, deque[bytes]] = {}
        self.asked: deque[BaseCommand] = deque(maxlen=16)
        self.jobs: dict[int, tuple[Chase, AfterJob]] = {}
        self._numbers = count()
        self._later: list[Later] = []
        self.over = False
        self.now = 0.0

    # -- what happens ------------------------------------------------------------------------

    def say(self, direction: Direction, data: bytes) -> None:
        """Bytes of a peer, which may end within a frame."""
        waiting = bytearray(self._carry[direction] + data)
        self._carry[direction] = b""
        at = 0
        while at < len(waiting) and not self.over:
            at = self._scan(direction, waiting, at)
        self._attend()
        self.check()

    def _scan(self, direction: Direction, waiting: bytearray, at: int) -> int:
        scanner = self._front.scanners[direction]
        owed = scanner.owed
        try:
            cleared = scanner.scan(waiting, at, len(waiting))
        except PeerError as violation:
            self._violated(direction, violation)
            return at
        assert at <= cleared <= len(waiting)
        if direction is Direction.TO_CLIENT:
            _shows_nothing(bytes(waiting[at + owed : cleared]))
        end = cleared + scanner.stop
        if scanner.stop and end <= len(waiting):
            self._decide(direction, bytes(waiting[cleared:end]))
            return end
        if scanner.stop > self._front.collected_bound:
            self._take_leave(EndReason.FRAME_TOO_LARGE, "too large")
        self._carry[direction] = bytes(waiting[cleared:])
        return len(waiting)

    @property
    def _holding(self) -> Holding:
        assert self._front.holding is not None
        return self._front.holding

    def _attend(self) -> None:
        if not self.over:
            self._carry_out(self._holding.delivered(self.now) or (), Direction.TO_BROKER, b"")

    def grant(self, account: Account, messages: int, size: int) -> None:
        """What waits goes first, each frame scanned like any other."""
        account.grant(messages, size)
        queue = self._held.get(account)
        while queue and not account.held and not self.over:
            frame = queue.popleft()
            account.queued -= len(frame)
            if not queue:
                self._held.pop(account, None)
            self._again(frame)
            queue = self._held.get(account)
        self.check()

    def _again(self, frame: bytes) -> None:
        scanner = scanners_of(self.session)[Direction.TO_BROKER]
        owed, scanner.owed = scanner.owed, 0  # the plane waits for a border
        if not scanner.scan(bytearray(frame), 0, len(frame)):
            self._decide(Direction.TO_BROKER, frame)
        scanner.owed = owed

    def resume(self, number: int, result: bytes | Denial) -> None:
        """A chase is over."""
        _, then = self.jobs.pop(number)
        self._carry_out(then(result, self.now), Direction.TO_CLIENT, b"")
        self.check()

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        due = [later for later in self._later if later.until <= self.now]
        self._later = [later for later in self._later if later.until > self.now]
        for later in due:
            if not self.over:
                self._ask_again(later)
        self.check()

    def _ask_again(self, later: Later) -> None:
        try:
            effects = later.then(self.now)
        except PeerError as violation:
            self._violated(Direction.TO_BROKER, violation)
            return
        assert not any(isinstance(effect, Forward | Replace | Hold) for effect in effects)
        self._carry_out(effects, Direction.TO_BROKER, b"")

    def leave(self) -> None:
        """The gateway stops: one more step."""
        effects = self._front.leave(self.now)
        if effects is None:
            assert not self.jobs
        self._carry_out(effects or (), Direction.TO_CLIENT, b"")
        self.check()

    # -- what comes of it --------------------------------------------------------------------

    def _decide(self, direction: Direction, frame: bytes) -> None:
        try:
            effects = at_once(self._front.decide(direction, frame, self.now))
        except PeerError as violation:
            self._violated(direction, violation)
            return
        verdicts = [each for each in effects if isinstance(each, Forward | Replace | Drop | Hold)]
        # A frame that ends the pair needs none.
        ends = any(isinstance(each, End) for each in effects)
        assert len(verdicts) == 1 or (ends and not verdicts), f"{len(verdicts)} verdicts on a frame"
        self._carry_out(effects, direction, frame)

    def _carry_out(self, effects: Effects, direction: Direction, frame: bytes) -> None:
        for effect in effects:
            if not self.over:
                self._effect(effect, direction, frame)

    def _effect(self, effect: Effect, direction: Direction, frame: bytes) -> None:
        match effect:
            case Forward():
                assert frame, "nothing to be forwarded"
                self._went(direction, frame)
            case Replace(data):
                assert is_in_place_of(data, frame)
                self._went(direction, data)
            case Inject(towards, data):
                self._injected(towards, data)
            case Hold(account):
                assert account.held
                self._held.setdefault(account, deque()).append(frame)
                account.queued += len(frame)
            case Discard(account):
                self._held.pop(account, None)
                account.queued = 0
            case Start(job, then):
                assert isinstance(job, Chase)
                self.jobs[next(self._numbers)] = job, then
            case Later():
                assert effect.until >= self.now
                self._later.append(effect)
            case End(reason, farewell):
                self._take_leave(reason, "", farewell)
            case Attend() | Await() | Pause():
                pass  # it is asked after whatever happens
            case Refuse(account, data):
                assert account.is_waiting
                assert len(whole(data)) == 1
            case _:
                assert isinstance(effect, Drop), effect

    def _injected(self, towards: Direction, data: bytes) -> None:
        """To the broker a close of the client's own may go, with whatever it put behind it."""
        if towards is Direction.TO_CLIENT:
            assert whole(data)
        for said in walk(data):
            assert len(said.data) == said.total
            self._went(towards, said.data)

    def _went(self, direction: Direction, frame: bytes) -> None:
        (said,) = walk(frame)
        command = said.command
        if command is None:
            return  # a peer cannot read it either
        if direction is Direction.TO_BROKER:
            self.asked.append(command)
        else:
            assert shown(command) == [], "a broker shows"

    # -- the end -----------------------------------------------------------------------------

    def _violated(self, direction: Direction, violation: PeerError) -> None:
        assert str(violation)
        self._take_leave(_VIOLATIONS[direction], str(violation))

    def _take_leave(self, reason: EndReason, detail: str, farewell: bytes = b"") -> None:
        """The client is told by one ERROR, or not at all."""
        told = whole(farewell or self._front.farewell(reason, detail))
        assert [command.type for command in told] in ([], [BaseCommand.ERROR])
        assert not any(map(shown, told))
        self.over = True

    def close(self) -> None:
        """All accounts are given back, each once."""
        self._front.close()
        assert len(self._services.released) == len(self._services.admitted)
        assert set(self._services.released) == set(self._services.admitted)
        handles = self.session.incarnations.handles
        assert not len(handles)
        assert not handles._awaited
        assert not len(self.session._lookups)

    # -- what always holds -------------------------------------------------------------------

    def check(self) -> None:
        """Tables agree with each other, and keep to their bounds."""
        self._check_handles()
        self._check_lookups()
        self._check_scanners()
        self._check_delays()

    def _check_handles(self) -> None:
        handles = self.session.incarnations.handles
        assert len(handles) <= self.session._listener.bounds.handles
        assert len(handles._awaited) <= MOST_REQUESTS * len(handles)
        assert all(len(handle.requests) <= MOST_REQUESTS for handle in handles)
        assert handles.names == sum(handle.names for handle in handles)
        live = {handle.account for handle in handles if not handle.released}
        assert self._held.keys() <= live, "frames are kept for one who is gone"
        leaving = self.session.incarnations._leaving
        assert leaving is None or leaving._steps.keys() <= set(handles)

    def _check_lookups(self) -> None:
        lookups, bounds = self.session._lookups, self.session._listener.bounds
        in_flight, chased = lookups._in_flight or {}, lookups._chased or {}
        kept = [*in_flight.values(), *chased.values()]
        assert lookups._kept == sum(len(lookup.frame) for lookup in kept)
        assert len(kept) <= bounds.lookups
        assert lookups._kept <= bounds.lookup_bytes
        assert chased.keys() == self.jobs.keys()

    def _check_delays(self) -> None:
        """Whoever waits is asked for again, and no frame is kept twice."""
        delays, bounds = self.session._delays, self.session._listener.bounds
        if delays is None or self.over:
            return  # nobody asks for it any more
        kept = [it.frame for queue in delays._queues.values() for it in queue]
        assert (len(delays), delays._waiting._bytes) == (len(kept), sum(map(len, kept)))
        assert len(kept) <= bounds.delayed
        assert len(kept) <= 1 or delays._waiting._bytes <= max(bounds.delayed_bytes, len(kept[0]))
        assert len(delays._queues) <= len(self._later)

    def _check_scanners(self) -> None:
        """What is counted belongs to somebody, and what passes to somebody who is open."""
        to_broker, to_client = scanners_of(self.session)
        handles = self.session.incarnations.handles
        for key, account in to_broker.producers.items():
            handle = handles.producers.get(id_of(key))
            assert handle is not None
            assert (handle.account, handle.state) == (account, State.OPEN)
        for table, action in (
            (to_client.producers, Action.PRODUCE),
            (to_client.consumers, Action.CONSUME),
        ):
            for key, account in table.items():
                handle = handles.table(action).get(id_of(key))
                assert handle is not None
                assert handle.account is account
