"""Two gateways behind one address, restarted one after the other under load.

A client notices nothing but a send that takes a little longer: no message is lost or stored twice,
and all arrive in order.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.front.moving import AGE_SPREAD
from tests.clients.programs import Program
from tests.real.brokers.standalone import Standalone
from tests.real.clients import Client, fresh_topic, wait_until
from tests.real.fixtures import Connect, StartBroker, StartGateway, Tapped

from .brokers import REAL, Brokers
from .rolled import INTERVAL_MS, Rolled, in_front_of
from .transactions import take_over

TRANSACTED_INTERVAL_MS = 20
"""Slower: five messages make a transaction, which takes a broker some tens of milliseconds, and
several times as long where another test loads the machine."""

POLL_SECONDS = 2.0
"""How long a consumer waits for a message before it looks whether all have arrived."""
SILENT_SECONDS = 20.0
"""A consumer gives up when all messages are sent and none has come for so long. On a busy machine
it may connect again seconds after its producer."""

pytestmark = [pytest.mark.gateway_only, pytest.mark.tier("all")]


@pytest.fixture
def rolled(
    brokers: Brokers, gateway: StartGateway, tapped: Tapped, tmp_path: Path
) -> Iterator[Rolled]:
    with in_front_of(brokers, gateway, tapped, tmp_path) as them:
        yield them


# -- Python ------------------------------------------------------------------------------------


class Load:
    """Numbered messages of one producer, and what consumers received of them, with ids. A message
    that arrives twice with one id was redelivered, with two ids it was stored twice."""

    def __init__(self, client: Client, topic: str, consumers: int = 1, **options: Any) -> None:
        self.sent = 0
        self.acknowledged: list[int] = []
        self.failed: list[Any] = []
        self.received: list[int] = []
        self.ids: dict[int, set[tuple[int, int, int, int]]] = {}
        self.longest = 0.0
        self._stop = threading.Event()
        self._all_sent = threading.Event()
        kind = client_library.ConsumerType.Exclusive
        kind = options.pop("kind", kind)
        self._producer = client.create_producer(topic, block_if_queue_full=True, **options)
        subscribed = [client.subscribe(topic, "s", consumer_type=kind) for _ in range(consumers)]
        self._threads = [threading.Thread(target=self._consume, args=(it,)) for it in subscribed]
        self._threads.append(threading.Thread(target=self._produce))
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        while not self._stop.is_set():
            number, began = self.sent, time.monotonic()

            def done(result: Any, _id: Any, number: int = number, began: float = began) -> None:
                self.longest = max(self.longest, time.monotonic() - began)
                if result == client_library.Result.Ok:
                    self.acknowledged.append(number)
                else:
                    self.failed.append(result)

            self._producer.send_async(b"%d" % number, done, partition_key=str(number % 10))
            self.sent += 1
            time.sleep(INTERVAL_MS / 1000)
        self._producer.flush()

    def _consume(self, consumer: Any) -> None:
        silent = 0.0
        while silent < SILENT_SECONDS and not self._is_complete():
            is_over = self._all_sent.is_set()
            try:
                message = consumer.receive(timeout_millis=int(POLL_SECONDS * 1000))
            except client_library.Timeout:
                silent += POLL_SECONDS * is_over
                continue
            silent = 0.0
            number, id = int(message.data()), message.message_id()
            self.received.append(number)
            place = id.ledger_id(), id.entry_id(), id.partition(), id.batch_index()
            self.ids.setdefault(number, set()).add(place)
            consumer.acknowledge(message)

    def _is_complete(self) -> bool:
        return self._all_sent.is_set() and len(self.ids) >= self.sent

    def finish(self) -> None:
        """Stop sending; return when all messages have arrived, or none arrives any more."""
        self._stop.set()
        *consumers, producer = self._threads
        producer.join()
        self._all_sent.set()  # not before: the producer may be about to send its last message
        for consumer in consumers:
            consumer.join()

    def assert_complete(self) -> None:
        """Assert that no message was lost."""
        assert self.failed == []
        assert sorted(self.acknowledged) == list(range(self.sent))
        assert sorted(self.ids) == list(range(self.sent))

    def assert_exact(self) -> None:
        """Assert that no message was lost or stored twice."""
        again = len(self.received) - len(self.ids)
        print(f"{self.sent} sent, longest {self.longest:.3f} s, {again} delivered again")
        self.assert_complete()
        assert [number for number, ids in self.ids.items() if len(ids) > 1] == []


def test_python_producers_and_consumers_move(rolled: Rolled, connect: Connect) -> None:
    load = Load(connect(rolled.url), fresh_topic())
    rolled.roll()
    load.finish()
    load.assert_exact()
    assert load.acknowledged == list(range(load.sent))
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))


def test_clients_of_several_workers_move(
    brokers: Brokers, gateway: StartGateway, tapped: Tapped, connect: Connect, tmp_path: Path
) -> None:
    """All workers of a gateway drain at once, and none moves its clients to another draining
    worker."""
    with in_front_of(brokers, gateway, tapped, tmp_path, workers=2) as them:
        loads = [Load(connect(them.url), fresh_topic()) for _ in range(2)]
        them.roll()
        for load in loads:
            load.finish()
    for load in loads:
        load.assert_exact()
        assert load.acknowledged == list(range(load.sent))
    assert them.ended() <= {"client_closed", "broker_closed", "drained"}


@REAL
@pytest.mark.real
def test_clients_move_when_their_connections_are_old(
    brokers: Brokers, gateway: StartGateway, tapped: Tapped, connect: Connect, tmp_path: Path
) -> None:
    """Twice: the second name that a client is given must not be the one it came by."""
    age = 10
    with in_front_of(brokers, gateway, tapped, tmp_path, age=f"{age}s") as them:
        load = Load(connect(them.url), fresh_topic())

        def moves() -> int:
            """Return the most moves of one client: each connection lasts until its age."""
            return sum(seconds >= age * (1 - AGE_SPREAD) for _, seconds in them.ends())

        wait_until(lambda: moves() >= 4, 6 * age)
        load.finish()
    load.assert_exact()
    assert load.acknowledged == list(range(load.sent))
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))
    assert {reason for reason, _ in them.ends()} <= {"client_closed", "broker_closed", "drained"}


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize(
    "kind",
    [client_library.ConsumerType.Shared, client_library.ConsumerType.KeyShared],
    ids=["shared", "key_shared"],
)
def test_consumers_of_a_shared_subscription_move(
    rolled: Rolled, connect: Connect, kind: Any, batched: bool
) -> None:
    options = {"batching_enabled": batched, "batching_max_publish_delay_ms": 5}
    load = Load(connect(rolled.url), fresh_topic(), consumers=3, kind=kind, **options)
    rolled.roll()
    load.finish()
    load.assert_exact()


@pytest.mark.real
def test_a_deduplicated_producer_moves(
    start_broker: StartBroker,
    gateway: StartGateway,
    tapped: Tapped,
    connect: Connect,
    tmp_path: Path,
) -> None:
    """The broker keeps the producer's sequence ids by its name, wherever it reconnects."""
    broker = start_broker("dedup", extra={"brokerDeduplicationEnabled": "true"})
    with in_front_of(broker, gateway, tapped, tmp_path) as them:
        load = Load(connect(them.url), fresh_topic(), producer_name="counted")
        them.roll()
        load.finish()
    load.assert_exact()
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))


