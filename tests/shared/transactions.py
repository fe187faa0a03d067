"""Tests of clients with transactions, which move messages from one topic to another."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.clients.programs import ABORTED, Program, Received, Sent, Transacted
from tests.real.brokers.admin import AdminError
from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic, wait_until

SETTLED_SECONDS = 60
"""A coordinator aborts a transaction that its client has lost after 5 s; its messages are then
taken again. Where another test loads the machine, that takes several times as long."""

LIMIT_SECONDS = 180
"""Limit of the clients' run time: they serve until both topics have settled."""

SHOWS_ABORTED = {"go"}
"""The Go client 0.19 does not mark messages with their transaction, by which a broker withholds
aborted ones: they are delivered, on a direct connection too."""


@dataclass(frozen=True)
class Taken:
    """What became of the messages of one topic on their way to another."""

    program: Program
    sent: Sent
    transacted: Transacted
    received: Received

    def assert_nothing_is_lost(self) -> None:
        """Assert that each message arrived, and no message of an aborted transaction."""
        assert (self.sent.errors, self.received.errors) == ((), ())
        assert self.arrived == self.sent.acknowledged
        assert self.transacted.moved <= self.arrived
        assert self.aborted == set() or self.program.name in SHOWS_ABORTED

    def assert_exact(self) -> None:
        """Assert also that each message arrived once."""
        self.assert_nothing_is_lost()
        assert self.received.stored_twice == 0 or self.program.name in SHOWS_ABORTED

    @property
    def arrived(self) -> frozenset[int]:
        """Return the received messages of committed transactions."""
        return frozenset(number for number in self.received.received if number < ABORTED)

    @property
    def aborted(self) -> frozenset[int]:
        """Return the messages that were received although their transaction was aborted."""
        return self.received.received - self.arrived


def take_over(
    program: Program,
    broker: Standalone,
    url: str,
    logs: Path,
    *,
    batch: bool = False,
    interval_ms: int = 0,
    meanwhile: Callable[[str, str], None] = lambda _source, _target: None,
) -> Taken:
    """Produce with one client, move the messages by transactions with another, and consume the
    result with a third."""
    source, target = fresh_topic("source"), fresh_topic("target")
    program = replace(program, limit=LIMIT_SECONDS)
    with (
        program.consuming(url, target, "end", 0, logs / "consumer.log") as consumer,
        program.transacting(url, source, target, 0, logs / "mover.log", batch=batch) as mover,
    ):
        for running in (consumer, mover):
            running.await_ready()
        with program.producing(
            url, source, 0, logs / "producer.log", interval_ms=interval_ms
        ) as producer:
            producer.await_ready()
            meanwhile(source, target)
            producer.tell_to_stop()
            sent = producer.sent()
        try:
            _settle(broker, source, "s")
        finally:
            mover.tell_to_stop()
            transacted = mover.transacted()
            print(_summary(transacted), *sorted({_kind(it) for it in transacted.errors}), sep="\n")
        _settle(broker, target, "end")
        consumer.tell_to_stop()
        return Taken(program, sent, transacted, consumer.received())


def _settle(broker: Standalone, topic: str, subscription: str) -> None:
    """Wait until a subscription has no backlog. Print the topic's statistics if it keeps one."""
    try:
        wait_until(lambda: _is_empty(broker, topic, subscription), SETTLED_SECONDS)
    except AssertionError:
        print(broker.admin.stats(topic))
        raise


def _is_empty(broker: Standalone, topic: str, subscription: str) -> bool:
    with suppress(AdminError):  # a topic that is being unloaded
        found = broker.admin.stats(topic)["subscriptions"][subscription]
        return int(found["msgBacklog"]) == 0
    return False


def _summary(it: Transacted) -> str:
    return (
        f"{it.committed} committed, {it.aborted} aborted, {it.failed} failed, "
        f"longest {it.longest_ms / 1000:.3f} s"
    )


def _kind(error: str) -> str:
    """Return the error without its message ids."""
    return re.sub(r"\d+", "*", error)[:300]
