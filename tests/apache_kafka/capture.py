"""`python -m tests.apache_kafka.capture`: writes what a real cluster answers, for playbooks.

Each API whose responses the gateway changes is asked for in each of its versions: brokers that
lead a partition and others, so that these name the leader. The file has a line for each: API,
version, and both frames in hexadecimal.
"""

from __future__ import annotations

import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.apache_kafka.broker import HOST, VERSION, Cluster
from tests.apache_kafka.connection import Connection
from tests.playbooks_kafka.captured import FILE, GROUP, MEMBER, TOPIC
from tests.playbooks_kafka.frames import (
    API_VERSIONS,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SHARE_FETCH,
    Fields,
    ask,
    batch,
    known,
    told,
)

ALTER_CONFIGS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 44, 55, 60
SHARE_HEARTBEAT, SHARE_ACKNOWLEDGE, READ_SHARE_STATE = 76, 79, 84
GROUPS = 32
"""The type of resource of ALTER_CONFIGS."""
SHARES, FIND_SHARES = 2, 6
"""The type of key of FIND_COORDINATOR, and the first version that knows it."""
SHARE_SIZE = {"MaxWaitMs": 100, "MaxBytes": 1 << 20, "MaxRecords": 10, "BatchSize": 10}
NODES = 3
LEADERS = 12
"""The version of Metadata that says who leads a partition."""

Captured = tuple[int, int, bytes, bytes]


class Broker(Connection):
    """A connection to one broker, whose requests and answers are kept."""

    def captured(self, key: int, version: int, /, **fields: object) -> Captured:
        """Return a request and its response."""
        frame = ask(key, version, 1, **fields)
        return key, version, frame, self.ask(frame)


Brokers = Mapping[int, Broker]
Captures = Iterator[Captured]


def versions(key: int, first: int = 0) -> range:
    """Return the versions of an API, from one on."""
    of = known(key).request
    return range(max(first, of.first), of.last + 1)


