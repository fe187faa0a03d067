"""The Python client for tests: it logs little and never waits for ever."""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import pulsar  # type: ignore[import-untyped, unused-ignore]  # ships no types

# The client has no types of its own: these names only document the meaning.
Client: TypeAlias = Any
Consumer: TypeAlias = Any
Producer: TypeAlias = Any
Message: TypeAlias = Any
Token: TypeAlias = str | Callable[[], str] | None

OPERATION_SECONDS = 10
# How long a message may take on a busy machine. Tests end as soon as it arrives.
RECEIVE_MS = 60_000
# How long to listen before concluding that nothing arrives.
SILENCE_MS = 500
EARLIEST = pulsar.InitialPosition.Earliest


def open_client(
    url: str, token: Token = None, patience: int = OPERATION_SECONDS, **options: Any
) -> Client:
    """Return a client. A callable `token` is asked for a fresh token whenever the client needs one.
    `options`: others of the library, such as another authentication.

    Its warnings go to standard output, which pytest shows for failed tests. (Its own file logger
    writes too late for that.)
    """
    if token is not None:
        options["authentication"] = pulsar.AuthenticationToken(token)
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    return pulsar.Client(url, logger=logger, operation_timeout_seconds=patience, **options)


def close_client(client: Client) -> None:
    """Close a client that a test may have closed before."""
    with suppress(pulsar.AlreadyClosed):
        client.close()


def fresh_topic(kind: str = "t", namespace: str = "public/default") -> str:
    """Return the full name of a new topic."""
    return f"persistent://{namespace}/{kind}-{uuid.uuid4().hex[:12]}"


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Return payloads that can be recognised."""
    return [b"message %d" % number for number in range(start, start + count)]


def send_all(producer: Producer, payloads: list[bytes], **options: Any) -> None:
    """Send asynchronously, then wait for every receipt."""
    results: list[Any] = []
    for payload in payloads:
        producer.send_async(payload, lambda result, _id: results.append(result), **options)
    producer.flush()
    wait_until(lambda: len(results) == len(payloads))
    assert set(results) == {pulsar.Result.Ok}


def receive(consumer: Consumer, count: int) -> list[Message]:
    """Return the next `count` messages, acknowledged."""
    messages = []
    for _ in range(count):
        messages.append(consumer.receive(RECEIVE_MS))
        consumer.acknowledge(messages[-1])
    return messages


def payloads(messages: list[Message]) -> list[bytes]:
    return [message.data() for message in messages]


def receive_until_silent(consumer: Consumer, silence_ms: int = SILENCE_MS) -> list[Message]:
    """Return all messages, acknowledged, that arrive until none has arrived for a while."""
    messages = []
    try:
        while True:
            messages.append(consumer.receive(silence_ms))
            consumer.acknowledge(messages[-1])
    except pulsar.Timeout:
        return messages


def receive_all_of(consumer: Consumer, expected: list[bytes]) -> list[bytes]:
    """Receive, repeats allowed, until every expected payload has arrived; fail at any other
    payload, or when no more arrive. Return each once, in the order of first arrival."""
    known, arrived = set(expected), dict[bytes, None]()
    while len(arrived) < len(known):
        message = consumer.receive(RECEIVE_MS)
        consumer.acknowledge(message)
        assert message.data() in known
        arrived[message.data()] = None
    return list(arrived)


def assert_silent(consumer: Consumer) -> None:
    assert payloads(receive_until_silent(consumer)) == []


def read(reader: Any, count: int) -> list[bytes]:
    return [reader.read_next(RECEIVE_MS).data() for _ in range(count)]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Fail if `condition` does not become true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition is still false after {seconds} s"
        time.sleep(0.02)


def assert_works(client: Client, topic: str) -> None:
    """Assert that the client may produce and consume."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(5):
        producer.send(payload)
    assert payloads(receive(consumer, 5)) == numbered(5)
