"""What a client without a right tried at a closed edge before a real broker, and does not get.

The broker authenticates nobody, so that the gateway alone stands between mallory and the rest.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.playbooks.frames import frame, read

from .brokers.standalone import Standalone
from .brokers.tokens import Authority
from .fixtures import StartGateway
from .frames import Connection
from .gateways import Gateway, Plan, Plans

pytestmark = pytest.mark.gateway_only

RIGHTS = ["produce", "consume", "lookup"]
COMMIT, ABORT = 0, 1
COORDINATOR = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"


class Client:
    """A connection of a principal, on which commands are sent by their fields."""

    def __init__(self, gateway: Gateway, token: str) -> None:
        self._connection = Connection(gateway.untapped_url, patience=30)
        answer = self._connection.connect(token)
        assert answer is not None
        assert answer.kind == Kind.CONNECTED
        self._request = 0

    def __call__(self, kind: Kind, /, **fields: Any) -> BaseCommand:
        """Return the response to a request."""
        self._request += 1
        self._connection.send_frame(frame(kind, request_id=self._request, **fields))
        return self.next()

    def next(self) -> BaseCommand:
        """Return the next command but PING, which is answered."""
        while True:
            command = read(self._connection.receive_frame())
            if command.type != BaseCommand.PING:
                return command
            self._connection.send_frame(frame(Kind.PONG))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def namespace(transactional: Standalone) -> str:
    """Return a new namespace, of which mallory may use topics `pub…` alone."""
    namespace = f"public/{secrets.token_hex(6)}"
    transactional.admin.create_namespace(namespace)
    return namespace


@pytest.fixture
def closed(plans: Plans, namespace: str, tmp_path: Path) -> Plan:
    """Return the plan of an edge that shows its broker no credential."""
    rules = tmp_path / "rules.yaml"
    of_mallory = {"principal": "mallory", "topic": f"{namespace}/pub*"}
    allowing = [
        {"id": "alice", "match": {"principal": "alice"}, "allow": RIGHTS},
        {"id": "mallory", "match": of_mallory, "allow": RIGHTS},
    ]
    rules.write_text(yaml.safe_dump({"version": 1, "rules": allowing}))
    plan = replace(plans.of("verify"), credential=None, unknown="mask")
    return replace(plan, access="closed", rules=rules)


@pytest.fixture
def clients(
    transactional: Standalone, gateway: StartGateway, closed: Plan, authority: Authority
) -> Iterator[tuple[Client, Client]]:
    """Yield connections of alice and mallory through one edge."""
    with ExitStack() as opened:
        edge = gateway(transactional, closed)
        both = [Client(edge, authority.token(name)) for name in ("alice", "mallory")]
        for client in both:
            opened.callback(client.close)
        yield both[0], both[1]


def opens(client: Client, topic: str) -> None:
    """Have a client open a producer, which creates the topic."""
    client(Kind.LOOKUP, topic=topic)
    id = secrets.randbelow(1 << 31)
    assert client(Kind.PRODUCER, topic=topic, producer_id=id).type == BaseCommand.PRODUCER_SUCCESS


# -- lists --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [None, ".*/s.*", ".*/nothing.*", ".*/pub.*"])
def test_no_list_tells_whether_a_hidden_topic_matches(
    clients: tuple[Client, Client], namespace: str, pattern: str | None
) -> None:
    alice, mallory = clients
    for name in ("secret", "pub"):
        opens(alice, f"persistent://{namespace}/{name}")
    asked = {} if pattern is None else {"topics_pattern": pattern}
    answer = mallory(Kind.GET_TOPICS_OF_NAMESPACE, namespace=namespace, **asked)
    listed = answer.getTopicsOfNamespaceResponse
    assert not listed.HasField("topics_hash")
    assert listed.changed
    assert set(listed.topics) <= {f"persistent://{namespace}/pub"}


def test_no_watch_tells_of_a_hidden_topic(clients: tuple[Client, Client], namespace: str) -> None:
    """The first thing that the watch tells is the topic that may be seen."""
    alice, mallory = clients
    watch = {"namespace": namespace, "topics_pattern": f"persistent://{namespace}/.*"}
    answer = mallory(Kind.WATCH_TOPIC_LIST, watcher_id=1, **watch)
    assert answer.type == BaseCommand.WATCH_TOPIC_LIST_SUCCESS
    assert answer.watchTopicListSuccess.topics_hash == ""
    for name in ("secret", "pub"):
        opens(alice, f"persistent://{namespace}/{name}")
    update = mallory.next().watchTopicUpdate
    assert list(update.new_topics) == [f"persistent://{namespace}/pub"]
    assert update.topics_hash == ""


def test_no_pattern_of_a_list_occupies_a_thread_of_the_broker(
    clients: tuple[Client, Client], namespace: str
) -> None:
    """Brokers match it against the topic's name for longer than the world lasts."""
    alice, mallory = clients
    opens(alice, f"persistent://{namespace}/pub{'a' * 34}")
    asked = {"namespace": namespace, "topics_pattern": r".*pub((a+)+)b\2?"}
    assert (
        mallory(Kind.GET_TOPICS_OF_NAMESPACE, **asked).error.error == ServerError.InvalidTopicName
    )
    watch = mallory(Kind.WATCH_TOPIC_LIST, watcher_id=1, **asked)
    assert watch.error.error == ServerError.InvalidTopicName


def test_nobody_lists_namespaces_that_are_named_after_brokers(
    clients: tuple[Client, Client], transactional: Standalone
) -> None:
    own = f"pulsar/{transactional.host}:{transactional.web_port}"
    for client in clients:
        answer = client(Kind.GET_TOPICS_OF_NAMESPACE, namespace=own)
        assert answer.error.error == ServerError.AuthorizationError


# -- transactions -------------------------------------------------------------------------------


def test_nobody_uses_anothers_transaction(clients: tuple[Client, Client], namespace: str) -> None:
    alice, mallory = clients
    for client in clients:
        client(Kind.LOOKUP, topic=COORDINATOR)
        assert not client(Kind.TC_CLIENT_CONNECT_REQUEST, tc_id=0).tcClientConnectResponse.error
    began = alice(Kind.NEW_TXN, tc_id=0, txn_ttl_millis=600_000).newTxnResponse
    assert not began.HasField("error")
    id = {"txnid_most_bits": began.txnid_most_bits, "txnid_least_bits": began.txnid_least_bits}

    own = f"persistent://{namespace}/pub"
    opens(mallory, own)
    not_found = ServerError.TransactionNotFound
    for action in (COMMIT, ABORT):
        answer = mallory(Kind.END_TXN, txn_action=action, **id).endTxnResponse
        assert answer.error == not_found
    added = mallory(Kind.ADD_PARTITION_TO_TXN, partitions=[own], **id)
    assert added.addPartitionToTxnResponse.error == not_found
    reader = [{"topic": own, "subscription": "s"}]
    added = mallory(Kind.ADD_SUBSCRIPTION_TO_TXN, subscription=reader, **id)
    assert added.addSubscriptionToTxnResponse.error == not_found

    assert not alice(Kind.END_TXN, txn_action=COMMIT, **id).endTxnResponse.HasField("error")
