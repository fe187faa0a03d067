"""Connections of TubeMQ as a seed draws them, with what the gateway has read and judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from google.protobuf.message import Message

from gateway.errors import PeerError
from gateway.wire.account import Account, Right
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import Credential, Denial, Effects, Principal, Refusal, Replace
from gateway.wire.plugin import EntrySettings
from gateway.wire.services import Tokens
from gateway.wire.slices import Slices
from gateway.wire.subject import Caller, Subject
from gateway.wire.tubemq.context import Client, Listener
from gateway.wire.tubemq.envelopes import Request, parsed, read_request
from gateway.wire.tubemq.frames import HEAD, Frame, whole
from gateway.wire.tubemq.judging import Judge, Outcome
from gateway.wire.tubemq.methods import METHODS, REGISTER_PRODUCER
from gateway.wire.tubemq.session import TubeSession
from gateway.wire.tubemq.to_broker import ToBrokerScanner
from tests.playbooks.services import FakeServices
from tests.playbooks_kafka.script import Play
from tests.playbooks_tubemq.script import REAL, ask, tell

from .oracle import Stream
from .requests import again, any_request, plain_request

MOST = 12
"""Requests of one connection."""

NODES = (None, None, 1, 2)
SECRET = "secret"
"""The topic from which alice may not consume, where rights are needed."""
_PIECES = (1, 7, 100, 1 << 20)
_SERIALS = (0, -1, 1, (1 << 31) - 1, -(1 << 31))
_BROKERS = [f"{id}:{address}" for id, address in REAL.items()]


class Judged(NamedTuple):
    """A request that was judged. `message`: as it was then, before addresses in it were changed.
    `added`: what stamps of lists have more for clients. `guarded`: rights are needed. `account`,
    `counted`: of what it sends or asks for, and the bytes that were counted for it."""

    request: Request
    message: Message
    added: int
    signs: bool
    guarded: bool
    account: Account | None
    counted: int


@dataclass
class Step:
    """A frame as the gateway put it together. `judged`: None if it was not. `went_on`: what the
    server gets for it; None: nothing."""

    frame: Frame
    judged: Judged | None = None
    went_on: bytes | None = None


@dataclass
class Played:
    """A connection. `said`: by the client. `sent`: to the server. `number`: of frames that the
    client said. `end`: the violation that ended it, if one did. `crash`: a bug that did."""

    seed: int
    piece: int
    said: bytes = b""
    sent: bytes = b""
    number: int = 0
    steps: list[Step] = field(default_factory=list)
    end: str = ""
    crash: str = ""

    @property
    def streams(self) -> tuple[Stream, Stream]:
        """Return what the client has said, and what the server gets."""
        return Stream(self.said, self.piece), Stream(self.sent, self.piece)

    @property
    def reached(self) -> int:
        """Return how many requests went on."""
        return sum(step.went_on is not None for step in self.steps)


class Services(FakeServices):
    """Services that know where brokers are, and take each client for alice that shows anything but
    what ends with `x`."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = dict(REAL)

    def _principal(self, credential: Credential) -> Principal | Denial:
        if credential.data.endswith(b"x"):
            return Denial(Refusal.UNAUTHENTICATED, "wrong signature")
        return Principal("alice", verified=True)

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        return Tokens("token", 7)


class Watched(TubeSession):
    """A session that notes what it reads."""

    __slots__ = ("steps",)

    def __init__(self, listener: Listener, client: Client, steps: list[Step]) -> None:
        super().__init__(listener, client)
        self.steps = steps
        self._judge = WatchedJudge(self, client)
        self._requests = WatchedScanner(self)

    def _request(
        self, frame: Frame, now: float, *, was_asked: bool = False, has_waited: bool = False
    ) -> Slices[Effects]:
        step = Step(frame)
        self.steps.append(step)
        effects = yield from super()._request(
            frame, now, was_asked=was_asked, has_waited=has_waited
        )
        step.went_on = next((it.data for it in effects if isinstance(it, Replace)), None)
        return effects


