"""One pair's frames that wait for allowance: a grant sends them, in their order.

A producer whose frames waited too long is *reset*: its client opens it again and sends again the
frames without a receipt. Clients would otherwise give up frames that are still queued here
(`Holding.given_up`), and these ghosts would use the allowance of later frames.

Some clients restart their send timeout when they send again, and lose nothing. Others count from
the first attempt: they then give up the oldest frame, and mostly all later ones. So a frame that is
sent again keeps its age, and the producer is reset once more shortly after the timeout, which
removes the ghosts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from gateway.errors import PeerError
from gateway.plane.hold import Ages, HeldFrames, Marks
from gateway.wire.account import Account
from gateway.wire.contract import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.plane.deadlines import Cancellable
    from gateway.plane.pump import Pump
    from gateway.plane.state import PlaneState

COMING = 5.0
"""Seconds within which a client sends discarded frames again: it does so at once, or never."""

RESET_STEP = 0.02
"""Seconds between two checks whether a producer in reset has all its receipts."""


ANSWERS_AT_ONCE = 64
"""Accounts checked at once after bytes went to the client: any of them may have its last receipt
now. Checking thousands each time would cost a client's receipts a second each."""

ANSWERS_STEP = 0.01
"""Seconds until the next accounts are checked."""

WINDOW = 64 * 1024 * 1024
"""Bytes that may find a full queue. A client that sends more heeds no window, and stays such a
client until its connection ends. Java's clients send so many bytes without receipts by default
(`memoryLimit`)."""

HEEDLESS_PAUSE = 2.0
"""Seconds for which the gateway does not read such a client, after each read that was in vain. Two
hundred such clients would otherwise take a whole core. Their other frames wait as long, signs of
life among them, for which clients and brokers wait 30 s."""


class WaitingHost(Protocol):
    """The part of a pair that its waiting frames use."""

    over: bool
    pumps: tuple[Pump, Pump]

    def decide(self, direction: Direction, frame: bytes, now: float) -> Account | None:
        """Ask the session what to do with a stop frame, at which the scanner halts, and do it.
        Return the account if the frame now waits for that account's allowance, else None."""

    def attend(self, now: float) -> None:
        """Ask the session for further effects, after an account got allowance."""

    def reset(self, account: Account, now: float) -> bool:
        """Take the next step of making the client open the account's producer again. Return False
        if no step was left."""

    def later(self, when: float, callback: Callable[[float], None]) -> Cancellable[None]:
        """Call `callback` at the time `when`, unless the pair has ended or the returned object was
        cancelled by then."""

    def soon(self, callback: Callable[[float], None]) -> None:
        """Call `callback` after the reactor has served other pairs."""

    def violated(self, direction: Direction, error: PeerError) -> None:
        """End the pair, because the peer that sends in this direction violated its protocol."""

    def crash(self, error: Exception) -> None:
        """End the pair, because an exception has shown a bug in the gateway."""


