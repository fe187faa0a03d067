"""What tests ask of clients with transactions: messages are taken from one topic to another."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.clients.programs import ABORTED, Program, Received, Sent, Transacted
from tests.real.brokers.admin import AdminError
from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic, wait_until

SETTLED_SECONDS = 25
"""A transaction that its client has lost is aborted by its coordinator after 5 s; what it took is
taken again.
"""

SHOWS_ABORTED = {"go"}
"""The Go client 0.19 does not note the transaction in the metadata of a message, by which a broker
withholds what was aborted: it is delivered, on a direct connection too.
"""


@dataclass(frozen=True)
class Taken:
    """What became of the messages of one topic on their way to another."""

    program: Program
    sent: Sent
    transacted: Transacted
    received: Received

    def assert_nothing_is_lost(self) -> None:
        """Each message has come, whichever way its transactions went; what was aborted has not."""
        assert (self.sent.errors, self.received.errors) == ((), ())
        assert self.arrived == self.sent.acknowledged
        assert self.transacted.moved <= self.arrived
        assert self.aborted == set() or self.program.name in SHOWS_ABORTED

    def assert_exact(self) -> None:
        """And it has come once."""
        self.assert_nothing_is_lost()
        assert self.received.stored_twice == 0 or self.program.name in SHOWS_ABORTED

    @property
    def arrived(self) -> frozenset[int]:
        """What came of transactions that were committed."""
        return frozenset(number for number in self.received.received if number < ABORTED)

    @property
    def aborted(self) -> frozenset[int]:
        """What came although it was sent to be aborted."""
        return self.received.received - self.arrived

    def summary(self) -> str:
        it = self.transacted
        return (
            f"{it.committed} committed, {it.aborted} aborted, {it.failed} failed, "
            f"longest {it.longest_ms / 1000:.3f} s"
        )


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
    """One client produces, one takes over by transactions, one consumes what that has produced."""
    source, target = fresh_topic("source"), fresh_topic("target")
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
        wait_until(lambda: _is_empty(broker, source, "s"), SETTLED_SECONDS)
        mover.tell_to_stop()
        transacted = mover.transacted()
        wait_until(lambda: _is_empty(broker, target, "end"), SETTLED_SECONDS)
        consumer.tell_to_stop()
        taken = Taken(program, sent, transacted, consumer.received())
    print(taken.summary(), *sorted({_kind(it) for it in transacted.errors}), sep="\n")
    return taken


def _is_empty(broker: Standalone, topic: str, subscription: str) -> bool:
    with suppress(AdminError):  # a topic that is being unloaded
        found = broker.admin.stats(topic)["subscriptions"][subscription]
        return int(found["msgBacklog"]) == 0
    return False


def _kind(error: str) -> str:
    """Without the ids of its message."""
    return re.sub(r"\d+", "*", error)[:300]
