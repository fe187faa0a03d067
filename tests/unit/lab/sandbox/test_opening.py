"""Opening a connection, and commands out of place."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.support import frames
from tests.unit.lab.sandbox.playbook import NOW, Client, kinds_of


def test_connected_names_the_sandbox(cluster: SandboxCluster) -> None:
    client = Client(cluster, connect=False)
    answer = client.ask(Kind.CONNECT, client_version="test", protocol_version=19)
    assert "sandbox" in answer.server_version
    assert (answer.protocol_version, answer.max_message_size) == (19, 5 * 1024 * 1024)


def test_watched_topic_lists_are_not_advertised(cluster: SandboxCluster) -> None:
    client = Client(cluster, connect=False)
    flags = client.ask(Kind.CONNECT, client_version="test").feature_flags
    assert not flags.supports_topic_watchers
    assert flags.supports_get_partitioned_metadata_without_auto_creation


def test_proxy_to_broker_url_is_ignored(cluster: SandboxCluster) -> None:
    client = Client(cluster, connect=False)
    fields = {"client_version": "test", "proxy_to_broker_url": "somewhere:6650"}
    assert kinds_of([client.ask(Kind.CONNECT, **fields)]) == ["Connected"]


def test_a_ping_is_answered(client: Client) -> None:
    assert kinds_of([client.ask(Kind.PING)]) == ["Pong"]


@pytest.mark.parametrize("kind", [Kind.PONG, Kind.AUTH_RESPONSE])
def test_commands_without_answers_get_none(client: Client, kind: Kind) -> None:
    client.say(kind)
    assert client.take() == []


def test_commands_before_connect_are_violations(cluster: SandboxCluster) -> None:
    client = Client(cluster, connect=False)
    with pytest.raises(PeerError, match="PING is out of place"):
        client.say(Kind.PING)


def test_a_second_connect_is_a_violation(client: Client) -> None:
    with pytest.raises(PeerError, match="CONNECT is out of place"):
        client.say(Kind.CONNECT, client_version="test")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Kind.NEW_TXN, {}),
        (Kind.TC_CLIENT_CONNECT_REQUEST, {"tc_id": 0}),
        (Kind.CONSUMER_STATS, {"consumer_id": 1}),
        (Kind.WATCH_TOPIC_LIST, {"watcher_id": 1, "namespace": "a/b", "topics_pattern": ".*"}),
    ],
)
def test_an_unsupported_request_is_refused(
    client: Client, kind: Kind, fields: dict[str, object]
) -> None:
    answer = client.ask(kind, request_id=7, **fields)
    assert (answer.request_id, answer.error) == (7, ServerError.NotAllowedError)
    assert "the sandbox has no" in answer.message


def test_an_unknown_command_is_a_violation(client: Client) -> None:
    tomorrow = frames.frame(frames.command(120, b""))
    with pytest.raises(PeerError, match="command 120 is not known"):
        client.session.receive(tomorrow, NOW)


def test_a_name_that_is_not_utf_8_is_a_violation(client: Client) -> None:
    body = frames.data(1, b"\xff\xfe") + frames.number(2, 7)
    with pytest.raises(PeerError, match="not UTF-8"):
        client.session.receive(frames.frame(frames.command(Kind.LOOKUP, body)), NOW)
