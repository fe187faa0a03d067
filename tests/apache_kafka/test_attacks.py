"""What a client without a right tried at a closed edge before a real broker, and does not get."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crc32c
import pytest
import yaml

from gateway.wire.contract import Credential
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.sasl.client import client as proving
from gateway.wire.kafka.walk import unsigned
from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.connection import Connection
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.secured import users_file
from tests.apache_kafka.working import create
from tests.playbooks_kafka.frames import ask, assignment, subscription, told
from tests.real.artifacts import Artifacts
from tests.real.clients import wait_until
from tests.real.gateways import HOST, Gateway

pytestmark = [pytest.mark.real, pytest.mark.tier("test")]

MECHANISM = "SCRAM-SHA-256"
ALICE, MALLORY = Credential("basic", b"alice:wonder"), Credential("basic", b"mallory:malice")
RIGHTS = ["produce", "consume", "lookup", "administer"]
OF_MALLORY = {"id": "mallory", "match": {"principal": "mallory", "topic": "pub*"}}
RULES: list[dict[str, Any]] = [
    {"id": "alice", "match": {"principal": "alice"}, "allow": RIGHTS},
    {**OF_MALLORY, "allow": ["produce", "consume"]},
    {
        "id": "groups",
        "match": {"principal": "mallory", "subscription": "m-*"},
        "allow": ["consume"],
    },
]
SECRET = b"TOP-SECRET-PAYROLL"
DENIED = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID}

PRODUCE, FETCH, METADATA, SASL_HANDSHAKE, CREATE, DELETE = 0, 1, 3, 17, 19, 20
SASL_AUTHENTICATE, ELECT_LEADERS, GROUP_HEARTBEAT, DESCRIBE_TOPICS = 36, 43, 68, 75


def batch_of(payload: bytes) -> bytes:
    """Return a batch of one message (KIP-98), which is new: brokers delete soon what is old."""
    now = int(1000 * time.time())
    # No attributes, no deltas, no key, the value, no headers; lengths are zigzag varints.
    record = b"\0\0\0\1" + unsigned(2 * len(payload)) + payload + b"\0"
    record = unsigned(2 * len(record)) + record
    fields = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + record
    checked = struct.pack(">ibI", -1, 2, crc32c.crc32c(fields)) + fields
    return struct.pack(">qi", 0, len(checked)) + checked


class Client:
    """A connection, on which frames are sent by their fields."""

    def __init__(self, port: int, host: str = HOST, shows: Credential | None = None) -> None:
        self._connection = Connection(port, host)
        if shows is not None:
            self._show(shows)

    def __call__(self, key: int, version: int, /, **fields: Any) -> dict[str, Any]:
        """Return the response to a request."""
        return told(key, version, self._connection.ask(ask(key, version, **fields)))

    def _show(self, credential: Credential) -> None:
        assert not self(SASL_HANDSHAKE, 1, Mechanism=MECHANISM)["ErrorCode"]
        tokens = proving(MECHANISM, credential)
        token: bytes | None = next(tokens)
        while token is not None:
            response = self(SASL_AUTHENTICATE, 2, AuthBytes=token)
            assert not response["ErrorCode"], response
            try:
                token = tokens.send(response["AuthBytes"])
            except StopIteration:
                token = None

    def ids(self) -> dict[str, bytes]:
        """Return the ids of all topics that the client may know of."""
        return {it["Name"]: it["TopicId"] for it in self(METADATA, 12, Topics=None)["Topics"]}

    def produce(self, topic: bytes, payload: bytes) -> dict[str, Any]:
        """Return what the broker says of a message."""
        data = [{"Index": 0, "Records": batch_of(payload)}]
        topics = [{"TopicId": topic, "PartitionData": data}]
        response = self(PRODUCE, 13, Acks=-1, TimeoutMs=5000, TopicData=topics)
        partition: dict[str, Any] = response["Responses"][0]["PartitionResponses"][0]
        return partition

    def fetch(self, *topics: bytes, session: int = 0, epoch: int = -1) -> dict[str, Any]:
        """Return a response to Fetch, from the beginning of each topic."""
        partition = {"PartitionMaxBytes": 1 << 20, "CurrentLeaderEpoch": -1}
        return self(
            FETCH,
            13,
            MaxWaitMs=100,
            MinBytes=1,
            MaxBytes=1 << 20,
            SessionId=session,
            SessionEpoch=epoch,
            Topics=[{"TopicId": it, "Partitions": [partition]} for it in topics],
        )

    def close(self) -> None:
        self._connection.close()


@dataclass
class Edge:
    """A closed gateway before a broker that knows nobody. `rules`: its file."""

    gateway: Gateway
    broker: Kafka
    rules: Path

    def client(self, shows: Credential = MALLORY) -> Client:
        return Client(self.gateway.port, shows=shows)

    def direct(self) -> Client:
        """Return a connection to the broker."""
        return Client(self.broker.port, BROKERS_HOST)

    def topic(self, prefix: str) -> tuple[str, bytes]:
        """Return the name and the id of a new topic, which has a message."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        create({"bootstrap.servers": f"{BROKERS_HOST}:{self.broker.port}"}, name)
        with closing(self.direct()) as client:
            id = client.ids()[name]
            assert not client.produce(id, SECRET)["ErrorCode"]
        return name, id


