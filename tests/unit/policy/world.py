"""Producers under limits, as in the plane: frames that may not pass wait in a queue."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.limiter import Limiter
from gateway.policy.limits import Applied, Limit, Unit
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from gateway.policy.limits import Grant


class Frame(NamedTuple):
    messages: int
    bytes: int


class Passed(NamedTuple):
    """`lent`: what the limits' accounts had on lease just before, in each unit."""

    at: float
    account: Account
    frame: Frame
    lent: Frame


def messages(
    rate: float, burst: float = 1, key: Hashable = "rule", *, shadow: bool = False
) -> Applied:
    return Applied(key, Unit.MESSAGES, rate, burst, shadow)


def size(rate: float, burst: float = 1, key: Hashable = "rule", *, shadow: bool = False) -> Applied:
    return Applied(key, Unit.BYTES, rate, burst, shadow)


class Producer:
    """`frame`: what it sends without end, if anything.

    `cut`: a frame of its connection is not all here yet, so what it is granted waits.
    """

    def __init__(self, account: Account, applied: tuple[Applied, ...]) -> None:
        self.account = account
        self.applied = applied
        self.queue: deque[Frame] = deque()
        self.frame: Frame | None = None
        self.cut = False
        self.granted: list[Grant] = []

    @property
    def total(self) -> Frame:
        return Frame(self.account.messages, self.account.bytes)


class World:
    """`late`: how many seconds the timer is late, by turn. `passed`: kept where it is asked for."""

    def __init__(
        self,
        late: Sequence[float] = (0.0,),
        *,
        records: bool = False,
        limiter: Limiter | None = None,
    ) -> None:
        self.limiter = Limiter() if limiter is None else limiter
        self.producers: list[Producer] = []
        self.now = 1000.0
        self._records = records
        self.passed: dict[Applied, list[Passed]] = {}
        self.met: set[Limit] = set()
        self.rounds = 0
        self._late = late

    def opens(self, *applied: Applied, client: Hashable = None) -> Producer:
        producer = Producer(Account(Action.PRODUCE, subject_of("t")), applied)
        self.limiter.admit(producer.account, applied, self.now, client)
        self.producers.append(producer)
        self.met.update(self.limiter.limits() if self._records else ())
        return producer

    def reloads(self, producer: Producer, *applied: Applied) -> None:
        self.completes(producer)
        producer.applied = applied
        self.limiter.admit(producer.account, applied, self.now)

    def closes(self, producer: Producer) -> None:
        self.producers.remove(producer)
        self.limiter.release(producer.account, self.now)

    def sends(self, producer: Producer, count: int = 1, size: int = 100) -> bool:
        """Answer whether it passed at once."""
        account = producer.account
        assert account.held or not producer.queue, "what comes now would overtake"
        if account.held and not self.limiter.wants(account, self.now):
            producer.queue.append(Frame(count, size))
            account.hold()
            return False
        assert not producer.queue, "what comes now would overtake"
        self._passes(producer, Frame(count, size))
        return True

    def floods(self, frame: Frame, *producers: Producer) -> None:
        """From now on these send without end."""
        for producer in producers:
            producer.frame = frame
            while self.sends(producer, *frame):
                pass

    def runs(self, seconds: float) -> None:
        end = self.now + seconds
        while (when := self.limiter.next_time(self.now)) is not None and when <= end:
            self.now = max(self.now, when) + self._late[self.rounds % len(self._late)]
            self.holds_a_round()
        self.now = max(self.now, end)

    def holds_a_round(self) -> None:
        self.rounds += 1
        owners = {it.account: it for it in self.producers}
        for grant in self.limiter.lease(self.now):
            producer = owners[grant.account]
            producer.granted.append(grant)
            if not producer.cut:
                self.completes(producer)

    def completes(self, producer: Producer) -> None:
        """The cut frame is here: what was granted meanwhile is given."""
        producer.cut = False
        for grant in producer.granted:
            grant.account.grant(grant.messages, grant.bytes)
            self._releases(producer)
        producer.granted.clear()

    def forgiven(self, applied: Applied) -> float:
        return sum(it.meter.forgiven for it in self.met if it.applied == applied)

    def lent(self, applied: Applied) -> Frame:
        members = self.limiter._members
        under = [members[it.account] for it in self.producers if applied in it.applied]
        left = [0, 0]
        for member in under:
            passed = (member.account.messages, member.account.bytes)
            for unit in Unit:
                left[unit] += max(0, member._paid[unit] - passed[unit])
        return Frame(*left)

    def _releases(self, producer: Producer) -> None:
        while producer.queue and not producer.account.held:
            self._passes(producer, producer.queue.popleft())
            if producer.frame is not None and not producer.queue:
                producer.queue.append(producer.frame)

    def _passes(self, producer: Producer, frame: Frame) -> None:
        for applied in producer.applied if self._records else ():
            entry = Passed(self.now, producer.account, frame, self.lent(applied))
            self.passed.setdefault(applied, []).append(entry)
        producer.account.messages += frame.messages
        producer.account.surplus += frame.messages - 1
        producer.account.bytes += frame.bytes


def jain(shares: Sequence[float]) -> float:
    """1: all have the same; 1/n: one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(it * it for it in shares))
