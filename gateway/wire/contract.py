"""What the rooms say to each other about a protocol, without naming one.

A *pair* is one client connection and its broker connection. Its life has two parts.

1. **Opening.** A *conversation* is a generator that yields *steps* (receive a frame, transmit
   bytes, dial) and is sent their results. `front/` carries the steps out, in trio. The opening
   conversation ends with `Opened` or `Refused`. A redirected lookup is chased by another one.
2. **Open.** The two sockets belong to `plane/`. Each direction has a `Scanner` that answers, for
   one received chunk, how many bytes may go on untouched. It halts at a frame that somebody
   must decide (a *stop frame*). The `Session` decides it and answers with `Effect` values, which
   the plane carries out.

All numbers are bytes and seconds; time is an argument (`now`, of a monotonic clock).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.address import Address
from gateway.wire.subject import Caller


class Direction(IntEnum):
    """Which way bytes travel; also the index of a pair's scanners and pumps."""

    TO_BROKER = 0
    TO_CLIENT = 1

    @property
    def opposite(self) -> Direction:
        return Direction(1 - self)


class EndReason(StrEnum):
    """Why a connection ended: the one enum that logs and metrics share."""

    CLIENT_CLOSED = "client_closed"
    BROKER_CLOSED = "broker_closed"
    CLIENT_LOST = "client_lost"  # reset, or unreachable
    BROKER_LOST = "broker_lost"
    CLIENT_VIOLATION = "client_violation"  # bytes that the protocol does not allow
    BROKER_VIOLATION = "broker_violation"
    FRAME_TOO_LARGE = "frame_too_large"  # a frame that we must hold whole, beyond its bound
    FRAME_TIMEOUT = "frame_timeout"  # such a frame that does not become whole in time
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    DIAL_TIMEOUT = "dial_timeout"
    MISCOUNTED = "miscounted"  # a client said another number of messages than it sent
    IDLE = "idle"  # nobody says anything
    CLIENT_SILENT = "client_silent"  # half-open: the broker goes on speaking to it
    BROKER_SILENT = "broker_silent"
    CLIENT_STALLED = "client_stalled"  # takes too little of what it is sent
    BROKER_STALLED = "broker_stalled"
    AUTHENTICATION_FAILED = "authentication_failed"
    CREDENTIAL_EXPIRED = "credential_expired"  # the one that the gateway verified
    TARGET_REFUSED = "target_refused"  # not a name of ours, or not on the allow-list
    NO_BROKER = "no_broker"  # none reachable
    BROKER_REFUSED = "broker_refused"  # the broker answered our greeting with an error
    TOO_MANY_CONNECTIONS = "too_many_connections"
    TOO_MANY_CONNECTS = "too_many_connects"  # a rule allows no more of them now
    UNKNOWN_COMMAND = "unknown_command"  # under `unknown: mask`
    OUT_OF_MEMORY = "out_of_memory"  # the process-wide bound on buffered bytes
    DRAINED = "drained"  # the gateway shuts down
    INTERNAL_ERROR = "internal_error"


class ViolationError(PeerError):
    """A peer broke its protocol in a way that has a reason of its own."""

    def __init__(self, reason: EndReason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Refusal(StrEnum):
    """What kind of no a `Denial` is; each protocol has its own error code for each."""

    UNAUTHENTICATED = "unauthenticated"
    UNAUTHORIZED = "unauthorized"
    TARGET = "target"
    NOT_READY = "not_ready"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    TOO_MANY = "too_many"
    UNSUPPORTED = "unsupported"
    FULL = "full"  # a rule allows no more of it; to try again at once is of no use
    TOO_OFTEN = "too_often"  # a rule allows no more of it now
    NAME = "name"  # brokers would read a name differently, or none accepts it


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal. `text` reaches the client: no broker address and no credential in it."""

    refusal: Refusal
    text: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a client is. Unverified: the broker, not the gateway, checks the credential.

    `expires_at`: wall-clock seconds from which on the credential proves nothing; None: never.
    """

    name: str
    verified: bool
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Credential:
    """What somebody proves an identity with, as the protocol carries it."""

    method: str
    data: bytes

    def __repr__(self) -> str:
        return f"Credential(method={self.method!r}, data=<{len(self.data)} bytes>)"


class Origin(NamedTuple):
    """Where a client is, and by which way it came.

    `id`: of its connection, in this process. `host`: its address. `reached`: the address of the
    listening socket that it reached. Over TLS, `server_name`: the one that it asked for, and
    `certificate`: the one that it showed, in DER; else None.
    """

    id: int
    host: str
    reached: Address
    server_name: str | None = None
    certificate: bytes | None = None


# -- effects ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forward:
    """The stop frame goes on as it came."""


@dataclass(frozen=True, slots=True)
class Replace:
    """These bytes go on in place of the stop frame."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Drop:
    """The stop frame goes nowhere."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Whole frames of our own, sent in a direction at its next frame border."""

    direction: Direction
    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """A direction is not read until a time (of the monotonic clock)."""

    direction: Direction
    until: float


@dataclass(frozen=True, slots=True)
class Start:
    """Have a job done, and call `then(result, now)` with its result.

    `then` returns effects, and raises `PeerError` where the broker that the job asked is at fault.
    """

    job: Job
    then: AfterJob = field(compare=False)


@dataclass(frozen=True, slots=True)
class Later:
    """Call `then(now)` at a time of the monotonic clock. The session bounds what it keeps until
    then.

    `then` returns effects, and raises `PeerError` where the client is at fault.
    """

    until: float
    then: Callable[[float], Effects] = field(compare=False)


@dataclass(frozen=True, slots=True)
class End:
    """The pair ends: `farewell` to the client first."""

    reason: EndReason
    farewell: bytes = b""
    detail: str = ""


# -- effects of holding ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the stop frame in the queue of its account. `frame`: keep this one in its place."""

    account: Account
    frame: bytes = b""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send this to the client once all that the account sent before has its receipts."""

    account: Account
    data: bytes


@dataclass(frozen=True, slots=True)
class Await:
    """Call `Holding.delivered` when this account next gets allowance."""

    account: Account


@dataclass(frozen=True, slots=True)
class Attend:
    """Call `Holding.delivered` after each delivery to the client, until it returns None."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw away the queue of this account, and await nothing for it."""

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
    | Start
    | Later
    | End
)
Effects = tuple[Effect, ...]

