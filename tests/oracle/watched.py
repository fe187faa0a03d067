"""A pair of the data plane without sockets, observed from outside.

Session, scanners, pumps and pair are the gateway's own; only the lanes are in memory. Observed are
the bytes to each peer, the questions to the services, the counts of accounts, and the command that
the session read in each frame.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from gateway.errors import PeerError
from gateway.plane.fairness import Fairness
from gateway.plane.lane import Lane
from gateway.plane.moving import Descriptor
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.plane.state import PlaneSettings
from gateway.wire.account import Account, Action
from gateway.wire.contract import (
    AfterJob,
    Credential,
    Denial,
    Direction,
    EndReason,
    Job,
    Peer,
    Principal,
    Refusal,
    Settle,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import kind_of
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.subject import Subject
from tests.playbooks.services import BROKER_1, Asked, FakeServices

_GONE = Denial(Refusal.TIMEOUT, "too late")
_LARGEST = 512 * 1024
_total = struct.Struct(">I").unpack_from


class Thought(NamedTuple):
    """The session's reading of a stop frame. `body`: of the command of its kind."""

    direction: Direction
    kind: int
    body: Any


class Admission(NamedTuple):
    """A question to the services, and the account that they returned."""

    asked: Asked
    account: Account


class WatchedServices(FakeServices):
    """Also records who proved which identity, and which account was for what.

    `ceiling`: messages that an account may have when it is admitted; None: no limit.
    """

    def __init__(self, ceiling: int | None = None) -> None:
        super().__init__()
        self.ceiling = ceiling
        self.admissions: list[Admission] = []
        self.proven: list[tuple[Credential, str]] = []

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """See `wire.services.Services`."""
        account = super().admit(action, subject, again=again)
        if isinstance(account, Account):
            if self.ceiling is not None and action is not Action.LOOKUP:
                account.hold()
                account.grant(self.ceiling)
            self.admissions.append(Admission(self.asked[-1], account))
        return account

    def authenticate(
        self, credential: Credential, host: str, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        """See `wire.services.Services`."""
        principal = super().authenticate(credential, host, certificate)
        if isinstance(principal, Principal):
            self.proven.append((credential, principal.name))
        return principal


class WatchedSession(PulsarSession):
    """Records its readings of frames."""

    thoughts: list[Thought]

    def _decide(self, direction: Direction, command: BaseCommand, frame: bytes, now: float) -> Any:
        kind = kind_of(frame)
        described = BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
        has_body = described is not None and described.message_type is not None
        body = getattr(command, described.name) if described and has_body else None
        try:
            return super()._decide(direction, command, frame, now)
        finally:  # with the request id that is sent to the broker
            self.thoughts.append(Thought(direction, kind, None if body is None else _copy(body)))


def _copy(body: Any) -> Any:
    copy = type(body)()
    copy.CopyFrom(body)
    return copy


class MemoryLane(Descriptor):
    """See `plane.lane.Lane`. `inbox`: pieces as they are received; `outbox`: all bytes sent."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.in_flight = None
        self.reader: Any = None
        self.inbox: deque[bytes] = deque()
        self.outbox = bytearray()
        self.reading = True
        self.kept = 0
        self.address = "192.0.2.7"
        self.fd = -1
        self.plain = False
        self.served = Fairness().served(None, self.address)

    def receive_into(self, buffer: Any, size: int) -> int:
        if not self.inbox:
            raise BlockingIOError
        piece = self.inbox.popleft()
        if len(piece) > size:
            self.inbox.appendleft(piece[size:])
            piece = piece[:size]
        buffer[: len(piece)] = piece
        return len(piece)

    def transmit(self, data: bytes | memoryview) -> int:
        self.outbox += data
        return len(data)

    def send(self, data: bytes | memoryview) -> None:
        self.outbox += data

    def read(self, on: bool) -> None:
        self.reading = on

    def shut(self) -> None:
        pass

    def close(self) -> None:
        self.reading = False


_BEGIN = 1000.0


class _Plane(Reactor):
    """A reactor of one pair at a time without lingering connections."""

    def part(self, pair: Pair, reason: EndReason, farewell: bytes, detail: str) -> None:
        self.pairs.discard(pair)
        self.hooks.ended(pair, reason, detail)


@dataclass
class _Hooks:
    jobs: list[AfterJob] = field(default_factory=list)
    ends: list[tuple[EndReason, str]] = field(default_factory=list)
    crashes: list[Exception] = field(default_factory=list)

    def start(self, pair: Pair, job: Job, then: AfterJob) -> None:
        self.jobs.append(then)

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        self.ends.append((reason, detail))

    def crashed(self, pair: Pair, error: Exception) -> None:
        self.crashes.append(error)


class House:
    """The data plane that all watched pairs share."""

    def __init__(self) -> None:
        self.now = _BEGIN
        self.hooks = _Hooks()
        settings = PlaneSettings(buffer=_LARGEST)
        self.plane = _Plane(self.hooks, settings, clock=lambda: self.now)

    def forget(self) -> None:
        """Reset: a pair does not depend on any pair before it."""
        self.plane.deadlines.expire(self.now + 1000.0)
        self.plane.decisions = 0
        self.now = _BEGIN
        self.hooks.jobs.clear()
        self.hooks.ends.clear()
        self.hooks.crashes.clear()


class Watched:
    """One open pair. `sent[direction]`: whole frames, by the step in which they were complete."""

    def __init__(
        self, house: House, listener: ListenerContext, client: Client, services: WatchedServices
    ) -> None:
        house.forget()
        self.services = services
        self.session = WatchedSession(listener, client, BROKER_1)
        self.session.thoughts = []
        self._house = house
        self._lanes = (MemoryLane(Peer.CLIENT), MemoryLane(Peer.BROKER))
        client_lane, broker_lane = cast("tuple[Lane, Lane]", self._lanes)
        self.pair = Pair(house.plane, client_lane, broker_lane, self.session, None)
        self._read = dict.fromkeys(Direction, 0)

    # -- events ------------------------------------------------------------------------------

    def say(self, direction: Direction, *pieces: bytes) -> None:
        """Receive bytes from a peer, each piece by itself."""
        self._lanes[direction].inbox.extend(piece for piece in pieces if piece)
        pump, lane = self.pair.pumps[direction], self._lanes[direction]
        while lane.inbox and not self.pair.over:
            if not lane.reading:
                self.wait(0.0)
                if not lane.reading:
                    return
            try:
                pump.readable(self._house.now)
            except PeerError as error:
                self.pair.violated(direction, error)
            except Exception as error:
                self._house.plane.crash(self.pair, error)

    def wait(self, seconds: float) -> None:
        self._house.now += seconds
        self._house.plane.deadlines.expire(self._house.now)

    def grant(self, account: Account, messages: int) -> None:
        self._house.plane.grant(account, messages, 1 << 40)

    def finish_jobs(self) -> None:
        """Let all chases fail."""
        jobs, self._house.hooks.jobs = self._house.hooks.jobs, []
        for then in jobs:
            self._house.plane.resume(self.pair, then, _GONE)

    def end(self) -> None:
        self.pair.end(EndReason.DRAINED)

    # -- observations ------------------------------------------------------------------------

    def frames(self, direction: Direction) -> list[bytes]:
        """Return the whole frames forwarded since the last call."""
        outbox = self._lanes[1 - direction].outbox
        found, at = list[bytes](), self._read[direction]
        while at + 4 <= len(outbox):
            end = at + 4 + _total(outbox, at)[0]
            if end > len(outbox):
                break
            found.append(bytes(outbox[at:end]))
            at = end
        self._read[direction] = at
        return found

    def is_cut(self, direction: Direction) -> bool:
        """Return True if part of a frame was forwarded."""
        return self._read[direction] < len(self._lanes[1 - direction].outbox)

    @property
    def over(self) -> bool:
        return self.pair.over

    @property
    def crashes(self) -> list[Exception]:
        return self._house.hooks.crashes

    @property
    def ends(self) -> list[tuple[EndReason, str]]:
        return self._house.hooks.ends
