"""The contracts between protocols and the other packages, which name no protocol.

A *pair* is one client connection and its broker connection. Its life has two parts.

1. **Opening.** A *conversation* is a generator that yields *steps* (receive a frame, transmit
   bytes, dial) and gets their results. `front/` carries the steps out, in trio. The opening
   conversation ends with `Opened` or `Refused`. Other conversations chase redirected lookups.
2. **Open.** The two sockets belong to `plane/`. Each direction has a `Scanner` that returns how
   many bytes of a received chunk may go on untouched. The scanner halts at a *stop frame*, which
   needs a decision. The `Session` decides it and returns `Effect` values, which the plane carries
   out.

All numbers are bytes and seconds. Time is an argument (`now`, of a monotonic clock).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.address import Address
from gateway.wire.slices import Slices
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller


class Direction(IntEnum):
    """The direction in which bytes travel; also the index of a pair's scanners and pumps."""

    TO_BROKER = 0
    TO_CLIENT = 1

    @property
    def opposite(self) -> Direction:
        return Direction(1 - self)


class EndReason(StrEnum):
    """Why a connection ended. Logs and metrics share this enum."""

    CLIENT_CLOSED = "client_closed"
    BROKER_CLOSED = "broker_closed"
    CLIENT_LOST = "client_lost"  # reset, or unreachable
    BROKER_LOST = "broker_lost"
    CLIENT_VIOLATION = "client_violation"  # bytes that the protocol does not allow
    BROKER_VIOLATION = "broker_violation"
    FRAME_TOO_LARGE = "frame_too_large"  # a frame that must be held whole exceeds its bound
    FRAME_TIMEOUT = "frame_timeout"  # such a frame did not arrive whole in time
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    TLS_FAILED = "tls_failed"  # the client's TLS handshake failed
    DIAL_TIMEOUT = "dial_timeout"
    MISCOUNTED = "miscounted"  # a client stated another number of messages than it sent
    IDLE = "idle"  # neither peer sends anything
    CLIENT_SILENT = "client_silent"  # half-open: only the broker still sends
    BROKER_SILENT = "broker_silent"
    CLIENT_STALLED = "client_stalled"  # reads too slowly
    BROKER_STALLED = "broker_stalled"
    AUTHENTICATION_FAILED = "authentication_failed"
    CREDENTIAL_EXPIRED = "credential_expired"  # a credential that the gateway verified
    TARGET_REFUSED = "target_refused"  # not an advertised name, or not on the allow-list
    NO_BROKER = "no_broker"  # no broker is reachable
    BROKER_REFUSED = "broker_refused"  # the broker answered the gateway's CONNECT with an error
    TOO_MANY_CONNECTIONS = "too_many_connections"
    TOO_MANY_CONNECTS = "too_many_connects"  # above the rate limit of a rule
    OVER_LIMIT = "over_limit"  # a frame waited too long for allowance
    UNKNOWN_COMMAND = "unknown_command"  # under `unknown: mask`
    OUT_OF_MEMORY = "out_of_memory"  # the process-wide bound on buffered bytes
    DRAINED = "drained"  # the gateway shuts down
    OPERATOR_CLOSED = "operator_closed"  # somebody closed it in the console
    INTERNAL_ERROR = "internal_error"


