"""Changes of a topic in use by its broker's REST interface."""

from .brokers.standalone import Standalone
from .clients import Client, fresh_topic, numbered, receive


def test_a_partitioned_topic_may_grow(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic("p")
    pulsar.admin.create_partitioned_topic(topic, 1)
    client.create_producer(topic).send(b"one")
    pulsar.admin.grow_partitions(topic, 2)
    assert len(client.get_topic_partitions(topic)) == 2
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(2):
        producer.send(payload)
    assert {message.message_id().partition() for message in receive(consumer, 2)} == {0, 1}