class WatchedScanner(ToBrokerScanner):
    """A scanner that notes what passes it, as steps of a session."""

    __slots__ = ("_session",)

    def __init__(self, session: Watched) -> None:
        verifies = session._callers is not None
        super().__init__(session._requests._largest, session._in_flight, verifies=verifies)
        self._session = session

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        before = {id(it): it.bytes for it in self._session._judge._accounts.values()}
        said = bytes(chunk)
        behind = super().scan(chunk, start, end)
        if behind > start:
            frame, went_on = whole(said[start:behind]), bytes(chunk[start:behind])
            self._session.steps.append(self._step(frame, went_on, before))
        return behind

    def _step(self, frame: Frame, went_on: bytes, before: dict[int, int]) -> Step:
        """Return the step of a frame that passes, which comes alone here."""
        session = self._session
        request = read_request(frame.envelope)
        account = session._in_flight[frame.serial].account
        assert account is not None
        message = parsed(METHODS[request.body.method].request(), request.body.request)
        counted = account.bytes - before[id(account)]
        signs = session._callers is not None
        guarded = session._services.guarded
        added = session._rewriting._added
        judged = Judged(request, message, added, signs, guarded, account, counted)
        return Step(frame, judged, went_on)


class WatchedJudge(Judge):
    """Judges, and notes it in the last step of a session."""

    __slots__ = ("_session",)

    def __init__(self, session: Watched, client: Client) -> None:
        super().__init__(session._services, client.quota)
        self._session = session

    def judge(
        self, number: int, message: Any, client: Subject, *, has_waited: bool = False
    ) -> Slices[Outcome]:
        shown = type(message)()
        shown.CopyFrom(message)
        before = {it: it.bytes for it in self._accounts.values()}
        found = yield from super().judge(number, message, client, has_waited=has_waited)
        account = found if isinstance(found, Account) else None
        counted = 0 if account is None else account.bytes - before.get(account, 0)
        step = self._session.steps[-1]
        step.judged = Judged(
            read_request(step.frame.envelope),
            shown,
            self._session._rewriting._added,
            self._session._callers is not None,
            self._session._services.guarded,
            account,
            counted,
        )
        return found


def play(seed: int) -> Played:
    """Play the connection of this seed."""
    noise = Random(seed)
    played = Played(seed, noise.choice(_PIECES))
    watched, services, node = _opened(played, noise)
    if noise.random() < 0.5:
        services.forbidden = {(Right.CONSUME, SECRET)}
    try:
        if node is None and noise.random() < 0.3:
            _tell_brokers(watched, played)
        taught = node is not None and noise.random() < 0.5
        frame = b""
        for number in range(2, noise.randrange(3, MOST)):
            serial = noise.choice(_SERIALS) if noise.random() < 0.05 else number
            if taught and (number == 2 or noise.random() < 0.2):
                frame = plain_request(noise, serial)
            elif len(frame) > HEAD.size and noise.random() < (0.9 if taught else 0.3):
                frame = again(frame, noise, serial)
            else:
                frame = any_request(noise, serial, node)
            _say(watched, played, frame)
            if watched.end is not None:
                break
    except PeerError as violation:
        played.end = str(violation)
    except Exception as crash:
        played.crash = repr(crash)
    return played


def play_these(*frames: bytes, node: int | None = None, signs: bool = False) -> Played:
    """Play a connection on which a client says these frames."""
    played = Played(-1, 1 << 20)
    watched = _watched(played, Services(), node, signs=signs)
    try:
        for frame in frames:
            _say(watched, played, frame)
    except PeerError as violation:
        played.end = str(violation)
    return played


def _opened(played: Played, noise: Random) -> tuple[Play, Services, int | None]:
    services, node = Services(), noise.choice(NODES)
    return _watched(played, services, node, signs=noise.random() < 0.3), services, node


def _watched(played: Played, services: Any, node: int | None, *, signs: bool) -> Play:
    listener = Listener(EntrySettings(services=services))
    caller = Caller(protocol="tubemq", principal=None if signs else "alice", connection=1)
    client = Client(Subject(caller), Quota(Budget(), "client"), node, signs=signs)
    return Play(services, session=Watched(listener, client, played.steps))


def _say(watched: Play, played: Played, frame: bytes) -> None:
    played.said += frame
    played.number += 1
    try:
        played.sent += watched.client(frame)
    except Exception:
        played.sent += watched.broker_got()
        raise


def _tell_brokers(watched: Play, played: Played) -> None:
    """Have the gateway tell a list of brokers, whose stamp it changes from then on."""
    register = ask(REGISTER_PRODUCER, 1, clientId="p", brokerCheckSum=-1, hostName="h")
    _say(watched, played, register)
    fields: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
    watched.broker(
        tell(REGISTER_PRODUCER, 1, brokerCheckSum=5_000_000, brokerInfos=_BROKERS, **fields)
    )
