"""Permits under real limits, and a timed model of a broker that uses them.

The broker charges a consumer for all messages of an entry, and sends entries while it has a permit.
If the connection is not read, the socket keeps at most `WRITTEN` bytes of what the broker writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import NamedTuple

import pytest

from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.policy.shaping import Shaping
from gateway.wire.account import Account, Action
from gateway.wire.contract import Effects, Forward, Inject, Later, Pause, Replace
from gateway.wire.pulsar.permits import Permits
from gateway.wire.pulsar.throttle import FAR_BYTES, FAR_MESSAGES
from tests.playbooks.frames import read
from tests.support.subjects import subject_of

STEP = 0.01
WRITTEN = 1_000_000
READ = 512 * 1024
QUEUE = 1000


class Entry(NamedTuple):
    """`counted`: the messages that the gateway counts."""

    size: int
    messages: int = 1
    counted: int = 1


def batch(messages: int, counted: int = 0) -> Entry:
    return Entry(100 * messages, messages, counted or messages)


LARGE = Entry(5 << 20)
TINY = Entry(80)
SINGLE = Entry(100)


class Limits:
    """The services with one rule's limits."""

    def __init__(self, **dispatch: str) -> None:
        rule = Rule.model_validate({"id": "r", "limit": {"dispatch": dispatch}, "per": "tenant"})
        self.shaping = Shaping(RuleSet.compile([rule]))
        self.now = 0.0

    def wants(self, account: Account) -> bool:
        return self.shaping.limiter.wants(account, self.now)

    def is_in_debt(self, account: Account) -> bool:
        return self.shaping.limiter.is_in_debt(account, self.now)