@dataclass(frozen=True)
class Behind:
    """Gateways as the brokers of an outer gateway."""

    service_url: str
    traces: tuple[str, ...]


@pytest.mark.parametrize("which", ["outer", "inner"])
def test_chained_gateways_are_rolled(
    rolled: Rolled,
    brokers: Brokers,
    gateway: StartGateway,
    tapped: Tapped,
    connect: Connect,
    tmp_path: Path,
    which: str,
) -> None:
    """`rolled` are the inner gateways here; the others are in front of them."""
    inner = f":{rolled.url.rpartition(':')[2]}"
    behind = Behind(rolled.url, (*brokers.traces, inner))
    with in_front_of(behind, gateway, tapped, tmp_path, chained=True) as outer:
        load = Load(connect(outer.url), fresh_topic())
        (outer if which == "outer" else rolled).roll()
        load.finish()
    load.assert_exact()
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))
    ended = outer.ended() | rolled.ended()
    assert ended <= {"client_closed", "broker_closed", "drained"}


# -- Go and Java -------------------------------------------------------------------------------


@REAL
@pytest.mark.real
@pytest.mark.parametrize(
    ("partitions", "batch"),
    [(0, False), (0, True), (4, False), (4, True)],
    ids=["topic", "topic-batched", "partitions", "partitions-batched"],
)
def test_go_and_java_clients_move(
    program: Program, rolled: Rolled, brokers: Brokers, logs: Path, partitions: int, batch: bool
) -> None:
    topic = fresh_topic("d")
    if partitions:
        brokers.create_partitioned(topic, partitions)
    with (
        program.consuming(rolled.url, topic, "s", 0, logs / "consumer.log") as consumer,
        program.producing(
            rolled.url,
            topic,
            0,
            logs / "producer.log",
            interval_ms=INTERVAL_MS,
            key=True,
            batch=batch,
        ) as producer,
    ):
        consumer.await_ready()
        producer.await_ready()
        rolled.roll()
        producer.tell_to_stop()
        sent = producer.sent()
        names = [f"{topic}-partition-{it}" for it in range(partitions)] or [topic]
        wait_until(lambda: all(brokers.backlog(name, "s") == 0 for name in names))
        consumer.tell_to_stop()
        received = consumer.received()
    print(
        f"{len(sent.acknowledged)} sent, longest {sent.longest_send_ms / 1000:.3f} s, "
        f"{received.redelivered} delivered again"
    )
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == received.received == set(range(len(sent.acknowledged)))
    assert (received.stored_twice, received.out_of_order) == (0, 0)


@pytest.mark.real
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batched"])
def test_transactions_continue_while_their_clients_move(
    program: Program,
    transactional: Standalone,
    gateway: StartGateway,
    tapped: Tapped,
    tmp_path: Path,
    logs: Path,
    batch: bool,
) -> None:
    with in_front_of(transactional, gateway, tapped, tmp_path) as them:
        taken = take_over(
            program,
            transactional,
            them.url,
            logs,
            batch=batch,
            interval_ms=TRANSACTED_INTERVAL_MS,
            meanwhile=lambda _source, _target: them.roll(),
        )
    taken.assert_exact()
