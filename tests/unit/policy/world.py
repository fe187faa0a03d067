"""Producers under limits as in the data plane: frames that may not pass wait in a queue."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.dimensions import Unit
from gateway.policy.limiter import Limiter
from gateway.policy.limits import LimitSpec
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from gateway.policy.limits import Grant


class Frame(NamedTuple):
    messages: int
    bytes: int


class Passed(NamedTuple):
    """`lent`: units that the limit's accounts had on lease just before."""

    at: float
    account: Account
    frame: Frame
    lent: Frame


def messages(
    rate: float, burst: float = 1, key: Hashable = "rule", *, shadow: bool = False
) -> LimitSpec:
    return LimitSpec(key, Unit.MESSAGES, rate, burst, shadow)


def size(
    rate: float, burst: float = 1, key: Hashable = "rule", *, shadow: bool = False
) -> LimitSpec:
    return LimitSpec(key, Unit.BYTES, rate, burst, shadow)


class Producer:
    """`frame`: what it sends without end, if anything.

    `cut`: a frame of its connection has not arrived completely, so grants wait.
    """

    def __init__(self, account: Account, specs: tuple[LimitSpec, ...]) -> None:
        self.account = account
        self.specs = specs
        self.queue: deque[Frame] = deque()
        self.frame: Frame | None = None
        self.cut = False
        self.granted: list[Grant] = []

    @property
    def total(self) -> Frame:
        return Frame(self.account.messages, self.account.bytes)


class World:
    """`late`: seconds by which the timer is late, in turn. `passed`: kept if `records`."""

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
        self.passed: dict[LimitSpec, list[Passed]] = {}
        self.rounds = 0
        self._late = late

    def opens(self, *specs: LimitSpec, client: Hashable = None) -> Producer:
        producer = Producer(Account(Action.PRODUCE, subject_of("t")), specs)
        self.limiter.admit(producer.account, specs, self.now, client)
        self.producers.append(producer)
        return producer

    def reloads(self, producer: Producer, *specs: LimitSpec) -> None:
        self.completes(producer)
        producer.specs = specs
        self.limiter.admit(producer.account, specs, self.now)

    def closes(self, producer: Producer) -> None:
        self.producers.remove(producer)
        self.limiter.release(producer.account, self.now)

    def sends(self, producer: Producer, count: int = 1, size: int = 100) -> bool:
        """Send a frame; return whether it passed at once."""
        account = producer.account
        assert account.held or not producer.queue, "the frame would overtake queued ones"
        if account.held and not self.limiter.wants(account, self.now):
            producer.queue.append(Frame(count, size))
            account.hold()
            return False
        assert not producer.queue, "the frame would overtake queued ones"
        self._passes(producer, Frame(count, size))
        return True

    def floods(self, frame: Frame, *producers: Producer) -> None:
        """Have these producers send without end."""
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
        for grant in self.limiter.hold_round(self.now):
            producer = owners[grant.account]
            producer.granted.append(grant)
            if not producer.cut:
                self.completes(producer)

    def completes(self, producer: Producer) -> None:
        """Complete the cut frame, and make the grants that waited for it."""
        producer.cut = False
        for grant in producer.granted:
            grant.account.grant(grant.messages, grant.bytes)
            self._releases(producer)
        producer.granted.clear()

    def lent(self, spec: LimitSpec) -> Frame:
        members = self.limiter._members
        under = [members[it.account] for it in self.producers if spec in it.specs]
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
        for spec in producer.specs if self._records else ():
            entry = Passed(self.now, producer.account, frame, self.lent(spec))
            self.passed.setdefault(spec, []).append(entry)
        producer.account.messages += frame.messages
        producer.account.surplus += frame.messages - 1
        producer.account.bytes += frame.bytes


def jain(shares: Sequence[float]) -> float:
    """Return Jain's fairness index; 1: all have the same; 1/n: one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(it * it for it in shares))