class Consumer:
    """One consumer on a connection of its own, with its broker and the gateway's permits."""

    def __init__(self, limits: Limits, backlog: Iterator[Entry], queue: int = QUEUE) -> None:
        self._limits = limits
        self._backlog = backlog
        self._queue = queue
        self._written: deque[Entry] = deque()
        self._later: list[Later] = []
        self._taken = 0
        self._reads_from = 0.0
        self.account = Account(Action.CONSUME, subject_of("acme/ns/t", protocol="pulsar"))
        limits.shaping.admit(self.account, limits.now)
        self._permits = Permits(limits)  # type: ignore[arg-type]
        self.permits = self.asked = self.passed = 0
        self.got = self.size = 0
        self.last = 0.0
        self.pauses: list[float] = []
        self._ask(queue)

    def close(self) -> None:
        self._limits.shaping.release(self.account, self._limits.now)

    def _ask(self, permits: int) -> None:
        self.asked += permits
        self._carry_out(self._permits.ask(1, self.account, permits, self._limits.now), permits)

    def _carry_out(self, effects: Effects | None, asked: int = 0) -> None:
        for effect in effects or ():
            match effect:
                case Forward():
                    self._pass(asked)
                case Replace(data) | Inject(_, data):
                    self._pass(read(data).flow.messagePermits)
                case Later():
                    self._later.append(effect)
                case Pause(_, until):
                    self.pauses.append(until - self._limits.now)
                    self._reads_from = until
                case _:
                    pass

    def _pass(self, permits: int) -> None:
        self.passed += permits
        self.permits += permits
        assert self.passed <= self.asked

    def step(self) -> None:
        now = self._limits.now
        for later in [it for it in self._later if it.until <= now]:
            self._later.remove(later)
            self._carry_out(later.then(now))
        self._dispatch()
        while self._written and now >= self._reads_from:
            self._read(now)
            self._dispatch()

    def _dispatch(self) -> None:
        while self.permits > 0 and sum(it.size for it in self._written) < WRITTEN:
            entry = next(self._backlog, None)
            if entry is None:
                return
            self.permits -= entry.messages
            self._written.append(entry)

    def _read(self, now: float) -> None:
        """Receive once, as the data plane does: a read includes the rest of its last frame."""
        size = 0
        while self._written and size < READ:
            entry = self._written.popleft()
            size += entry.size
            self.account.bytes += entry.size
            self.account.messages += entry.counted
            self.account.surplus += entry.counted - 1
            self.got += entry.messages
            self._taken += entry.messages
        self.size += size
        self.last = now
        half = max(1, self._queue // 2)
        while self._taken >= half:
            self._taken -= half
            self._ask(half)
        self.attend()

    def attend(self) -> None:
        self._carry_out(self._permits.delivered(self._limits.now))


def pass_time(limits: Limits, seconds: float, *consumers: Consumer) -> None:
    """Let time pass."""
    until = limits.now + seconds
    while limits.now < until:
        for account, messages, size in limits.shaping.limiter.hold_round(limits.now):
            account.grant(messages, size)
            for consumer in consumers:
                if consumer.account is account:
                    consumer.attend()
        for consumer in consumers:
            consumer.step()
        limits.now += STEP


# -- consumers never stop for good ---------------------------------------------------------------


@pytest.mark.parametrize("first", [1100, 5000, 50_000])
@pytest.mark.parametrize("rate", [1000, 10_000])
def test_a_consumer_goes_on_behind_a_batch_of_any_size(first: int, rate: int) -> None:
    limits = Limits(messages=f"{rate}/s")
    consumer = Consumer(limits, chain([batch(first)], repeat(SINGLE)))
    pass_time(limits, first / rate + 3, consumer)
    assert consumer.got > first + rate


@pytest.mark.parametrize("counted", [1, 2, 30])
@pytest.mark.parametrize("messages", [50, 300, 1000, 5000])
def test_a_consumer_goes_on_behind_miscounted_batches(messages: int, counted: int) -> None:
    """The broker has fewer permits than the gateway assumes, for whatever reason."""
    limits = Limits(messages="1000/s")
    consumer = Consumer(limits, repeat(batch(messages, counted)))
    pass_time(limits, 300, consumer)
    before = consumer.got
    pass_time(limits, 300, consumer)
    assert consumer.got > before
    assert limits.now - consumer.last < 100


def test_an_empty_topic_adds_half_a_queue_of_permits_at_most() -> None:
    """The gateway cannot tell an empty topic from a broker without permits."""
    limits = Limits(messages="100/s")
    backlog: deque[Entry] = deque([SINGLE] * 20)
    consumer = Consumer(limits, _taken_from(backlog))
    pass_time(limits, 3600, consumer)
    assert consumer.got == 20
    assert QUEUE // 2 <= consumer.permits <= QUEUE // 2 + 20
    backlog += [SINGLE] * 10_000
    pass_time(limits, 60, consumer)
    assert consumer.got <= 20 + QUEUE // 2 + 20 + 100 * 60


def test_a_consumer_that_never_received_anything_has_one_permit() -> None:
    """A broker's first read uses permits for batches."""
    limits = Limits(messages="100/s")
    consumer = Consumer(limits, iter(()))
    pass_time(limits, 3600, consumer)
    assert consumer.permits == 1


def _taken_from(backlog: deque[Entry]) -> Iterator[Entry]:
    while True:
        yield backlog.popleft() if backlog else None  # type: ignore[misc]


# -- limits hold -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [1, 50, 20_000])
@pytest.mark.parametrize("rate", [1, 10])
def test_large_messages_behind_tiny_ones_keep_a_limit_of_bytes(tiny: int, rate: int) -> None:
    """Rates in megabytes. Each read of the connection may exceed the limit by one read and one
    frame."""
    limits = Limits(bytes=f"{rate}MB/s")
    backlog = chain(repeat(TINY, tiny), repeat(LARGE))
    consumer = Consumer(limits, backlog, queue=2**31 - 1)
    pass_time(limits, 60, consumer)
    reads = len(consumer.pauses) + 1
    beyond = consumer.size - 60.2 * rate * 1e6
    assert beyond <= FAR_BYTES + reads * (READ + LARGE.size)
    assert beyond <= 30 * LARGE.size


def test_large_batches_behind_single_messages_keep_a_limit_of_messages() -> None:
    limits = Limits(messages="10000/s")
    backlog = chain(repeat(SINGLE, 20_000), repeat(batch(100_000)))
    consumer = Consumer(limits, backlog, queue=2**31 - 1)
    pass_time(limits, 10, consumer)
    assert consumer.got <= 10_000 * 10.2 + FAR_MESSAGES + 4 * 100_000


def test_the_connection_is_read_again_within_seconds() -> None:
    limits = Limits(bytes="100KB/s")
    consumer = Consumer(limits, chain(repeat(TINY, 1000), repeat(LARGE)), queue=2**31 - 1)
    pass_time(limits, 60, consumer)
    assert consumer.pauses
    assert max(consumer.pauses) <= 4


HONEST: dict[str, tuple[Callable[[int], Entry], dict[str, str]]] = {
    "small messages": (lambda _: SINGLE, {"bytes": "1MB/s"}),
    "batches": (lambda _: batch(1000), {"bytes": "1MB/s"}),
    "the largest messages": (lambda _: LARGE, {"bytes": "20MB/s"}),
    "small ones and large ones": (
        lambda n: Entry(1_000_000) if n % 100 == 0 else SINGLE,
        {"bytes": "10MB/s"},
    ),
    "batches under a limit of messages": (lambda _: batch(1000), {"messages": "1000/s"}),
    "large batches under a limit of messages": (lambda _: batch(5000), {"messages": "1000/s"}),
}


@pytest.mark.parametrize("kind", HONEST)
def test_honest_traffic_is_never_paused_and_reaches_its_rate(kind: str) -> None:
    entry, dispatch = HONEST[kind]
    limits = Limits(**dispatch)
    consumer = Consumer(limits, (entry(n) for n in range(10**9)))
    pass_time(limits, 20, consumer)
    assert consumer.pauses == []
    if "bytes" in dispatch:
        passed, rate = consumer.size, 1e6 * float(dispatch["bytes"].removesuffix("MB/s"))
    else:
        passed, rate = consumer.got, float(dispatch["messages"].removesuffix("/s"))
    assert 0.9 * rate * 20 < passed < 1.02 * rate * 20 + FAR_BYTES


# -- reopening ---------------------------------------------------------------------------------


def test_a_consumer_that_reopens_again_and_again_keeps_the_limit() -> None:
    limits = Limits(messages="1000/s")
    got = 0
    for _ in range(6000):
        consumer = Consumer(limits, repeat(batch(1000)))
        pass_time(limits, STEP, consumer)
        got += consumer.got
        consumer.close()
    assert got < 1.2 * 1000 * 60 + 2000