AfterJob = Callable[[bytes | Denial, float], Effects]
"""Goes on with a job's result, at a time; see `Start`."""

FORWARD: Effects = (Forward(),)
DROP: Effects = (Drop(),)


# -- conversations ---------------------------------------------------------------------------


class Peer(IntEnum):
    """With whom a conversation speaks."""

    CLIENT = 0
    BROKER = 1


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for one frame. Result: its bytes, or a `Denial` (closed, timed out, too large)."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send bytes. Result: None; a peer that is gone is noticed at the next `Receive`."""

    peer: Peer
    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Let so many seconds pass, as far as there is time. Result: None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to a broker, any healthy one if `target` is None. Result: `Dialled` or a `Denial`."""

    target: Address | None = None


@dataclass(frozen=True, slots=True)
class Dialled:
    """`fresh`: nothing was said on this connection yet (a pooled one was opened before)."""

    address: Address
    fresh: bool = True


Step = Receive | Transmit | Wait | Dial
StepResult = bytes | Dialled | Denial | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The opening ended without a pair: `farewell` to the client, then close."""

    reason: EndReason
    farewell: bytes = b""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """The opening ended with a pair; everything said so far was already transmitted."""

    session: Session


Opening = Generator[Step, StepResult, Opened | Refused]


Trace = Callable[[Direction, str, int, str], None]
"""Told of each frame of a traced connection: direction, what it is (secrets masked), size in
bytes, and what was decided."""


class Entry(Protocol):
    """How a protocol is entered on one listener; the registry's value."""

    def frame_length(self, head: bytes | bytearray) -> int:
        """Bytes of the whole frame that begins so; 0: more of it is needed to tell."""
        ...

    def open(self, origin: Origin) -> Opening:
        """The conversation of one new client connection."""
        ...

    def refuse(self, denial: Denial) -> bytes:
        """What is said to a connection that is not even heard."""
        ...

    def describe(self, frame: bytes) -> str:
        """Return a frame in words, with secrets masked; it may be cut."""
        ...


class Job(Protocol):
    """Work that must wait for a peer: a conversation whose outcome is bytes for the session.

    `patience`: seconds that it may take. `failed`, `late`: its outcome where it comes to none, and
    where it takes longer.
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
    """One direction of one pair: walks chunks, counts, halts at stop frames.

    `owed`: bytes of a passing frame that have not arrived yet (0: at a frame border).
    `stop`: length of the stop frame at the offset that `scan` returned, 0 where there is none.
    """

    @property
    def owed(self) -> int: ...

    @property
    def stop(self) -> int: ...

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Answer up to which offset `chunk[start:end]` may go on as it is.

        What lies beyond is a stop frame (`stop` > 0, perhaps not all of it here), or a
        header that is cut by the chunk's end and must be offered again with what follows.

        Raises `PeerError` where the bytes are not of the protocol, and leaves `owed` as it was:
        whether a farewell may be said depends on it.
        """
        ...


class Holding(Protocol):
    """The part of a session whose frames wait for allowance: of protocols in which a peer can be
    let wait. All others answer a frame beyond its limit, or pause the connection.

    `given_up`: seconds after which clients have given up a frame that waits; `math.inf` where they
    never do.
    """

    @property
    def given_up(self) -> float: ...

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which whole frames follow that wait as the stop frame of this
        held account does, as far as that is cheap to see; `start` where it is not.
        """
        ...

    def delivered(self, now: float) -> Effects | None:
        """Return what may be asked for now that something went to the client or an account got
        allowance, and what the client must be sent less of. None: no account waits to ask, and
        none may get too much.
        """
        ...

    def reset(self, account: Account) -> Effects | None:
        """Have the client open the producer of this account again, one step for each call; None:
        there are no more steps. The client sends again what is held of it, which is discarded.
        """
        ...


class Session(Protocol):
    """What is known of one pair, shared by its two scanners.

    `caller`: who the client is. `collected_bound`: the largest stop frame that may be held in
    memory, in bytes. `expires_at`: wall-clock seconds from which on nothing proves who the client
    is; None: never. `holding`: None where no frame waits for allowance.
    """

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

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """Decide one whole stop frame. Raises `PeerError` where it is not of the protocol."""
        ...

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """End what this account was admitted to, and nothing else of the pair: the client may not
        do it any more. A denial of the same is what the client hears when it asks again.
        """
        ...

    def leave(self, now: float) -> Effects | None:
        """Take one step of moving the client to another gateway; None: nothing is left here."""
        ...

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """Return the protocol's own words for an end that the plane decided; empty: it has none."""
        ...

    def close(self) -> bool:
        """Give back some accounts of a pair that is over. Call it again while it returns True."""
        ...