def captured(ports: list[int]) -> Captures:
    """Yield what brokers say. `ports`: of the nodes 1, 2 and so on."""
    brokers = {id: Broker(port) for id, port in enumerate(ports, start=1)}
    one = brokers[1]
    topics = [{"Name": TOPIC, "NumPartitions": NODES, "ReplicationFactor": 1}]
    one.captured(CREATE_TOPICS, 7, Topics=topics, timeoutMs=30_000)
    for version in versions(API_VERSIONS):
        yield one.captured(API_VERSIONS, version)
    topic = _led_topic(one)
    for version in versions(METADATA):
        yield one.captured(METADATA, version, Topics=[{"Name": TOPIC}])
    for version in versions(FIND_COORDINATOR):
        keys = {"CoordinatorKeys": [GROUP]} if version >= 4 else {"Key": GROUP}
        yield _settled(one, FIND_COORDINATOR, version, **keys)
    for version in versions(DESCRIBE_CLUSTER):
        yield one.captured(DESCRIBE_CLUSTER, version, **({"EndpointType": 1} if version else {}))
    log = [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
    for version in versions(DESCRIBE_QUORUM):
        yield one.captured(DESCRIBE_QUORUM, version, Topics=log)
    names = ["listeners", "advertised.listeners", "log.dirs"]
    resources = [{"ResourceType": 4, "ResourceName": "1", "ConfigurationKeys": names}]
    for version in versions(DESCRIBE_CONFIGS):
        yield one.captured(DESCRIBE_CONFIGS, version, Resources=resources)
    (partition, leader) = _led_by(topic)
    other = next(broker for id, broker in brokers.items() if id != leader)
    yield from _of_another_leader(other, topic["TopicId"], partition)
    yield from _of_a_replaced_leader(brokers, leader, topic["TopicId"], partition)


def _led_topic(broker: Broker) -> Fields:
    """Return the topic, as soon as all its partitions have leaders."""
    while True:
        *_, response = broker.captured(METADATA, LEADERS, Topics=[{"Name": TOPIC}])
        (topic,) = told(METADATA, LEADERS, response)["Topics"]
        if len(topic["Partitions"]) == NODES and not topic["ErrorCode"]:
            return dict(topic)
        time.sleep(0.2)


def _led_by(topic: Fields) -> tuple[int, int]:
    first = topic["Partitions"][0]
    return first["PartitionIndex"], first["LeaderId"]


def _settled(broker: Broker, key: int, version: int, /, **fields: object) -> Captured:
    """Return a response without the errors of a cluster that has just started."""
    while True:
        found = broker.captured(key, version, **fields)
        body = told(key, version, found[3])
        if not body.get("ErrorCode") and not any(
            it["ErrorCode"] for it in body.get("Coordinators", ())
        ):
            return found
        time.sleep(0.2)


def _of_another_leader(broker: Broker, id: bytes, partition: int) -> Captures:
    """Yield what a broker answers that does not lead the partition, and says who does."""
    for version in versions(PRODUCE, 10):
        name = {"TopicId": id} if version >= 13 else {"Name": TOPIC}
        data = [{**name, "PartitionData": [{"Index": partition, "Records": batch(1)}]}]
        yield broker.captured(PRODUCE, version, Acks=1, TimeoutMs=1000, TopicData=data)
    for version in versions(FETCH, 16):
        wanted = [{"TopicId": id, "Partitions": [{"Partition": partition, "FetchOffset": 0}]}]
        whole = {"MaxWaitMs": 100, "MaxBytes": 1 << 20, "SessionEpoch": -1}
        yield broker.captured(FETCH, version, **whole, Topics=wanted)
    member = {"GroupId": GROUP, "MemberId": MEMBER}
    for version in versions(SHARE_FETCH):
        shared = [{"TopicId": id, "Partitions": [{"PartitionIndex": partition}]}]
        fields = {**member, **SHARE_SIZE, "ShareSessionEpoch": 0, "Topics": shared}
        yield broker.captured(SHARE_FETCH, version, **fields)


# -- share sessions -------------------------------------------------------------------------------

FIRST_RECORD = [{"FirstOffset": 0, "LastOffset": 0, "AcknowledgeTypes": [1]}]
LATER = 100
"""An epoch that no leader of the topic has had."""


def _of_a_replaced_leader(brokers: Brokers, leader: int, id: bytes, partition: int) -> Captures:
    """Yield what a broker answers to ShareAcknowledge that still takes itself for the leader of a
    partition, while the coordinator of the shares knows of a later one: the broker names a leader.

    The coordinator is told so by a request of brokers. A broker that knows that it leads no more
    has forgotten the share session, and names nobody.
    """
    _send_one(brokers[leader], partition)
    for version in versions(SHARE_ACKNOWLEDGE):
        group = f"{GROUP}-{version}"  # no session of a group goes on after such a response
        member = {"GroupId": group, "MemberId": MEMBER}
        _join(brokers, member)
        epoch = _acquire(brokers[leader], member, id, partition)
        key = f"{group}:{urlsafe_b64encode(id).decode().rstrip('=')}:{partition}"
        led = [{"Partition": partition, "LeaderEpoch": LATER}]
        state = {"GroupId": group, "Topics": [{"TopicId": id, "Partitions": led}]}
        _coordinator(brokers, SHARES, key).captured(READ_SHARE_STATE, 0, **state)
        partitions = [{"PartitionIndex": partition, "AcknowledgementBatches": FIRST_RECORD}]
        topics = [{"TopicId": id, "Partitions": partitions}]
        fields = {**member, "ShareSessionEpoch": epoch, "Topics": topics}
        yield brokers[leader].captured(SHARE_ACKNOWLEDGE, version, **fields)


def _send_one(leader: Broker, partition: int) -> None:
    import kafka  # which warns of itself

    producer = kafka.KafkaProducer(bootstrap_servers=f"{HOST}:{leader.port}")
    producer.send(TOPIC, b"one", partition=partition).get(timeout=30)
    producer.close()


def _coordinator(brokers: Brokers, type: int, key: str) -> Broker:
    """Return who coordinates a group or the states of shares."""
    keys = {"KeyType": type, "CoordinatorKeys": [key]}
    *_, response = _settled(brokers[1], FIND_COORDINATOR, FIND_SHARES, **keys)
    (found,) = told(FIND_COORDINATOR, FIND_SHARES, response)["Coordinators"]
    return brokers[found["NodeId"]]


def _join(brokers: Brokers, member: Fields) -> None:
    """Return when the member has partitions: only then have these a state."""
    by_group = {"ResourceType": GROUPS, "ResourceName": member["GroupId"]}
    earliest = {"Name": "share.auto.offset.reset", "ConfigOperation": 0, "Value": "earliest"}
    changed = [{**by_group, "Configs": [earliest]}]
    brokers[1].captured(ALTER_CONFIGS, 1, Resources=changed)
    coordinator = _coordinator(brokers, 0, member["GroupId"])
    epoch, assigned = 0, list[Fields]()
    while not assigned:
        topics = None if epoch else [TOPIC]
        fields = {**member, "MemberEpoch": epoch, "SubscribedTopicNames": topics}
        *_, response = coordinator.captured(SHARE_HEARTBEAT, 1, **fields)
        body = told(SHARE_HEARTBEAT, 1, response)
        epoch, assignment = body["MemberEpoch"], body["Assignment"]
        assigned = assignment["TopicPartitions"] if assignment else []
        time.sleep(0.2)


def _acquire(leader: Broker, member: Fields, id: bytes, partition: int) -> int:
    """Return the next epoch of the member's session, when it has a record to acknowledge."""
    epoch, acquired = 0, False
    topics: list[Fields] = [{"TopicId": id, "Partitions": [{"PartitionIndex": partition}]}]
    while not acquired:
        fields = {**member, **SHARE_SIZE, "ShareSessionEpoch": epoch, "Topics": topics}
        *_, response = leader.captured(SHARE_FETCH, 2, **fields)
        responses = told(SHARE_FETCH, 2, response)["Responses"]
        acquired = any(it["AcquiredRecords"] for of in responses for it in of["Partitions"])
        epoch, topics = epoch + 1, []  # the session has the topics now
    return epoch


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder) / str(number) for number in range(NODES)]
        for it in folders:
            it.mkdir()
        cluster = Cluster(folders, lambda text: print(text, file=sys.stderr))
        cluster.start()
        try:
            lines = [
                f"{key}\t{version}\t{request.hex()}\t{response.hex()}"
                for key, version, request, response in captured([it.port for it in cluster.nodes])
            ]
        finally:
            cluster.stop()
    head = f"# Kafka {VERSION}: API, version, request, answer; by tests.apache_kafka.capture"
    FILE.write_text("\n".join([head, *lines]) + "\n")
    print(f"{len(lines)} answers in {FILE.name}")


if __name__ == "__main__":
    main()