class WaitingFrames:
    """The queues of frames that wait in one pair; made when the pair's first frame waits.
    `given_up`: see `Holding`."""

    __slots__ = (
        "_ages",
        "_aging",
        "_answering",
        "_at_border",
        "_discarded",
        "_earlier",
        "_expecting",
        "_frames",
        "_given_up",
        "_is_resting",
        "_pair",
        "_plane",
        "_refused",
        "_unchecked",
    )

    def __init__(self, pair: WaitingHost, plane: PlaneState, given_up: float) -> None:
        self._pair = pair
        self._given_up = given_up
        self._plane = plane
        self._frames = HeldFrames(plane.memory)
        self._ages: dict[Account, Ages] = {}
        # By topic: the marks of discarded frames, and when they expire; the first expires first.
        self._earlier: OrderedDict[str, tuple[float, Marks]] = OrderedDict()
        self._expecting: set[Account] = set()
        # Accounts with queued refusals, and the allowance kept back from each meanwhile.
        self._refused: OrderedDict[Account, tuple[int, int] | None] = OrderedDict()
        self._unchecked = 0  # of `_refused`, not checked since bytes last went to the client
        self._answering = False  # a timer for checking the next accounts runs
        self._at_border: set[Account] = set()  # accounts that go on at the next border
        self._discarded = 0  # bytes that found a full queue since the last reset or close
        self._is_resting = False  # `_rest` is under way, or comes soon
        # The timer of each account's oldest frame.
        self._aging: dict[Account, Cancellable[None]] = {}

    @property
    def size(self) -> int:
        """Return how many bytes wait in the queues."""
        return self._frames.size

    def put(self, account: Account, frames: bytes, now: float) -> None:
        """Queue whole frames of an account until the account has allowance."""
        self._plane.granted[account] = self
        before = account.queued
        self._frames.put(account, frames, now)
        queued = account.queued - before
        self._discarded += len(frames) - queued
        if self._discarded > WINDOW and queued < len(frames) and not self._is_resting:
            self._is_resting = True
            self._pair.soon(self._rest)  # what was received is gone by then
        self._age(account, queued, now)
        self._start_aging(account)

    def _rest(self, now: float) -> None:
        """Pause reading from a client that heeds no window."""
        self._pair.pumps[Direction.TO_BROKER].pause()
        self._pair.later(now + HEEDLESS_PAUSE, self._read_on)

    def _read_on(self, now: float) -> None:
        self._is_resting = False
        self._pair.pumps[Direction.TO_BROKER].unpause(now)

    def refuse(self, account: Account, refusal: bytes, now: float) -> None:
        """Queue `refusal`, a frame for the client, behind the account's waiting frames."""
        self._plane.granted[account] = self
        self._frames.refuse(account, refusal, now)
        self._refused.setdefault(account, None)

    @property
    def is_refusing(self) -> bool:
        """Return whether a refusal waits until earlier frames have their receipts."""
        return bool(self._refused)

    def check_refusals(self, now: float) -> None:
        """Send each refusal whose account has no in-flight frame any more. This is called after
        bytes were sent to the client: they may contain the last receipt for which a refusal
        waits."""
        self._unchecked = len(self._refused)
        if not self._answering:
            self._answer_some(now)

    def _answer_some(self, now: float) -> None:
        """Check some accounts, by turn, and the others `ANSWERS_STEP` later."""
        border = self._pair.pumps[Direction.TO_BROKER].at_border
        looks = min(self._unchecked, len(self._refused), ANSWERS_AT_ONCE)
        self._unchecked -= looks
        for account in tuple(islice(self._refused, looks)):
            if account not in self._refused:
                continue  # the previous account ended the pair, or answered this one
            self._refused.move_to_end(account)
            is_next = account.outstanding <= 0 and self._frames.refusal(account) is not None
            if is_next and account not in self._at_border:
                self._at_border.add(account)
                border(partial(self._go_on_at_border, account, now))
        self._answering = self._unchecked > 0 and bool(self._refused)
        if self._answering:
            self._pair.later(now + ANSWERS_STEP, self._answer_some)

    def _go_on_at_border(self, account: Account, now: float) -> None:
        self._at_border.discard(account)
        self._go_on(account, now)

    def expect(self, account: Account) -> None:
        """Call the pair's `attend` when this account gets its next grant of allowance."""
        self._plane.granted[account] = self
        self._expecting.add(account)

    def discard(self, account: Account) -> None:
        """Discard this account's waiting frames, and ignore later grants of allowance to the
        account."""
        self._frames.discard(account)
        if self._discarded <= WINDOW:
            self._discarded = 0
        self._refused.pop(account, None)
        self._ages.pop(account, None)
        self._expecting.discard(account)
        self._plane.granted.pop(account, None)
        self._stop_aging(account)

    def _stop_aging(self, account: Account) -> None:
        """Cancel the account's timer, which would keep a closed producer in memory until then."""
        look = self._aging.pop(account, None)
        if look is not None:
            self._plane.deadlines.cancel(look)

    def clear(self) -> None:
        """Discard all waiting frames, because the pair has ended."""
        for account in (*self._frames.clear(), *self._expecting):
            self._plane.granted.pop(account, None)
        for account in tuple(self._aging):
            self._stop_aging(account)

    def grant(self, account: Account, messages: int, size: int, now: float) -> None:
        """See `Grantee`. The frames are sent at the next frame border towards the broker. If other
        rules are in force by then, the grant is void."""
        generation = account.generation

        def at_border() -> None:
            if account.generation == generation:
                self._granted(account, messages, size, now)

        try:
            self._pair.pumps[Direction.TO_BROKER].at_border(at_border)
        except PeerError as error:
            self._pair.violated(Direction.TO_BROKER, error)
        except Exception as error:
            self._pair.crash(error)

    def _granted(self, account: Account, messages: int, size: int, now: float) -> None:
        kept = self._refused.get(account)
        if kept is not None:
            self._refused[account] = (kept[0] + messages, kept[1] + size)
        else:
            account.grant(messages, size)
        self._go_on(account, now)

    def _go_on(self, account: Account, now: float) -> None:
        while not self._pair.over and (
            self._send_refusal(account) or self._send_first(account, now)
        ):
            pass
        if self._pair.over:
            return
        self._keep_back(account)
        if self._frames.is_spent(account):
            self._begin_reset(account, now)
        elif account not in self._frames:
            self._plane.granted.pop(account, None)
            if account in self._expecting:
                self._expecting.discard(account)
                self._pair.attend(now)

    def _send_first(self, account: Account, now: float) -> bool:
        """Send or decide the account's first frames. Return whether there may be more to do."""
        frames = self._frames.first(account)
        if frames is None:
            return False
        pump = self._pair.pumps[Direction.TO_BROKER]
        passed = pump.release(frames, self._frames.since(account) or now)
        if self._pair.over:
            return False
        # The session decides any other stop frame: it came behind the frames that passed.
        stop = 0 if account.held else pump.scanner.stop
        decided = bytes(frames[passed : passed + stop])
        self._frames.passed(account, passed + stop)
        self._ages[account].passed(passed + stop)
        if stop:
            self._pair.decide(Direction.TO_BROKER, decided, now)
        return True

    # -- refusals ----------------------------------------------------------------------------

    def _send_refusal(self, account: Account) -> bool:
        """Send the first refusal, if earlier frames have their receipts. Return whether it did."""
        refusal = self._frames.refusal(account)
        if refusal is None or account.outstanding > 0:
            return False
        self._frames.passed(account, len(refusal))
        kept, self._refused[account] = self._refused.get(account), None
        if kept is not None:
            account.grant(*kept)
        self._pair.pumps[Direction.TO_CLIENT].inject(refusal)
        return True

    def _keep_back(self, account: Account) -> None:
        """Keep back the rest of the allowance while a refusal waits for receipts, so that nothing
        overtakes the refusal."""
        if account not in self._refused:
            return
        if not self._frames.has_refusals(account):
            del self._refused[account]
        elif self._frames.refusal(account) is not None and not account.held:
            left = account.messages_ceiling - account.messages
            self._refused[account] = left, account.bytes_ceiling - account.bytes
            account.hold()

    # -- frames that are too old -------------------------------------------------------------

    def _age(self, account: Account, size: int, now: float) -> None:
        ages = self._ages.get(account)
        if ages is None:
            until, earlier = self._earlier.pop(account.topic, (now, None))
            ages = self._ages[account] = Ages(earlier if now < until else None)
        ages.put(size, now)

    def _too_old_at(self, account: Account) -> tuple[float, bool] | None:
        """Return when the oldest frame is too old, and whether clients have given it up by then."""
        since = self._frames.since(account)
        if since is None:
            return None
        first = self._ages[account].first if account in self._ages else None
        comes_again = first is not None and first < since
        given_up = first + self._given_up if first is not None and comes_again else math.inf
        return min((since + self._plane.settings.held_for, False), (given_up, True))

    def _start_aging(self, account: Account) -> None:
        """Start a timer for when the oldest frame is too old, unless the account has one."""
        due = self._too_old_at(account)
        if due is not None and account not in self._aging:
            self._aging[account] = self._pair.later(due[0], partial(self._check_age, account))

    def _check_age(self, account: Account, now: float) -> None:
        self._aging.pop(account, None)
        due = self._too_old_at(account)
        if due is None or now < due[0]:
            self._start_aging(account)
            return
        if not due[1]:
            self._remember(account, now)
        self._begin_reset(account, now)

    def _remember(self, account: Account, now: float) -> None:
        """Keep the ages of discarded frames for `COMING` seconds: the client may send again."""
        while self._earlier and next(iter(self._earlier.values()))[0] <= now:
            self._earlier.popitem(last=False)
        self._earlier.pop(account.topic, None)
        self._earlier[account.topic] = now + COMING, self._ages[account].rest()

    # -- resets ------------------------------------------------------------------------------

    def _begin_reset(self, account: Account, now: float) -> None:
        self._plane.resets += 1
        self._reset(account, now)

    def _reset(self, account: Account, now: float) -> None:
        """Take one step of a reset, and the next ones later, until the session has no more."""
        if self._pair.reset(account, now):
            self._pair.later(now + RESET_STEP, partial(self._reset, account))