def rewrite(path: Path, rules: list[dict[str, Any]]) -> None:
    path.write_text(yaml.safe_dump({"version": 1, "rules": rules}))


@pytest.fixture(scope="module")
def edge(kafka: Kafka, artifacts: Artifacts) -> Iterator[Edge]:
    folder = artifacts.directory("gateway-kafka-edge")
    folder.mkdir(parents=True, exist_ok=True)
    users = users_file(folder, {"alice": "wonder", "mallory": "malice"}, [MECHANISM])
    rules = folder / "rules.yaml"
    rewrite(rules, RULES)
    identity = {"mode": "verify", "scram": {"credentials_file": str(users)}}
    made = Gateway(kafka, KafkaPlan(identity=identity, rules=rules, access="closed"), folder)
    made.start()
    yield Edge(made, kafka, rules)
    made.stop()


def records(response: dict[str, Any]) -> bytes:
    """Return all messages of a response to Fetch."""
    parts = (part for topic in response["Responses"] for part in topic["Partitions"])
    return b"".join(it["Records"] or b"" for it in parts)


def inverse(id: bytes) -> bytes:
    return bytes(255 - byte for byte in id)


def test_no_id_is_a_way_to_a_hidden_topic(edge: Edge) -> None:
    """A substitute that can be foreseen is one: the broker served the inverse of an inverse."""
    name, id = edge.topic("secret")
    with closing(edge.client()) as mallory, closing(edge.client(ALICE)) as alice:
        assert alice.ids()[name] == id  # the gateway knows it
        assert name not in mallory.ids()
        for asked in (id, inverse(id)):
            response = mallory.fetch(asked)
            assert records(response) == b""
            assert response["Responses"][0]["Partitions"][0]["ErrorCode"] in DENIED
            assert mallory.produce(asked, b"forged")["ErrorCode"] in DENIED
            gone = mallory(DELETE, 6, Topics=[{"Name": None, "TopicId": asked}], TimeoutMs=5000)
            assert gone["Responses"][0]["ErrorCode"] in DENIED
        assert alice.ids()[name] == id
        assert records(alice.fetch(id)).count(SECRET) == 1
        assert b"forged" not in records(alice.fetch(id))


