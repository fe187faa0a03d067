"""The control interface of a running sandbox, and the clients that it lists."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.sandbox.peer import Peer, address_of
from tests.support import frames
from tests.support.sandbox import Sandbox

PATIENCE = 60


def got(url: str, method: str = "GET") -> tuple[int, str]:
    """Return the response's status and body."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def owner_of(sandbox: Sandbox, topic: str) -> int:
    """Return the number of the broker that owns a topic."""
    owner = sandbox.topics()[topic]["owner"].removeprefix("pulsar://")
    return [address_of(sandbox, number) for number in (0, 1)].index(owner)


def test_help_lists_brokers_and_requests(broken: Sandbox) -> None:
    status, text = got(broken.control_url + "/")
    assert status == 200
    assert "in memory" in text
    assert f"curl -X POST '{broken.control_url}/move?" in text


def test_invalid_requests_are_rejected(broken: Sandbox) -> None:
    assert got(f"{broken.control_url}/move?topic=nowhere", "POST")[0] == 400
    assert got(f"{broken.control_url}/move?topic=nowhere")[0] == 405
    assert got(f"{broken.control_url}/nowhere")[0] == 404


def test_a_move_sends_clients_to_the_other_broker(broken: Sandbox) -> None:
    broken.create_partitioned("moves", 1)
    topic = "persistent://public/default/moves-partition-0"
    before = owner_of(broken, topic)
    with Peer.of(broken, before) as producer:
        producer.connect()
        producer.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
        status, text = got(f"{broken.control_url}/move?topic=moves&assigned=true", "POST")
        there = f"pulsar://{address_of(broken, 1 - before)}"
        assert (status, json.loads(text)["owners"]) == (200, {topic: there})
        assert producer.read().assignedBrokerServiceUrl == there
    assert owner_of(broken, topic) == 1 - before


def test_a_large_message_arrives(broken: Sandbox) -> None:
    broken.create_partitioned("large", 1)
    topic = "persistent://public/default/large-partition-0"
    size = 5 * 1024 * 1024
    with Peer.of(broken, owner_of(broken, topic)) as both:
        both.connect()
        both.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
        about = {"topic": topic, "subscription": "s", "subType": 0}
        both.ask(Kind.SUBSCRIBE, consumer_id=1, request_id=2, **about)
        both.say(Kind.FLOW, consumer_id=1, messagePermits=10)
        both.send(frames.send(1, 0, bytes(size)))
        assert both.size() > size
    assert broken.topics()[topic]["bytes"] > size


def test_a_slow_reader_receives_every_message(broken: Sandbox) -> None:
    """The messages exceed both the sockets' buffers and the sandbox's unsent bytes."""
    broken.create_partitioned("late", 1)
    topic = "persistent://public/default/late-partition-0"
    owner, count, size = owner_of(broken, topic), 80, 256 * 1024
    with Peer.of(broken, owner) as producer, Peer.of(broken, owner) as consumer:
        consumer.connect()
        about = {"topic": topic, "subscription": "s", "subType": 0}
        consumer.ask(Kind.SUBSCRIBE, consumer_id=1, request_id=2, **about)
        consumer.say(Kind.FLOW, consumer_id=1, messagePermits=2 * count)
        producer.connect()
        producer.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
        for sequence in range(count):
            producer.send(frames.send(1, sequence, bytes(size)))
            assert producer.read().sequence_id == sequence
        (shown,) = broken.topics()[topic]["consumers"]
        assert shown["unacknowledged"] < count
        found = [consumer.read().message_id.entryId for _ in range(count)]
    assert found == list(range(count))


# -- clients -------------------------------------------------------------------------------------


def token(secret: Path, role: str) -> dict[str, Any]:
    key = OctKey.import_key(secret.read_bytes())
    claims = {"sub": role, "exp": int(time.time()) + 600}
    text = jwt.encode({"alg": "HS256"}, claims, key)
    return {"auth_method_name": "token", "auth_data": text.encode()}


def test_topics_show_the_original_principal_of_a_proxy(guarded: Sandbox, secret: Path) -> None:
    guarded.create_partitioned("guarded", 1)
    topic = "persistent://public/default/guarded-partition-0"
    with Peer.of(guarded, owner_of(guarded, topic)) as proxy:
        proxy.connect(original_principal="alice", **token(secret, "proxy"))
        proxy.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1, producer_name="p")
        (shown,) = guarded.topics()[topic]["producers"]
    assert shown == {"name": "p", "principal": "proxy", "original_principal": "alice"}


@pytest.mark.parametrize(
    ("role", "original", "error"),
    [
        ("", "", ServerError.AuthenticationError),
        ("proxy", "", ServerError.AuthorizationError),
        ("alice", "bob", ServerError.AuthorizationError),
    ],
)
def test_an_unauthorized_client_gets_an_error_and_a_close(
    guarded: Sandbox, secret: Path, role: str, original: str, error: int
) -> None:
    fields = {"original_principal": original} if original else {}
    with Peer.of(guarded, 0) as nobody:
        answer = nobody.connect(**fields, **(token(secret, role) if role else {}))
        assert answer.error == error
        assert nobody.is_closed()
