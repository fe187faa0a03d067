"""A protocol made for these tests: small, and with every effect.

A frame is its whole length (4 bytes, big-endian), its kind (1 byte) and its body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.contract import FORWARD, Denial, Direction, Effects, EndReason, Job, Later, Start
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Caller
from tests.support.subjects import subject_of

HEAD = Struct(">IB")
PASS, STOP, COUNTED, VIOLATION, BUG, HEADED = b"psav!h"
"""Kinds: passes; is decided; passes if account `body[0]` may; is a violation; is a scanner bug; is
decided at its head, and its rest passes."""


def frame(kind: int, body: bytes = b"") -> bytes:
    """Return one frame."""
    return HEAD.pack(HEAD.size + len(body), kind) + body


def passing(body: bytes = b"") -> bytes:
    """Return a frame that passes undecided."""
    return frame(PASS, body)


def stop(body: bytes = b"") -> bytes:
    """Return a frame that the session decides."""
    return frame(STOP, body)


def headed(body: bytes) -> bytes:
    """Return a frame whose head the session decides, after which its body passes."""
    return frame(HEADED, body)


def counted(account: int, body: bytes = b"") -> bytes:
    """Return a frame that counts for an account."""
    return frame(COUNTED, bytes([account]) + body)


def frames(stream: bytes) -> list[bytes]:
    """Return the frames of a stream. Fails if one is cut."""
    found = []
    while stream:
        length, _ = HEAD.unpack_from(stream)
        assert HEAD.size <= length <= len(stream), "a frame is cut"
        found.append(stream[:length])
        stream = stream[length:]
    return found


class FakeScanner:
    """See `contract.Scanner`."""

    def __init__(self, accounts: dict[int, Account]) -> None:
        self.owed = 0
        self.stop = 0
        self._accounts = accounts
        self._rest = 0  # bytes behind the head that stopped
        self.is_slow = False

    @property
    def skips(self) -> int:
        """See `contract.Scanner`."""
        return self.owed

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. `owed` does not change if this raises."""
        self.stop = 0
        pos = start + self.owed
        while pos < end:
            if end - pos < HEAD.size:
                return self._cut(pos)
            length, kind = HEAD.unpack_from(chunk, pos)
            if kind == COUNTED and end - pos == HEAD.size:
                return self._cut(pos)
            if kind == BUG:
                raise RuntimeError("a bug of the scanner")
            if kind == VIOLATION:
                raise PeerError("not a frame")
            if kind == HEADED:
                self.owed, self.stop, self._rest = 0, HEAD.size, length - HEAD.size
                return pos
            if kind == STOP or (kind == COUNTED and not self._passes(chunk[pos + 5], length)):
                self.owed, self.stop = 0, length
                return pos
            pos += length
        self.owed = pos - end
        return end

    def go_on(self) -> None:
        """Let the rest of the frame pass whose head stopped."""
        self.owed = self._rest

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""
        ids = {id for id, it in self._accounts.items() if it is account}
        pos = start
        while end - pos > HEAD.size:
            length, kind = HEAD.unpack_from(chunk, pos)
            if kind != COUNTED or chunk[pos + 5] not in ids or pos + length > end:
                break
            pos += length
        return pos

    def _cut(self, pos: int) -> int:
        self.owed = 0
        return pos

    def _passes(self, id: int, length: int) -> bool:
        account = self._accounts.get(id)
        if account is None or account.held:
            return False
        account.messages += 1
        account.bytes += length
        return True


Response = Callable[[Direction, bytes], Effects]
Departure = Callable[[float], Effects | None]
Resetting = Callable[[Account], Effects | None]
Resumption = Callable[[int, bytes | Denial], Effects]


GIVEN_UP = 30.05
"""Seconds; see `contract.Holding`."""


@dataclass(frozen=True)
class Numbered:
    """A callback of `Start` or `Later`: passes its number to `FakeSession.resumption`."""

    session: FakeSession
    number: int

    def __call__(self, result: bytes | Denial, now: float, /) -> Effects:
        return self.session.resume(self.number, result, now)


class FakeSession:
    """Decides by a test's own functions `response` and `resumption`."""

    def __init__(self, bound: int = 1 << 20) -> None:
        self.accounts: dict[int, Account] = {}
        self.scanners = FakeScanner(self.accounts), FakeScanner({})
        self.collected_bound = bound
        self.caller = Caller(connection=1)
        self.stopwatch: Stopwatch | None = None
        self.given_up = GIVEN_UP
        self.expires_at: float | None = None
        self.response: Response = lambda direction, frame: FORWARD
        self.resumption: Resumption = lambda token, result: ()
        self.departure: Departure = lambda now: None
        self.renewal: Callable[[float], Effects] = lambda now: ()
        self.resetting: Resetting = lambda account: None
        self.delivery: Callable[[], Effects | None] = lambda: None
        self.words: dict[EndReason, bytes] = {}
        self.decided: list[tuple[Direction, bytes]] = []
        self.resumed: list[tuple[int, bytes | Denial]] = []
        self.revoked: list[tuple[Account, Denial]] = []
        self.revocation: Callable[[Account], Effects] = lambda account: ()
        self.closed = 0
        self.is_known = True

    def account(self, id: int) -> Account:
        """Open an account without a limit."""
        self.accounts[id] = Account(Action.PRODUCE, subject_of(f"topic {id}"))
        return self.accounts[id]

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        self.decided.append((direction, frame))
        return self.response(direction, frame)

    def resume(self, number: int, result: bytes | Denial, now: float) -> Effects:
        """Call the test's `resumption`."""
        self.resumed.append((number, result))
        return self.resumption(number, result)

    def start(self, job: Job, number: int) -> Start:
        """Return the effect that starts a job, after which `resumption` is asked."""
        return Start(job, Numbered(self, number))

    def later(self, number: int, until: float) -> Later:
        """Return the effect by which `resumption` is asked at a time."""
        return Later(until, lambda now: self.resume(number, b"", now))

    idle: float | None = None
    """See `contract.Session`."""

    @property
    def holding(self) -> FakeSession:
        """See `contract.Session`."""
        return self

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""
        return self.scanners[0].following(account, chunk, start, end)

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        return self.delivery()

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`."""
        return self.resetting(account)

    def revoke(self, account: Account, denial: Denial, now: float) -> Effects:
        """See `contract.Session`."""
        self.revoked.append((account, denial))
        return self.revocation(account)

    @property
    def moves_at(self) -> float | None:
        """See `contract.Session`."""
        return None

    @property
    def may_move(self) -> bool:
        """See `contract.Session`."""
        return True

    def opened(self, now: float) -> Effects:
        """See `contract.Session`."""
        return ()

    def expiring(self, now: float) -> Effects:
        """See `contract.Session`."""
        return self.renewal(now)

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        return self.departure(now)

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`."""
        return self.words.get(reason, b"")

    def close(self) -> bool:
        """See `contract.Session`."""
        self.closed += 1
        return False


def crash(*_: object) -> Effects:
    """Raise, as a bug in a session would."""
    raise RuntimeError("a bug")
