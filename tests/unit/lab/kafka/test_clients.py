"""Real client libraries at the sandbox, over loopback."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import aiokafka
import confluent_kafka
import pytest
import trio
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from gateway.lab.kafka.server import KafkaSandbox, KafkaSettings
from tests.apache_kafka.working import (
    COUNT,
    Work,
    aio,
    idempotent,
    kafka_python,
    librdkafka,
    librdkafka_compressed,
)
from tests.real.clients import wait_until

T = TypeVar("T")

PATIENCE_S = 60
TOPIC = "t"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
USERS = {"amy": "secret"}

pytestmark = pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")


async def started(nursery: trio.Nursery, **settings: Any) -> KafkaSandbox:
    sandbox = KafkaSandbox(KafkaSettings(**settings))
    await nursery.start(sandbox.serve)
    return sandbox


@pytest.fixture
async def sandbox(nursery: trio.Nursery) -> KafkaSandbox:
    return await started(nursery)


async def aside(work: Callable[..., T], *arguments: object) -> T:
    """Run what blocks in a thread; the sandbox goes on meanwhile."""
    with trio.fail_after(PATIENCE_S):
        return await trio.to_thread.run_sync(work, *arguments, abandon_on_cancel=True)


def produced(sandbox: KafkaSandbox, topic: str) -> list[bytes | None]:
    partitions = range(len(sandbox.cluster.topics[topic].partitions))
    return [record.value for it in partitions for record in sandbox.produced(topic, it)]


@pytest.mark.parametrize("work", [librdkafka, librdkafka_compressed, idempotent, aio, kafka_python])
async def test_clients_send_and_receive_as_a_group(sandbox: KafkaSandbox, work: Work) -> None:
    received = await aside(work, sandbox.bootstrap, TOPIC)
    assert len(received) == len(set(received)) == COUNT
    if work is not librdkafka_compressed:  # by zstd, which Python does not bring along
        assert sorted(received) == sorted(it or b"" for it in produced(sandbox, TOPIC))
    asked = {it.api for it in sandbox.requests}
    assert asked >= {"Produce", "Fetch", "JoinGroup", "SyncGroup", "LeaveGroup"}
    assert {it.node for it in sandbox.requests} == {1, 2}
    assert {it.principal for it in sandbox.requests} == {"ANONYMOUS"}


# -- logins ------------------------------------------------------------------------------------


def send_librdkafka(address: str, **options: object) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **options})
    producer.produce(TOPIC, b"hello")
    assert producer.flush(PATIENCE_S) == 0


def plain_librdkafka(address: str) -> None:
    login = {**LOGIN, "sasl.username": "amy", "sasl.password": "secret"}
    send_librdkafka(address, **login)


def plain_aiokafka(address: str) -> None:
    async def work() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="amy",
            sasl_plain_password="secret",
        ) as producer:
            await producer.send_and_wait(TOPIC, b"hello")

    asyncio.run(work())


def plain_kafka_python(address: str) -> None:
    import kafka  # here, as it warns of itself

    producer = kafka.KafkaProducer(
        bootstrap_servers=address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="amy",
        sasl_plain_password="secret",
    )
    producer.send(TOPIC, b"hello").get(PATIENCE_S)
    producer.close()


@pytest.mark.parametrize("work", [plain_librdkafka, plain_aiokafka, plain_kafka_python])
async def test_clients_log_in_by_password(
    nursery: trio.Nursery, work: Callable[[str], None]
) -> None:
    sandbox = await started(nursery, users=USERS)
    await aside(work, sandbox.bootstrap)
    assert produced(sandbox, TOPIC) == [b"hello"]
    assert {it.principal for it in sandbox.requests if it.api == "Produce"} == {"amy"}


async def test_a_token_that_nobody_signed_is_a_login(nursery: trio.Nursery) -> None:
    sandbox = await started(nursery, unsecured_tokens=True)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=amy",
    }
    await aside(lambda: send_librdkafka(sandbox.bootstrap, **login))
    assert {it.principal for it in sandbox.requests if it.api == "Produce"} == {"amy"}


async def test_a_client_learns_that_its_password_is_wrong(nursery: trio.Nursery) -> None:
    sandbox = await started(nursery, users=USERS)
    login = {**LOGIN, "sasl.username": "amy", "sasl.password": "wrong"}

    def work() -> None:
        codes = set()
        told = {"error_cb": lambda error: codes.add(error.code())}
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": sandbox.bootstrap, **login, **told}
        )
        wait_until(lambda: bool(producer.poll(0.01) or codes))
        assert confluent_kafka.KafkaError._AUTHENTICATION in codes

    await aside(work)
    assert {it.api for it in sandbox.requests} == {
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
    }


# -- what happens to a cluster -----------------------------------------------------------------


class Sender:
    """A producer of librdkafka that goes on through what happens."""

    def __init__(self, address: str) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "enable.idempotence": True, "retry.backoff.ms": 10}
        )

    def send(self, value: bytes) -> None:
        errors: list[object] = []
        self._producer.produce(
            TOPIC, value, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
        assert self._producer.flush(PATIENCE_S) == 0
        assert errors == [None]


def leader(sandbox: KafkaSandbox) -> int:
    return sandbox.cluster.topics[TOPIC].partitions[0].leader


async def test_a_producer_follows_a_leader_that_moves(sandbox: KafkaSandbox) -> None:
    sandbox.cluster.create(TOPIC, 1)
    sender = Sender(sandbox.bootstrap)
    await aside(sender.send, b"before")
    before, after = leader(sandbox), 3 - leader(sandbox)
    sandbox.move(TOPIC, 0, after)
    await aside(sender.send, b"behind")
    assert produced(sandbox, TOPIC) == [b"before", b"behind"]
    assert [it.node for it in sandbox.requests if it.api == "Produce"] == [before, before, after]


async def test_others_go_on_for_a_broker_that_stops(sandbox: KafkaSandbox) -> None:
    sandbox.cluster.create(TOPIC, 1)
    sender = Sender(sandbox.bootstrap)
    await aside(sender.send, b"before")
    stopped = leader(sandbox)
    await sandbox.stop(stopped)
    await aside(sender.send, b"meanwhile")
    assert leader(sandbox) != stopped
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream(*sandbox.cluster.nodes[stopped].pair)
    await sandbox.start(stopped)
    sandbox.move(TOPIC, 0, stopped)
    await aside(sender.send, b"again")
    assert produced(sandbox, TOPIC) == [b"before", b"meanwhile", b"again"]


async def test_members_of_a_group_share_its_partitions(sandbox: KafkaSandbox) -> None:
    sandbox.cluster.create(TOPIC, 4)

    def work() -> list[int]:
        group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
        options = {"bootstrap.servers": sandbox.bootstrap, "heartbeat.interval.ms": 50, **group}
        pair = [confluent_kafka.Consumer(options) for _ in range(2)]
        for it in pair:
            it.subscribe([TOPIC])

        def is_shared() -> bool:
            for it in pair:
                it.poll(0.02)
            return all(len(it.assignment()) == 2 for it in pair)

        wait_until(is_shared)
        found = [partition.partition for it in pair for partition in it.assignment()]
        for it in pair:
            it.close()
        return sorted(found)

    assert await aside(work) == [0, 1, 2, 3]


async def test_a_consumer_goes_on_where_its_group_has_committed(sandbox: KafkaSandbox) -> None:
    async def send(*values: bytes) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=sandbox.bootstrap) as producer:
            for value in values:
                await producer.send_and_wait(TOPIC, value, partition=0)

    async def receive() -> bytes:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=sandbox.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            max_poll_records=1,
            enable_auto_commit=False,
        )
        async with consumer:
            found = (await consumer.getone()).value
            await consumer.commit()
        return bytes(found)

    def work() -> list[bytes]:
        asyncio.run(send(b"one", b"two"))
        return [asyncio.run(receive()) for _ in range(2)]

    assert await aside(work) == [b"one", b"two"]


async def test_an_administrator_makes_topics_and_looks_around(sandbox: KafkaSandbox) -> None:
    def work() -> None:
        admin = AdminClient({"bootstrap.servers": sandbox.bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, 2, 1)]).values():
            made.result(PATIENCE_S)
        for grown in admin.create_partitions([NewPartitions(TOPIC, 3)]).values():
            grown.result(PATIENCE_S)
        topics = admin.list_topics(timeout=PATIENCE_S).topics
        assert {name: len(it.partitions) for name, it in topics.items()} == {TOPIC: 3}
        cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result()
        assert {it.id for it in cluster.nodes} == {1, 2}
        resource = ConfigResource("broker", "2")
        told = admin.describe_configs([resource])[resource].result(PATIENCE_S)
        assert told["listeners"].value == f"PLAINTEXT://{sandbox.cluster.nodes[2]}"
        for deleted in admin.delete_topics([TOPIC]).values():
            deleted.result(PATIENCE_S)

    await aside(work)
    assert not sandbox.cluster.topics
