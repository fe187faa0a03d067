"""Faults on request, as a client meets them."""

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


def test_a_frozen_broker_takes_connections_and_says_nothing(broken: Sandbox) -> None:
    broken.fault(0, "freeze", LONG)
    with Peer.of(broken, 0) as late:
        late.say(Kind.CONNECT, client_version="test")
        assert late.is_silent()
        broken.fault(0, "freeze", 0)
        assert "sandbox" in late.read().server_version


def test_a_fault_is_of_one_broker(broken: Sandbox) -> None:
    broken.fault(0, "freeze", LONG)
    with Peer.of(broken, 1) as other:
        assert "sandbox" in other.connect().server_version
    broken.fault(0, "freeze", 0)


def test_a_delayed_answer_comes_in_its_turn(broken: Sandbox, peer: Peer) -> None:
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


def test_a_producer_is_gone_with_its_connection(broken: Sandbox, peer: Peer) -> None:
    topic = _topic_of(broken, 0)
    fields = {"topic": topic, "producer_id": 1, "request_id": 1, "producer_name": "p"}
    assert peer.ask(Kind.PRODUCER, **fields).producer_name == "p"
    broken.fault(0, "cut")
    assert peer.is_closed()
    with Peer.of(broken, 0) as again:
        again.connect()
        assert again.ask(Kind.PRODUCER, **fields).producer_name == "p"


def test_while_it_refuses_who_comes_is_sent_away(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "refuse", LONG)
    with Peer.of(broken, 0) as new:
        assert new.is_closed()
    answer = peer.ask(Kind.LOOKUP, topic="t", request_id=7)
    assert answer.response == CommandLookupTopicResponse.Failed
    assert answer.error == ServerError.ServiceNotReady
    broken.fault(0, "refuse", 0)
    assert not peer.ask(Kind.LOOKUP, topic="t", request_id=8).HasField("error")


def test_a_broker_can_lie_once_about_a_size(broken: Sandbox, peer: Peer) -> None:
    broken.fault(0, "lie")
    peer.say(Kind.PING)
    assert peer.size() > 1 << 30
    with Peer.of(broken, 0) as later:
        assert "sandbox" in later.connect().server_version


@pytest.mark.parametrize("size", [0x7FFFFFFF, 6 * 1024 * 1024, 3, 0])
def test_a_client_that_lies_about_a_size_is_cut_off(peer: Peer, size: int) -> None:
    peer.send(size.to_bytes(4, "big") + bytes(60))
    assert peer.is_closed()


def test_a_client_that_breaks_the_protocol_is_cut_off_alone(broken: Sandbox, peer: Peer) -> None:
    with Peer.of(broken, 0) as other:
        other.connect()
        other.send(b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff")
        assert other.is_closed()
    assert peer.ask(Kind.PING).DESCRIPTOR.name == "CommandPong"


def _topic_of(sandbox: Sandbox, broker: int) -> str:
    """A topic that this broker has."""
    url = sandbox.service_url.removeprefix("pulsar://").split(",")[broker]
    sandbox.create_partitioned("of-a-broker", 2)
    found = sandbox.topics().items()
    return next(name for name, about in found if about["owner"].endswith(url))