class ViolationError(PeerError):
    """A peer violated its protocol in a way that has an `EndReason` of its own."""

    def __init__(self, reason: EndReason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Refusal(StrEnum):
    """The kind of a `Denial`. Each protocol has its own error code for each kind."""

    UNAUTHENTICATED = "unauthenticated"
    UNAUTHORIZED = "unauthorized"
    TARGET = "target"
    NOT_READY = "not_ready"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    TOO_MANY = "too_many"
    UNSUPPORTED = "unsupported"
    FULL = "full"  # above a limit of a rule; trying again at once cannot succeed
    TOO_OFTEN = "too_often"  # above a rule's rate limit; trying later may succeed
    NAME = "name"  # brokers would read the name differently, or no broker accepts it


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal. Its `text` is sent to the client, so it contains no broker address and no
    credential. `cause`: what only operators may know of it, in logs; no credential either."""

    refusal: Refusal
    text: str
    cause: str = field(default="", compare=False)

    @property
    def detail(self) -> str:
        """Return the text for operators: with the cause."""
        return f"{self.text}: {self.cause}" if self.cause else self.text


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity of a client. `verified`: the gateway has checked the credential; if False, the
    broker checks it. `expires_at`: wall-clock time at which the credential expires; None: never."""

    name: str
    verified: bool
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Credential:
    """A proof of identity, as the protocol carries it. `expires_at`: wall-clock time; None: never,
    or not known."""

    method: str
    data: bytes
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Credential(method={self.method!r}, data=<{len(self.data)} bytes>)"


class Origin(NamedTuple):
    """Where a client's connection comes from.

    `id`: id of the connection in this process. `host`: the client's address, as a trusted proxy
    states it if there is one. `reached`: the listener address that was connected to.
    `server_name`: TLS server name that the client sent, and `certificate`: its TLS certificate, in
    DER; None without them.
    """

    id: int
    host: str
    reached: Address
    server_name: str | None = None
    certificate: bytes | None = None


# -- effects ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forward:
    """Forward the stop frame unchanged."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Forward these bytes in place of the stop frame."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Drop:
    """Do not forward the stop frame. `owed`: the stop frame is the head of a longer one, and what
    the scanner is owed of that is not forwarded either."""

    owed: bool = False


@dataclass(frozen=True, slots=True)
class Inject:
    """Send whole frames that the gateway made, in this direction, at the next frame border."""

    direction: Direction
    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Read no bytes of this direction until a time of the monotonic clock."""

    direction: Direction
    until: float


@dataclass(frozen=True, slots=True)
class Postpone:
    """Give the stop frame to the session again at a time of the monotonic clock, or earlier at a
    `Resume`. Until then its direction is not read."""

    until: float


@dataclass(frozen=True, slots=True)
class Resume:
    """Give the postponed stop frame of this direction to the session now. Without a postponed frame
    nothing happens."""

    direction: Direction


@dataclass(frozen=True, slots=True)
class Sliced:
    """Take a decision in slices, between which other pairs are served.

    `steps`: yields after some 2 ms of work at most, and returns the effects; raises `PeerError` if
    the peer is at fault.

    This is the only effect of its decision. The stop frame is kept, and nothing else of its
    direction is decided, until the last slice. The generator is closed if the pair ends before.
    """

    steps: Slices[Effects] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Start:
    """Run a job, and call `then(result, now)` with its result.

    `then` returns effects, and raises `PeerError` if the broker that the job asked is at fault.
    """

    job: Job
    then: AfterJob = field(compare=False)


@dataclass(frozen=True, slots=True)
class Later:
    """Call `then(now)` at a time of the monotonic clock.

    `then` returns effects, and raises `PeerError` if the client is at fault. The session bounds the
    memory that its waiting callbacks take.
    """

    until: float
    then: Callable[[float], Effects] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Prolong:
    """Move the end of the pair to a time of the monotonic clock, when the client's newer credential
    expires; `math.inf`: the credential never expires."""

    until: float


@dataclass(frozen=True, slots=True)
class End:
    """Send `farewell` to the client, then end the pair."""

    reason: EndReason
    farewell: bytes = b""
    detail: str = ""


# -- effects of holding ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hold:
    """Queue the stop frame, or `frame` in its place, until the account has allowance again."""

    account: Account
    frame: bytes = b""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send `data`, a synthetic response, to the client, but only when all earlier frames of the
    account have their receipts."""

    account: Account
    data: bytes


@dataclass(frozen=True, slots=True)
class Await:
    """Call `Holding.delivered` when this account gets its next grant of allowance."""

    account: Account


@dataclass(frozen=True, slots=True)
class Attend:
    """Call `Holding.delivered` after each chunk sent to the client, until `delivered` returns
    None."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Discard the queued frames of this account, and no longer wait for a grant of allowance to
    it."""

    account: Account


Effect = (
    Forward
    | Replace
    | Drop
    | Inject
    | Hold
    | Refuse
    | Await
    | Attend
    | Discard
    | Pause
    | Postpone
    | Resume
    | Sliced
    | Start
    | Later
    | Prolong
    | End
)
Effects = tuple[Effect, ...]

AfterJob = Callable[[bytes | Denial, float], Effects]
"""The `then` of `Start`: takes a job's result and the time."""

FORWARD: Effects = (Forward(),)
DROP: Effects = (Drop(),)


def decided(slices: Slices[Effects]) -> Effects:
    """Return the effects of a decision: at once if it takes one slice, otherwise a `Sliced` for the
    rest of it."""
    try:
        next(slices)
    except StopIteration as end:
        effects: Effects = end.value
        return effects
    return (Sliced(slices),)


# -- conversations ---------------------------------------------------------------------------


class Peer(IntEnum):
    """The peer with which a step of a conversation deals."""

    CLIENT = 0
    BROKER = 1


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for one frame. Result: the bytes of the frame; a `Denial` if the peer closed, was too
    late, or sent too large a frame."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Peek:
    """Wait for `count` bytes, at most 4096, and leave them unread. Result: these bytes, or a
    `Denial` as for `Receive`."""

    peer: Peer
    count: int


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send bytes. Result: None, even if the peer is gone; the next `Receive` then reports that."""

    peer: Peer
    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait `seconds`, or until the conversation's deadline if that comes first. Result: None.

    `yields`: during the wait, newer openings may displace this one, as they displace openings whose
    client is silent.
    """

    seconds: float
    yields: bool = False


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to the broker `target`; None: to any healthy broker. Result: `Dialled` or `Denial`.

    `principal`: the client's name, which the PROXY header to the broker may state; None: the name
    is not known, or was stated before.
    """

    target: Address | None = None
    principal: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Dialled:
    """A broker connection. `fresh`: the connection is new; if False, it comes from a pool, and was
    opened for an earlier conversation."""

    address: Address
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until a decision about the client is made that needs more than memory, such as the fetch
    of a key. Result: what `response` returns; a `Denial` at the conversation's deadline.

    `response`: makes the decision. Clients can cause such waits at will, so during the wait newer
    openings may displace this one, as they displace openings whose client is silent.
    """

    response: Callable[[], Awaitable[Principal | Denial | None]]


Step = Receive | Peek | Transmit | Wait | Dial | Settle
StepResult = bytes | Dialled | Principal | Denial | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The opening ended without a pair: `farewell` is sent to the client, then the connection is
    closed. `caller`: what is known of the client."""

    reason: EndReason
    farewell: bytes = b""
    detail: str = ""
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The opening ended with a pair. All frames before its end were transmitted already."""

    session: Session


Opening = Generator[Step, StepResult, Opened | Refused]


def settled(
    response: Principal | Denial | Settle,
) -> Generator[Step, StepResult, Principal | Denial]:
    """Return the principal or the denial of a client. If `response` is a `Settle`, wait for its
    result and return that."""
    if not isinstance(response, Settle):
        return response
    result = yield response
    assert isinstance(result, Principal | Denial)
    return result


Trace = Callable[[Direction, str, int, str], None]
"""Called for each frame of a traced connection with its direction, its description (secrets
masked), its size in bytes, and the decision about it."""


class Entry(Protocol):
    """Opens the connections of one protocol on one listener."""

    def frame_length(self, head: bytes | bytearray) -> int:
        """Return the size of a frame, in bytes, from its first bytes; 0: more bytes are needed to
        tell."""
        ...

    def open(self, origin: Origin) -> Opening:
        """Return the conversation that opens one new client connection."""
        ...

    def refuse(self, denial: Denial) -> bytes:
        """Return the frame that refuses a connection from which nothing was read yet."""
        ...

    def describe(self, direction: Direction, frame: bytes) -> str:
        """Return a text that describes a frame, with secrets masked. The frame may be truncated."""
        ...


class Job(Protocol):
    """A conversation that runs beside an open pair. Its outcome, bytes or a denial, is handed to
    the session.

    `patience`: seconds that the job may take. `failed`: the outcome if the conversation fails.
    `late`: the outcome if the conversation takes longer than `patience`.
    """

    @property
    def patience(self) -> float: ...

    @property
    def failed(self) -> Denial: ...

    @property
    def late(self) -> Denial: ...

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]: ...


