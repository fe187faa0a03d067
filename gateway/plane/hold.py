"""Frames that wait for their account's allowance: queues with bounds, and the frames' ages.

A queue that is full is *cut*: later frames are discarded until all queued ones have passed and the
producer is reset. The client then sends the frames without a receipt again, so nothing is lost, and
resets are no more frequent than full queues pass: a reset at the bound itself would bring all
frames back at once, again and again.

A client whose producer was reset sends the same frames in the same order. So the next bytes get the
ages of as many discarded ones.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.wire.account import Account

if TYPE_CHECKING:
    from gateway.plane.memory import Memory

LEAST = 64 * 1024
"""Bytes that each account may have waiting even if others use all of `held_bound`."""


class _Entry(NamedTuple):
    """One or more whole frames and when they came, or a refusal for the client in place of a frame.

    Frames that pass are deleted at the front, which a bytearray does without moving the rest:
    copying the rest for each frame would cost time quadratic in the size of the entry.
    """

    came: float
    data: bytearray
    is_refusal: bool = False


class _Queue:
    """The entries of one account. `size`: bytes of all entries."""

    __slots__ = ("cut", "frames", "refusals", "size")

    def __init__(self) -> None:
        self.frames: deque[_Entry] = deque()
        self.refusals = 0
        self.size = 0
        self.cut = False


class HeldFrames:
    """The waiting frames of one pair: a queue for each account without allowance, in the order of
    arrival.

    An account with a queue has no allowance, so no later frame overtakes the queue.

    A queue may have as many bytes as are free of the bound for all pairs: one queue alone gets half
    of the bound, two get a third each (the dynamic thresholds of packet switches). So the number of
    queues need not be known, and there is always room for another queue.
    """

    __slots__ = ("_memory", "_queues")

    def __init__(self, memory: Memory) -> None:
        self._queues: dict[Account, _Queue] = {}
        self._memory = memory

    def __contains__(self, account: Account) -> bool:
        return account in self._queues

    @property
    def size(self) -> int:
        """Return the number of bytes in all queues."""
        return sum(queue.size for queue in self._queues.values())

    def since(self, account: Account) -> float | None:
        """Return when the account's oldest waiting frame came; None if no frame waits."""
        queue = self._queues.get(account)
        return queue.frames[0].came if queue and queue.frames else None

    def is_spent(self, account: Account) -> bool:
        """Return whether the account's queue was cut (later frames were discarded, because the
        queue was full), and all its frames were sent since: the producer can be reset now."""
        queue = self._queues.get(account)
        return queue is not None and queue.cut and not queue.frames

    def put(self, account: Account, frames: bytes, now: float) -> None:
        """Queue whole frames that came at the time `now`. If too many bytes wait already, discard
        these frames."""
        account.hold()
        self._put(account, _Entry(now, bytearray(frames)))

    def refuse(self, account: Account, refusal: bytes, now: float) -> None:
        """Queue `refusal`, a frame for the client, behind the account's waiting frames."""
        self._put(account, _Entry(now, bytearray(refusal), is_refusal=True))

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
        """Return whether `more` bytes do not fit. One frame of any size may wait, and `LEAST` bytes
        of each account, except where thousands of accounts reach `held_most` together."""
        memory = self._memory
        if memory.held and memory.held + more > memory.held_most:
            return True
        return bool(queue.frames) and queue.size + more > max(
            LEAST, memory.held_bound - memory.held
        )

    def first(self, account: Account) -> bytearray | None:
        """Return the account's oldest waiting frames; None if none wait, if a refusal is before
        them, or if the account has no allowance. Do not change the bytes, and do not use them after
        you have called `passed`."""
        queue = self._queues.get(account)
        if queue is None or not queue.frames or account.held:
            return None
        return None if queue.frames[0].is_refusal else queue.frames[0].data

    def refusal(self, account: Account) -> bytes | None:
        """Return the refusal at the head of the account's queue; None if no refusal is there. Send
        it only when the receipts of all earlier frames were sent."""
        queue = self._queues.get(account)
        is_next = queue is not None and queue.frames and queue.frames[0].is_refusal
        return bytes(queue.frames[0].data) if queue is not None and is_next else None

    def has_refusals(self, account: Account) -> bool:
        """Return whether the account's queue contains a refusal, at its head or behind frames."""
        queue = self._queues.get(account)
        return queue is not None and queue.refusals > 0

    def passed(self, account: Account, size: int) -> None:
        """Remove the first `size` bytes of the account's queue, because they were sent."""
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
        """Discard all frames and refusals in the account's queue."""
        queue = self._queues.pop(account, None)
        if queue is not None:
            self._grow(account, queue, -queue.size)

    def clear(self) -> tuple[Account, ...]:
        """Discard all queues. Return the accounts that had one."""
        accounts = tuple(self._queues)
        for account in accounts:
            self.discard(account)
        return accounts

    def _grow(self, account: Account, queue: _Queue, by: int) -> None:
        queue.size += by
        account.queued = queue.size
        self._memory.hold(by)


GRAIN = 0.1
"""Seconds: frames that came within this time of each other share one age."""

Marks = deque[tuple[int, float]]
"""Numbers of bytes, and when they first came."""


class Ages:
    """Remembers when the bytes in one queue first came, even if they were discarded since and the
    client sent them again.

    `earlier`: the marks of the discarded bytes.
    """

    __slots__ = ("_earlier", "_marks")

    def __init__(self, earlier: Marks | None = None) -> None:
        self._earlier: Marks = earlier or deque()
        self._marks: Marks = deque()

    @property
    def first(self) -> float | None:
        """Return when the oldest waiting bytes first came; None if no bytes wait."""
        return self._marks[0][1] if self._marks else None

    def put(self, size: int, now: float) -> None:
        """Add `size` bytes. If bytes were discarded before, these are the same bytes sent again,
        and keep the time at which they first came."""
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
        """Remove the oldest `size` bytes, because they were sent."""
        while size and self._marks:
            known, came = self._marks.popleft()
            if size < known:
                self._marks.appendleft((known - size, came))
            size -= min(size, known)

    def rest(self) -> Marks:
        """Return the marks (numbers of bytes, and when they first came) of all waiting bytes, then
        those of discarded bytes that the client may still send again."""
        return self._marks + self._earlier
