"""Many connections again and again: neither memory nor descriptors may grow."""

from __future__ import annotations

import random

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import send, simple

from .peers import CONNECT, Broker, Client
from .process import Gateway, until

MIB = 1 << 20

AT_ONCE = 100
ROUNDS = 8
GROWTH = 12 * MIB
"""Generous: allocators and the collector vary by some megabytes. A leaked pair costs 5 KB or more,
and a test here opens thousands."""


def knock(gateway: Gateway) -> None:
    """Connect and close, or reset."""
    with gateway.expecting("passing", EndReason.CLIENT_CLOSED, number=2 * AT_ONCE):
        for client in [Client(gateway.ports["passing"]) for _ in range(AT_ONCE)]:
            client.close()
        for client in [Client(gateway.ports["passing"]) for _ in range(AT_ONCE)]:
            client.reset()


def babble(gateway: Gateway) -> None:
    """Send garbage, and reset without reading."""
    noise = random.Random(8)
    reasons = EndReason.FRAME_TOO_LARGE, EndReason.CLIENT_CLOSED
    with gateway.expecting("passing", *reasons, number=AT_ONCE):
        clients = [Client(gateway.ports["passing"]) for _ in range(AT_ONCE)]
        for client in clients:
            client.say(b"\xff" + noise.randbytes(200))
        for client in clients:
            client.reset()


def open_and_leave(gateway: Gateway) -> None:
    """Open a pair and a producer, and leave in each of the possible ways."""
    reasons = EndReason.CLIENT_CLOSED, EndReason.CLIENT_LOST, EndReason.CLIENT_VIOLATION
    with gateway.expecting("passing", *reasons, number=AT_ONCE):
        clients = [Client(gateway.ports["passing"]).open() for _ in range(AT_ONCE)]
        for number, client in enumerate(clients):
            client.produce()
            client.say(send(1, number) + send(1, number)[: number % 30])
        for number, client in enumerate(clients):
            match number % 3:
                case 0:
                    client.close()
                case 1:
                    client.reset()
                case _:
                    client.say(bytes(200))
                    client.hear_all()
                    client.close()


def leave_while_opening(gateway: Gateway) -> None:
    """Send CONNECT, and leave before the response."""
    with gateway.expecting("passing", *EndReason, number=AT_ONCE):
        clients = [Client(gateway.ports["passing"]) for _ in range(AT_ONCE)]
        for client in clients:
            client.say(CONNECT)
        for client in clients:
            client.reset()


STORMS = [knock, babble, open_and_leave, leave_while_opening]


@pytest.mark.parametrize("storm", STORMS)
def test_storms_leak_nothing(gateway: Gateway, broker: Broker, storm: object) -> None:
    assert callable(storm)
    for _ in range(3):
        storm(gateway)
    memory, descriptors = settled(gateway, broker)
    for _ in range(ROUNDS):
        storm(gateway)
    grown, left = settled(gateway, broker)
    assert grown - memory < GROWTH
    assert left <= descriptors + 1, "descriptors leak"  # allow a probe of the broker


def settled(gateway: Gateway, broker: Broker) -> tuple[int, int]:
    """Return memory and descriptors once lingering connections are gone."""
    until(lambda: broker.connections <= 1)
    lowest = gateway.descriptors

    def still() -> bool:
        nonlocal lowest
        before, lowest = lowest, min(lowest, gateway.descriptors)
        return before == lowest

    until(lambda: all(still() for _ in range(20)))
    return gateway.memory, lowest


def test_memory_does_not_grow_with_frames(gateway: Gateway) -> None:
    """Open and close producers and consumers again and again on one connection."""
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]).open() as client,
    ):
        cycle(client, 200)
        memory = gateway.memory
        cycle(client, 1500)
        assert gateway.memory - memory < GROWTH


def cycle(client: Client, times: int) -> None:
    """Open and close a producer and a consumer."""
    topic = "persistent://public/default/cycle"
    for n in range(times):
        requests = range(4 * n, 4 * n + 4)
        frames = [
            simple(Kind.PRODUCER, topic=topic, producer_id=n, request_id=requests[0]),
            simple(
                Kind.SUBSCRIBE,
                topic=topic,
                subscription="s",
                consumer_id=n,
                request_id=requests[1],
            ),
            simple(Kind.CLOSE_PRODUCER, producer_id=n, request_id=requests[2]),
            simple(Kind.CLOSE_CONSUMER, consumer_id=n, request_id=requests[3]),
        ]
        client.say(b"".join(frames))
        for _ in frames:
            client.hear()


def test_idle_pairs_end(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """This includes pairs within a frame, and pairs that still owe a response."""
    gateway = Gateway([broker], tmp_path_factory.mktemp("idle"), {"idle": "1s"})
    try:
        with gateway.expecting("passing", EndReason.IDLE, number=3):
            clients = [Client(gateway.ports["passing"]).open() for _ in range(3)]
            clients[1].say(send(1, 1)[:20])
            clients[2].say(CONNECT[:6])
            for client in clients:
                assert client.hear_all() == []
                client.close()
    finally:
        gateway.stop()