# -- scanner and session ---------------------------------------------------------------------


class Scanner(Protocol):
    """Scans one direction of one pair: walks chunks, counts frames, halts at stop frames.

    `owed`: bytes of a passing frame that have not arrived yet; 0 at a frame border. `skips`: how
    many of them pass without being scanned.
    `is_slow`: the last scan ended early, because its frames took long; the bytes behind it are
    scanned after other pairs had their turn.
    `stop`: length of the stop frame at the offset that `scan` returned; 0 without one. It may be
    the head of a longer frame, whose rest is owed once the head is decided.
    """

    @property
    def owed(self) -> int: ...

    @property
    def skips(self) -> int: ...

    @property
    def is_slow(self) -> bool: ...

    @property
    def stop(self) -> int: ...

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which the bytes of `chunk[start:end]` may be forwarded.

        If bytes follow that offset, `stop` says what they are. Above 0: a stop frame, whose end may
        not have arrived. 0: a part that is only read as a whole, such as a header, and whose end
        has not arrived; the caller scans these bytes again, together with the bytes that follow. A
        scanner may overwrite bytes that are forwarded, but never changes their number.

        Raises `PeerError` if the bytes violate the protocol. `owed` then keeps the value that it
        had before the call, by which the plane knows whether it may send a farewell: only at a
        frame border.
        """
        ...


class Holding(Protocol):
    """The part of a session that queues frames until their account has allowance, in protocols
    whose clients can wait. In other protocols the session responds to a frame beyond its limit at
    once, or pauses the connection.

    `given_up`: seconds after which a client gives up a frame that waits; `math.inf`: never.
    """

    @property
    def given_up(self) -> float: ...

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """Return the end of the whole frames at `chunk[start:end]` that must wait behind a stop
        frame of this account, which has no allowance. Return `start` if there are no such frames,
        or if the search for them would be expensive."""
        ...

    def delivered(self, now: float) -> Effects | None:
        """Return the effects of an event: bytes were sent to the client, or an account was granted
        allowance. Effects may send waiting requests to the broker, or pause a direction in which an
        account gets far more than its limit. None: no account waits for another event, and none is
        near such a pause."""
        ...

    def reset(self, account: Account) -> Effects | None:
        """Return the effects of the next step towards making the client open this account's
        producer again; None: no step is left. The producer's queued frames are discarded, and the
        client sends them again."""
        ...


class Session(Protocol):
    """The state of one pair, shared by its two scanners.

    `caller`: the client. `collected_bound`: bytes of the largest stop frame that may be held in
    memory. `expires_at`: wall-clock time at which the client's credential expires; None: never.
    `holding`: None if no frame waits for allowance. `stopwatch`: None if latencies are not
    measured. `idle`: seconds without a byte after which the pair ends, for protocols whose
    peers send nothing while they have nothing to say; None: as the plane is set, which also ends a
    pair if only one of its peers is silent.
    """

    @property
    def idle(self) -> float | None: ...

    @property
    def stopwatch(self) -> Stopwatch | None: ...

    @property
    def caller(self) -> Caller: ...

    @property
    def scanners(self) -> tuple[Scanner, Scanner]: ...

    @property
    def collected_bound(self) -> int: ...

    @property
    def expires_at(self) -> float | None: ...

    @property
    def holding(self) -> Holding | None: ...

    @property
    def moves_at(self) -> float | None:
        """Return the wall-clock time at which the broker ends the pair, because the gateway's own
        credential expires: the client must reconnect before that. None: there is no such time."""
        ...

    @property
    def may_move(self) -> bool:
        """Return whether the gateway already has a newer credential of its own: only then does it
        help to make the client reconnect."""
        ...

    @property
    def is_known(self) -> bool:
        """Return whether somebody who can know has said who the client is: the gateway, or else the
        broker. Until then the connection counts as unauthenticated, though its pair is open."""
        ...

    def opened(self, now: float) -> Effects:
        """Return the effects with which the pair begins. The plane calls this once, before any
        frame."""
        ...

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """Return what to do with one whole stop frame. Raises `PeerError` if the frame violates the
        protocol."""
        ...

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """Return the effects that close the producer or consumer of this account, because rules no
        longer allow it. They end the whole pair only if the protocol cannot close a consumer alone.
        `denial`: the response if the client asks to open it again.
        """
        ...

    def expiring(self, now: float) -> Effects:
        """Return the effects that ask the client for reauthentication, because its credential is
        about to expire. There are no effects if the protocol or the client does not support
        reauthentication."""
        ...

    def leave(self, now: float) -> Effects | None:
        """Return the effects of the next step of moving the client to another gateway; None: all
        steps were taken."""
        ...

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """Return the frame that tells the client why the plane ends the pair; empty if the client
        gets no frame."""
        ...

    def close(self) -> bool:
        """Release some accounts of a pair that has ended. Return whether accounts are left: call
        `close` again then."""
        ...
