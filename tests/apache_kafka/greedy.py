"""Clients of each library that send to a topic, or receive from it, as much as they get, until they
are told to stop: one partition, messages of `SIZE` bytes, `BATCH` in each batch.

Small batches, since a limit lets the one pass whole that uses it up.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiokafka
import confluent_kafka

from tests.real.brokers.jars import java

NAMES = ("librdkafka", "aiokafka", "java")
SENT, READ = "sent", "read"

SIZE, BATCH = 100, 10
BATCH_BYTES = BATCH * (SIZE + 10) + 61
"""Bytes of a full batch at most: each message has some bytes of its own, and the batch a head."""

PAYLOAD = bytes(SIZE)
ENOUGH = 10_000_000
"""Messages: more than pass while anybody measures."""

PATIENCE_MS = 60_000
JAVA = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
TOOLS = "org.apache.kafka.tools"


@contextmanager
def _beside(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run something in a thread until the context ends."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# -- senders -------------------------------------------------------------------------------------


def batches(address: str, topic: str, **others: str | int) -> confluent_kafka.Producer:
    """Return a producer of librdkafka with small batches."""
    return confluent_kafka.Producer(
        {"bootstrap.servers": address, "batch.num.messages": BATCH, "linger.ms": 5, **others}
    )


def _librdkafka_sends(address: str, topic: str, stop: threading.Event) -> None:
    producer = batches(address, topic, **{"queue.buffering.max.messages": 100 * BATCH})
    while not stop.is_set():
        try:
            producer.produce(topic, PAYLOAD)
        except BufferError:  # its queue is full
            producer.poll(0.05)
    producer.purge()
    producer.flush()


async def _aio_sends(address: str, topic: str, stop: threading.Event) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, max_batch_size=BATCH_BYTES)
    await producer.start()
    while not stop.is_set():
        await producer.send(topic, PAYLOAD)
    await producer.stop()


# -- receivers -----------------------------------------------------------------------------------


def _librdkafka_receives(address: str, topic: str, stop: threading.Event) -> None:
    where = {"bootstrap.servers": address, "group.id": uuid.uuid4().hex}
    small = {"max.partition.fetch.bytes": 2 * BATCH_BYTES, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(where | small)
    consumer.subscribe([topic])
    while not stop.is_set():
        consumer.consume(BATCH, 0.1)
    consumer.close()


async def _aio_receives(address: str, topic: str, stop: threading.Event) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", group_id=uuid.uuid4().hex,
        max_partition_fetch_bytes=2 * BATCH_BYTES,
    )  # fmt: skip
    async with consumer:
        while not stop.is_set():
            await consumer.getmany(timeout_ms=100)


# -- all -----------------------------------------------------------------------------------------


class Clients:
    """Starts clients. `jars`: with Kafka's own tools; `folder`: takes what these say."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars
        self._folder = folder

    @contextmanager
    def at_work(self, kind: str, name: str, address: str, topic: str) -> Iterator[None]:
        """Have a client, one of `NAMES`, send or receive: `SENT` or `READ`."""
        ways = {SENT: self._sending, READ: self._receiving}
        with ways[kind](name, address, topic):
            yield

    @contextmanager
    def _sending(self, name: str, address: str, topic: str) -> Iterator[None]:
        load = ["--topic", topic, "--record-size", str(SIZE), "--throughput", "-1"]
        load += ["--num-records", str(ENOUGH), "--bootstrap-server", address]
        small = [f"batch.size={BATCH_BYTES}", f"buffer.memory={100 * BATCH_BYTES}"]
        load += ["--command-property", *small]
        ways = {
            "librdkafka": lambda: _beside(lambda stop: _librdkafka_sends(address, topic, stop)),
            "aiokafka": lambda: _beside(lambda stop: asyncio.run(_aio_sends(address, topic, stop))),
            "java": lambda: self._running(topic, "ProducerPerformance", load),
        }
        with ways[name]():
            yield

    @contextmanager
    def _receiving(self, name: str, address: str, topic: str) -> Iterator[None]:
        load = ["--topic", topic, "--num-records", str(ENOUGH), "--bootstrap-server", address]
        load += ["--fetch-size", str(2 * BATCH_BYTES), "--timeout", str(PATIENCE_MS)]
        ways = {
            "librdkafka": lambda: _beside(lambda stop: _librdkafka_receives(address, topic, stop)),
            "aiokafka": lambda: _beside(
                lambda stop: asyncio.run(_aio_receives(address, topic, stop))
            ),
            "java": lambda: self._running(topic, "ConsumerPerformance", load),
        }
        with ways[name]():
            yield

    @contextmanager
    def _running(self, topic: str, tool: str, arguments: Sequence[str]) -> Iterator[None]:
        command = [java(), *JAVA, "-cp", f"{self._jars}/*", f"{TOOLS}.{tool}", *arguments]
        with ExitStack() as stack:
            log = stack.enter_context((self._folder / f"{topic}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.kill)
            yield
