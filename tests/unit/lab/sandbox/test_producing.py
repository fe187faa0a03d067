"""Producers: names, messages, closes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.support import frames
from tests.unit.lab.sandbox.playbook import NOW, Client, kinds_of, send


def test_a_producer_without_a_name_is_given_one(client: Client) -> None:
    names = {client.produce(id).producer_name for id in (1, 2)}
    assert len(names) == 2
    assert "" not in names


def test_a_producer_is_ready_at_once_without_a_last_sequence_id(client: Client) -> None:
    answer = client.produce(producer_name="p")
    assert (answer.producer_name, answer.producer_ready) == ("p", True)
    assert (answer.last_sequence_id, answer.request_id) == (-1, 101)


def test_a_name_in_use_is_busy(client: Client, other: Client) -> None:
    client.produce(producer_name="p")
    assert other.produce(producer_name="p").error == ServerError.ProducerBusy


def test_closing_a_producer_frees_its_name(client: Client, other: Client) -> None:
    client.produce(producer_name="p")
    assert kinds_of([client.ask(Kind.CLOSE_PRODUCER, producer_id=1, request_id=9)]) == ["Success"]
    assert other.produce(producer_name="p").producer_name == "p"


def test_losing_the_connection_frees_the_name(client: Client, other: Client) -> None:
    client.produce(producer_name="p")
    client.session.close()
    assert other.produce(producer_name="p").producer_name == "p"


def test_a_reconnecting_producer_replaces_its_predecessor(client: Client, other: Client) -> None:
    name = client.produce(epoch=0).producer_name
    again = {"producer_name": name, "user_provided_producer_name": False}
    assert other.produce(epoch=0, **again).error == ServerError.ProducerBusy
    assert other.produce(epoch=1, **again).producer_name == name
    assert kinds_of(client.read()) == ["CloseProducer"]
    other.send(b"a")


def test_reopening_an_id_replaces_the_producer(client: Client) -> None:
    client.produce(producer_name="p")
    assert client.produce(producer_name="p").producer_name == "p"


@pytest.mark.parametrize("topic", ["", "ftp://a/b/c", "persistent://a/b"])
def test_invalid_topic_names_are_refused(client: Client, topic: str) -> None:
    answers = [client.produce(topic=topic), *client.subscribe(topic=topic, permits=0)]
    assert {answer.error for answer in answers} == {ServerError.InvalidTopicName}


@pytest.mark.parametrize("fields", [{"producer_access_mode": 1}, {"txn_enabled": True}])
def test_unsupported_modes_are_refused(client: Client, fields: dict[str, Any]) -> None:
    assert client.produce(**fields).error == ServerError.NotAllowedError


def test_messages_get_consecutive_positions(client: Client) -> None:
    client.produce()
    (ledger, first), second, third = client.send(b"a", b"b", b"c")
    assert (second, third) == ((ledger, first + 1), (ledger, first + 2))


def test_a_receipt_names_the_message(client: Client) -> None:
    client.produce(id=3)
    fields = {"producer_id": 3, "sequence_id": 7, "highest_sequence_id": 9}
    whole = frames.send(3, 7, num_messages=3, highest_sequence_id=9)
    client.session.receive(whole, NOW)
    (send_receipt,) = client.read()
    assert {name: getattr(send_receipt, name) for name in fields} == fields


def test_a_wrong_checksum_is_refused(client: Client) -> None:
    client.produce()
    good = frames.tail(frames.metadata_of(0), b"payload")
    client.session.receive(send(1, 0, good[:-1] + b"!"), NOW)
    (answer,) = client.read()
    assert (answer.sequence_id, answer.error) == (0, ServerError.ChecksumError)


def test_a_message_without_a_checksum_is_kept_as_it_came(client: Client, other: Client) -> None:
    client.produce()
    tail = frames.tail(frames.metadata_of(0), b"payload", checksum=False)
    client.session.receive(send(1, 0, tail), NOW)
    assert kinds_of(client.read()) == ["SendReceipt"]
    other.subscribe(permits=0)
    other.flow(1)
    (message,) = other.take()
    assert message.endswith(tail)


@pytest.mark.parametrize("length", [0xFFFF, 1 << 31])
def test_metadata_longer_than_its_frame_is_a_violation(client: Client, length: int) -> None:
    client.produce()
    tail = frames.tail(b"meta", length=length)
    with pytest.raises(PeerError, match="metadata of a SEND is truncated"):
        client.session.receive(send(1, 0, tail), NOW)


def test_undecodable_metadata_is_a_violation(client: Client) -> None:
    client.produce()
    with pytest.raises(PeerError, match="cannot be decoded"):
        client.session.receive(send(1, 0, frames.tail(b"\xff\xff\xff")), NOW)


def test_a_send_without_content_is_a_violation(client: Client) -> None:
    client.produce()
    with pytest.raises(PeerError, match="metadata of a SEND is truncated"):
        client.session.receive(send(1, 0, b""), NOW)


def test_a_send_of_an_unknown_producer_is_a_violation(client: Client) -> None:
    with pytest.raises(PeerError, match="producer 5"):
        client.session.receive(frames.send(5, 0), NOW)


def test_sends_in_flight_when_the_broker_closes_are_ignored(
    client: Client, cluster: SandboxCluster
) -> None:
    client.produce()
    (topic,) = cluster.topics.values()
    cluster.move(topic.name, assigned=False)
    client.read()
    client.session.receive(frames.send(1, 0), NOW)
    assert (client.take(), len(topic.log)) == ([], 0)