def test_nobody_goes_on_with_the_session_of_another(edge: Edge) -> None:
    _, id = edge.topic("secret")
    with closing(edge.client(ALICE)) as alice, closing(edge.client()) as mallory:
        begun = alice.fetch(id, epoch=0)
        assert begun["SessionId"]
        for epoch in (1, 2):
            response = mallory.fetch(session=begun["SessionId"], epoch=epoch)
            assert response["ErrorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert records(response) == b""
        for epoch in (0, -1):  # which would close it
            assert records(mallory.fetch(session=begun["SessionId"], epoch=epoch)) == b""
        with closing(edge.direct()) as direct:
            direct.produce(id, b"later")
        assert b"later" in records(alice.fetch(session=begun["SessionId"], epoch=1))


def test_a_session_ends_with_the_right_to_its_topic(edge: Edge) -> None:
    name, id = edge.topic("pub")
    mallory = edge.client()
    session = mallory.fetch(id, epoch=0)["SessionId"]
    assert session
    try:
        rewrite(edge.rules, [RULES[0], RULES[2]])

        def is_over() -> bool:
            try:
                mallory.fetch(session=session, epoch=1)
            except (EOFError, ConnectionError):
                return True
            return False

        wait_until(is_over)
        with closing(edge.direct()) as direct:
            direct.produce(id, b"AFTER-THE-RIGHT-IS-GONE")
        with closing(edge.client()) as again:
            for epoch in (1, 2):
                response = again.fetch(session=session, epoch=epoch)
                assert response["ErrorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert records(again.fetch(id)) == b""
    finally:
        mallory.close()
        rewrite(edge.rules, RULES)
        wait_until(lambda: _knows(edge, name))


def _knows(edge: Edge, name: str) -> bool:
    with closing(edge.client()) as mallory:
        return name in mallory.ids()


@pytest.mark.parametrize("kind", [0, 1])
def test_an_election_of_all_leaders_needs_the_right_to_administer(edge: Edge, kind: int) -> None:
    name, _ = edge.topic("secret")
    with closing(edge.client()) as mallory:
        response = mallory(
            ELECT_LEADERS, 2, ElectionType=kind, TopicPartitions=None, TimeoutMs=3000
        )
    assert response["ErrorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response["ReplicaElectionResults"] == []
    assert name not in str(response)


def test_no_cursor_names_a_hidden_topic(edge: Edge) -> None:
    edge.topic("secret")
    cursor, told_of = None, set()
    with closing(edge.client()) as mallory:
        for _ in range(10):
            response = mallory(
                DESCRIBE_TOPICS, 0, Topics=[], ResponsePartitionLimit=1, Cursor=cursor
            )
            told_of |= {it["Name"] for it in response["Topics"]}
            cursor = response["NextCursor"]
            if cursor is None:
                break
            told_of.add(cursor["TopicName"])
    assert not [it for it in told_of if not it.startswith("pub")]


def test_a_named_topic_is_described_beside_a_hidden_one(edge: Edge) -> None:
    """Part by part: the cursor of the response stands in the order of the broker."""
    public, (secret, _) = edge.topic("pub")[0], edge.topic("secret")
    cursor = None
    told_of: dict[str, int] = {}
    with closing(edge.client()) as mallory:
        for _ in range(10):
            response = mallory(
                DESCRIBE_TOPICS,
                0,
                Topics=[{"Name": public}, {"Name": secret}],
                ResponsePartitionLimit=1,
                Cursor=cursor,
            )
            told_of |= {it["Name"]: it["ErrorCode"] for it in response["Topics"]}
            cursor = response["NextCursor"]
            if cursor is None:
                break
    assert told_of == {public: 0, secret: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_no_expression_finds_a_hidden_topic(edge: Edge) -> None:
    edge.topic("secret")
    fields: dict[str, Any] = {
        "GroupId": f"m-{uuid.uuid4().hex[:8]}",
        "MemberId": str(uuid.uuid4()),
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 10_000,
        "SubscribedTopicNames": [],
        "SubscribedTopicRegex": "sec.*",
        "TopicPartitions": [],
    }
    with closing(edge.client()) as mallory:
        response = mallory(GROUP_HEARTBEAT, 1, **fields)
    assert response["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert response["Assignment"] is None


def test_another_members_assignment_tells_of_no_hidden_topic(edge: Edge) -> None:
    """The gateway has not heard of the topics: members joined elsewhere. It has the public one for
    clients that try again."""
    public, secret = edge.topic("pub"), edge.topic("secret")
    beat: dict[str, Any] = {
        "GroupId": f"m-{uuid.uuid4().hex[:8]}",
        "MemberId": uuid.uuid4().hex,
        "RebalanceTimeoutMs": 10_000,
        "SubscribedTopicNames": [public[0], secret[0]],
        "TopicPartitions": [],
    }
    errors: set[int] = set()

    def assigned(client: Client, epoch: int) -> dict[str, Any]:
        """Return the first heartbeat's response that assigns something."""
        found: dict[str, Any] = {}

        def is_assigned() -> bool:
            found.update(client(GROUP_HEARTBEAT, 1, **beat, MemberEpoch=epoch))
            errors.add(found["ErrorCode"])
            return bool((found["Assignment"] or {}).get("TopicPartitions"))

        wait_until(is_assigned)
        return found

    with closing(edge.direct()) as direct, closing(edge.client()) as mallory:
        direct(10, 4, KeyType=0, CoordinatorKeys=[beat["GroupId"]])
        joined = assigned(direct, 0)
        ids = {it["TopicId"] for it in joined["Assignment"]["TopicPartitions"]}
        assert ids == {public[1], secret[1]}
        errors.clear()
        del beat["SubscribedTopicNames"]
        beat["SubscribedTopicRegex"] = ""  # brokers assign anew to those who state all they have
        told = assigned(mallory, joined["MemberEpoch"])["Assignment"]["TopicPartitions"]
    assert errors == {ErrorCode.COORDINATOR_LOADING, ErrorCode.NONE}
    assert [it["TopicId"] for it in told] == [public[1]]


def test_a_group_tells_of_the_topics_that_a_member_may_know(edge: Edge) -> None:
    """Offsets of a group name its topics, also to those who may use the group and not the topic."""
    public, secret = edge.topic("pub"), edge.topic("secret")
    group = f"m-{uuid.uuid4().hex[:8]}"
    topics = [
        {"Name": name, "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}]}
        for name, _ in (public, secret)
    ]
    asked = {"Groups": [{"GroupId": group, "Topics": None, "MemberEpoch": -1}]}
    with closing(edge.client(ALICE)) as alice, closing(edge.client()) as mallory:

        def is_committed() -> bool:
            """Return whether the broker is ready to coordinate the group, and has its offsets."""
            alice(10, 4, KeyType=0, CoordinatorKeys=[group])
            said = alice(8, 8, GroupId=group, GenerationIdOrMemberEpoch=-1, Topics=topics)
            return not said["Topics"][0]["Partitions"][0]["ErrorCode"]

        wait_until(is_committed)
        assert _topics(alice(9, 8, **asked)) == {public[0], secret[0]}
        assert _topics(mallory(9, 8, **asked)) == {public[0]}


def _topics(response: dict[str, Any]) -> set[str]:
    return {it["Name"] for it in response["Groups"][0]["Topics"]}


# -- transactions, groups and producers ------------------------------------------------------------

DESCRIBE_GROUPS, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN, FIND_COORDINATOR = 15, 22, 24, 26, 10
JOIN_GROUP, SYNC_GROUP = 11, 14
INVALID_PRODUCER_ID_MAPPING = 49


def begun(client: Client, name: str) -> tuple[int, int]:
    """Return the producer id of a transactional id, and its epoch."""
    found: dict[str, Any] = {}

    def is_ready() -> bool:
        client(FIND_COORDINATOR, 4, KeyType=1, CoordinatorKeys=[name])
        fields = {"TransactionalId": name, "TransactionTimeoutMs": 60_000}
        found.update(client(INIT_PRODUCER_ID, 4, ProducerId=-1, ProducerEpoch=-1, **fields))
        return not found["ErrorCode"]

    wait_until(is_ready)
    return found["ProducerId"], found["ProducerEpoch"]


def test_a_foreign_transaction_gets_no_partition(edge: Edge) -> None:
    """An empty response looked like success."""
    name, _ = edge.topic("pub")
    with closing(edge.client()) as mallory:
        response = mallory(
            ADD_PARTITIONS,
            3,
            V3AndBelowTransactionalId="of-alice",
            V3AndBelowTopics=[{"Name": name, "Partitions": [0]}],
        )
    (topic,) = response["ResultsByTopicV3AndBelow"]
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    parts = [{"PartitionIndex": 0, "PartitionErrorCode": error}]
    assert topic == {"Name": name, "ResultsByPartition": parts}


def test_a_broker_knows_whose_producer_id_is_in_a_transaction(edge: Edge) -> None:
    """So a client that may use a transactional id reaches no other transaction by a guessed id."""
    name, _ = edge.topic("pub")
    rewrite(edge.rules, [*RULES, OF_TRANSACTIONS])
    try:
        with closing(edge.client(ALICE)) as alice, closing(edge.client()) as mallory:
            id, epoch = begun(alice, f"a-{uuid.uuid4().hex[:8]}")
            wait_until(lambda: not _lacks_transaction(mallory))
            own = f"t-{uuid.uuid4().hex[:8]}"
            begun(mallory, own)
            topics = [{"Name": name, "Partitions": [0]}]
            added = mallory(
                ADD_PARTITIONS,
                3,
                V3AndBelowTransactionalId=own,
                V3AndBelowProducerId=id,
                V3AndBelowProducerEpoch=epoch,
                V3AndBelowTopics=topics,
            )
            (topic,) = added["ResultsByTopicV3AndBelow"]
            codes = [it["PartitionErrorCode"] for it in topic["ResultsByPartition"]]
            assert codes == [INVALID_PRODUCER_ID_MAPPING]
            ended = mallory(
                END_TXN, 3, TransactionalId=own, ProducerId=id, ProducerEpoch=epoch, Committed=True
            )
            assert ended["ErrorCode"] == INVALID_PRODUCER_ID_MAPPING
    finally:
        rewrite(edge.rules, RULES)


OF_TRANSACTIONS = {
    "id": "transactions",
    "match": {"protocol": "kafka", "principal": "mallory", "subscription": "t-*"},
    "allow": ["produce"],
}


def _lacks_transaction(client: Client) -> bool:
    error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    fields = {"TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    code: int = client(INIT_PRODUCER_ID, 4, TransactionalId="t-x", **fields)["ErrorCode"]
    return code == error


def test_a_group_tells_of_no_hidden_topic_to_which_members_subscribe(edge: Edge) -> None:
    """Brokers keep what members send each other, and read nothing of it."""
    (public, _), (secret, _) = edge.topic("pub"), edge.topic("secret")
    group = f"m-{uuid.uuid4().hex[:8]}"
    with closing(edge.client(ALICE)) as alice, closing(edge.client()) as mallory:
        _join(alice, group, public, secret)
        told_of = {
            name: _member(it, group) for name, it in (("alice", alice), ("mallory", mallory))
        }
    assert told_of["alice"] == (subscription(public, secret), assignment(public, secret))
    assert told_of["mallory"] == (b"", b"")


def _join(client: Client, group: str, *topics: str) -> None:
    """Become the only member of a group, and assign these topics to it."""
    protocols = [{"Name": "range", "Metadata": subscription(*topics)}]
    fields: dict[str, Any] = {
        "GroupId": group,
        "SessionTimeoutMs": 30_000,
        "RebalanceTimeoutMs": 30_000,
        "ProtocolType": "consumer",
        "Protocols": protocols,
    }
    joined: dict[str, Any] = {}

    def has_joined() -> bool:
        client(FIND_COORDINATOR, 4, KeyType=0, CoordinatorKeys=[group])
        joined.update(client(JOIN_GROUP, 5, **fields, MemberId=joined.get("MemberId", "")))
        return not joined["ErrorCode"]

    wait_until(has_joined)
    own = [{"MemberId": joined["MemberId"], "Assignment": assignment(*topics)}]
    synced = client(
        SYNC_GROUP,
        3,
        GroupId=group,
        GenerationId=joined["GenerationId"],
        MemberId=joined["MemberId"],
        Assignments=own,
    )
    assert not synced["ErrorCode"]


def _member(client: Client, group: str) -> tuple[bytes, bytes]:
    (found,) = client(DESCRIBE_GROUPS, 5, Groups=[group])["Groups"]
    (member,) = found["Members"]
    return member["MemberMetadata"], member["MemberAssignment"]


# -- thousands -------------------------------------------------------------------------------------

MANY = 3000


def test_thousands_of_hidden_names_have_their_error_each(edge: Edge) -> None:
    """The request and its response are decided in slices."""
    names = [f"secret-{number}" for number in range(MANY)]
    topics = [
        {"Name": name, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]} for name in names
    ]
    with closing(edge.client()) as mallory:
        response = mallory(2, 7, Topics=topics)
        assert mallory.ids() is not None
    assert sorted(it["Name"] for it in response["Topics"]) == sorted(names)
    codes = {part["ErrorCode"] for it in response["Topics"] for part in it["Partitions"]}
    assert codes == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("count", [250, 19_000])
def test_unknown_ids_do_not_keep_a_broker_busy(edge: Edge, count: int) -> None:
    topics = [{"TopicId": uuid.uuid4().bytes, "Name": None} for _ in range(count)]
    with closing(edge.client()) as mallory:
        response = mallory(METADATA, 12, Topics=topics)
        codes = {it["ErrorCode"] for it in response["Topics"]}
        assert codes == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert len(response["Topics"]) == count
    with closing(edge.direct()) as direct:
        assert direct.ids()
