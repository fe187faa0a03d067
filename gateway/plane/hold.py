"""Frames that wait for their account's allowance: the bounds of waiting, and how old they are.

A queue that is full is *cut*: what comes behind is thrown away, up to the moment when all before
it has passed and the producer is reset. The client then sends again what has no receipt, so
nothing is lost, and it does so no more often than a full queue takes to pass: a reset at the bound
itself would bring all of it back at once, again and again.

A client that was made to send again sends the same frames in the same order. So the ages of what
was thrown away are those of as many bytes that come next.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.wire.account import Account

if TYPE_CHECKING:
    from gateway.plane.memory import Memory

LEAST = 64 * 1024
"""Bytes that each account may have waiting though others have all of `held_bound`."""


class _Entry(NamedTuple):
    """When it came, and whole frames, one or more; or what the client is told in place of one.

    Frames that pass are cut off in front, which a bytearray does without moving the rest: copies of
    what is left would cost as much for each frame as all of them have bytes.
    """

    came: float
    data: bytearray
    is_refusal: bool = False


class _Queue:
    """`size`: bytes of all entries."""

    __slots__ = ("cut", "frames", "refusals", "size")

    def __init__(self) -> None:
        self.frames: deque[_Entry] = deque()
        self.refusals = 0
        self.size = 0
        self.cut = False


class HeldFrames:
    """One queue for each held account of a pair, in the order of arrival.

    While an account has a queue it has no allowance: nothing overtakes it.

    A queue may have as much as is free, of what all pairs together may hold: one alone half of
    that, two a third each (the dynamic thresholds of packet switches). So nobody has to know how
    many there will be, and there is always room for another one.
    """

    __slots__ = ("_memory", "_queues")

    def __init__(self, memory: Memory) -> None:
        self._queues: dict[Account, _Queue] = {}
        self._memory = memory

    def __contains__(self, account: Account) -> bool:
        return account in self._queues

    @property
    def size(self) -> int:
        """Bytes of all frames."""
        return sum(queue.size for queue in self._queues.values())

    def since(self, account: Account) -> float | None:
        """When the oldest frame came; None: nothing waits."""
        queue = self._queues.get(account)
        return queue.frames[0].came if queue and queue.frames else None

    def is_spent(self, account: Account) -> bool:
        """All passed that was in a queue, and what came behind it was thrown away."""
        queue = self._queues.get(account)
        return queue is not None and queue.cut and not queue.frames

    def put(self, account: Account, frames: bytes, now: float) -> None:
        """Have whole frames wait; or throw them away, where too much waits already."""
        account.hold()
        self._put(account, _Entry(now, bytearray(frames)))

    def refuse(self, account: Account, told: bytes, now: float) -> None:
        """Have a refusal wait for its turn among the frames."""
        self._put(account, _Entry(now, bytearray(told), is_refusal=True))

    def _put(self, account: Account, entry: _Entry) -> None:
        queue = self._queues.get(account)
        if queue is None:
            queue = self._queues[account] = _Queue()
        queue.cut = queue.cut or self._is_full(queue, len(entry.data))
        if not queue.cut:
            queue.frames.append(entry)
            queue.refusals += entry.is_refusal
            self._grow(account, queue, len(entry.data))

    def _is_full(self, queue: _Queue, more: int) -> bool:
        """One frame of any size may wait, and a little of each account; of thousands of accounts
        that would be too much."""
        memory = self._memory
        if memory.held and memory.held + more > memory.held_most:
            return True
        return bool(queue.frames) and queue.size + more > max(
            LEAST, memory.held_bound - memory.held
        )

    def first(self, account: Account) -> bytearray | None:
        """The frames that came first, if the account may pass one now. Not to be changed, nor used
        behind `passed`."""
        queue = self._queues.get(account)
        if queue is None or not queue.frames or account.held:
            return None
        return None if queue.frames[0].is_refusal else queue.frames[0].data

    def refusal(self, account: Account) -> bytes | None:
        """The refusal whose turn it is, though receipts may have to come before it."""
        queue = self._queues.get(account)
        is_next = queue is not None and queue.frames and queue.frames[0].is_refusal
        return bytes(queue.frames[0].data) if queue is not None and is_next else None

    def has_refusals(self, account: Account) -> bool:
        """Some wait, behind frames perhaps."""
        queue = self._queues.get(account)
        return queue is not None and queue.refusals > 0

    def passed(self, account: Account, size: int) -> None:
        """So many bytes of the first frames wait no more."""
        queue = self._queues[account]
        entry = queue.frames[0]
        self._grow(account, queue, -size)
        if size < len(entry.data):
            del entry.data[:size]
            return
        queue.frames.popleft()
        queue.refusals -= entry.is_refusal
        if not queue.frames and not queue.cut:
            del self._queues[account]

    def discard(self, account: Account) -> None:
        """Throw away what waits."""
        queue = self._queues.pop(account, None)
        if queue is not None:
            self._grow(account, queue, -queue.size)

    def clear(self) -> tuple[Account, ...]:
        """Throw away all that waits; answers whose it was."""
        accounts = tuple(self._queues)
        for account in accounts:
            self.discard(account)
        return accounts

    def _grow(self, account: Account, queue: _Queue, by: int) -> None:
        queue.size += by
        account.queued = queue.size
        self._memory.hold(by)


GRAIN = 0.1
"""Seconds that make no difference: frames that came within them have one age."""

Marks = deque[tuple[int, float]]
"""So many bytes, and when they came first."""


class Ages:
    """When what waits in one queue came first, though it was thrown away since and came again.

    `earlier`: the marks of what was thrown away before.
    """

    __slots__ = ("_earlier", "_marks")

    def __init__(self, earlier: Marks | None = None) -> None:
        self._earlier: Marks = earlier or deque()
        self._marks: Marks = deque()

    @property
    def first(self) -> float | None:
        """When the oldest came first; None: nothing waits."""
        return self._marks[0][1] if self._marks else None

    def put(self, size: int, now: float) -> None:
        """So many bytes more wait."""
        while size and self._earlier:
            known, came = self._earlier.popleft()
            taken = min(size, known)
            self._add(taken, came)
            size -= taken
            if taken < known:
                self._earlier.appendleft((known - taken, came))
        if size:
            self._add(size, now)

    def _add(self, size: int, came: float) -> None:
        if self._marks and came - self._marks[-1][1] < GRAIN:
            before, since = self._marks.pop()
            size, came = size + before, since
        self._marks.append((size, came))

    def passed(self, size: int) -> None:
        """So many bytes, the oldest, wait no more."""
        while size and self._marks:
            known, came = self._marks.popleft()
            if size < known:
                self._marks.appendleft((known - size, came))
            size -= min(size, known)

    def rest(self) -> Marks:
        """All that waits, and what may still come again."""
        return self._marks + self._earlier
