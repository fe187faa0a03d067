"""Faults on request, as a client sees them."""

from __future__ import annotations

import pytest

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandLookupTopicResponse, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.sandbox.peer import Peer
from tests.support.sandbox import Sandbox

LONG = 3600


def test_a_frozen_broker_answers_when_it_thaws(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "freeze", LONG)
    peer.say(Kind.PING)
    assert peer.is_silent()
    broken.fault(0, "freeze", 0)
    assert peer.read().DESCRIPTOR.name == "CommandPong"


def test_a_frozen_broker_accepts_connections_and_sends_nothing(broken: Sandbox) -> None:
    broken.fault(0, "freeze", LONG)
    with Peer.of(broken, 0) as late:
        late.say(Kind.CONNECT, client_version="test")
        assert late.is_silent()
        broken.fault(0, "freeze", 0)
        assert "sandbox" in late.read().server_version


def test_a_fault_affects_one_broker(broken: Sandbox) -> None:
    broken.fault(0, "freeze", LONG)
    with Peer.of(broken, 1) as other:
        assert "sandbox" in other.connect().server_version
    broken.fault(0, "freeze", 0)


def test_delayed_answers_keep_their_order(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "delay", LONG)
    for request in (1, 2):
        peer.say(Kind.LOOKUP, topic="t", request_id=request)
    assert peer.is_silent()
    peer.say(Kind.LOOKUP, topic="t", request_id=3)
    broken.fault(0, "delay", 0)
    assert [peer.read().request_id for _ in range(3)] == [1, 2, 3]


def test_all_connections_can_be_cut(broken: Sandbox, peer: Peer) -> None:
    with Peer.of(broken, 0) as silent:
        broken.fault(0, "cut")
        assert peer.is_closed()
        assert silent.is_closed()
    with Peer.of(broken, 0) as new:
        assert "sandbox" in new.connect().server_version


def test_a_cut_connection_removes_its_producer(broken: Sandbox, peer: Peer) -> None:
    topic = _topic_of(broken, 0)
    fields = {"topic": topic, "producer_id": 1, "request_id": 1, "producer_name": "p"}
    assert peer.ask(Kind.PRODUCER, **fields).producer_name == "p"
    broken.fault(0, "cut")
    assert peer.is_closed()
    with Peer.of(broken, 0) as again:
        again.connect()
        assert again.ask(Kind.PRODUCER, **fields).producer_name == "p"


def test_a_refusing_broker_closes_new_connections(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "refuse", LONG)
    with Peer.of(broken, 0) as new:
        assert new.is_closed()
    answer = peer.ask(Kind.LOOKUP, topic="t", request_id=7)
    assert answer.response == CommandLookupTopicResponse.Failed
    assert answer.error == ServerError.ServiceNotReady
    broken.fault(0, "refuse", 0)
    assert not peer.ask(Kind.LOOKUP, topic="t", request_id=8).HasField("error")


def test_a_broker_falsifies_one_frame_size(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "lie")
    peer.say(Kind.PING)
    assert peer.size() > 1 << 30
    with Peer.of(broken, 0) as later:
        assert "sandbox" in later.connect().server_version


@pytest.mark.parametrize("size", [0x7FFFFFFF, 6 * 1024 * 1024, 3, 0])
def test_a_client_with_a_false_frame_size_is_closed(peer: Peer, size: int) -> None:
    peer.send(size.to_bytes(4, "big") + bytes(60))
    assert peer.is_closed()


def test_a_protocol_violation_closes_that_connection_alone(broken: Sandbox, peer: Peer) -> None:
    with Peer.of(broken, 0) as other:
        other.connect()
        other.send(b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff")
        assert other.is_closed()
    assert peer.ask(Kind.PING).DESCRIPTOR.name == "CommandPong"


def _topic_of(sandbox: Sandbox, broker: int) -> str:
    """Return a topic that this broker owns."""
    url = sandbox.service_url.removeprefix("pulsar://").split(",")[broker]
    sandbox.create_partitioned("of-a-broker", 2)
    found = sandbox.topics().items()
    return next(name for name, about in found if about["owner"].endswith(url))
