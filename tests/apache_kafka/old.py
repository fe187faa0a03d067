"""A client of an old version of kafka-python: sends and receives 20 messages, and prints how many.

python old.py BOOTSTRAP TOPIC VERSION      such as 0.9
"""

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

COUNT = 20

bootstrap, topic, told = sys.argv[1:]
version = tuple(int(it) for it in told.split("."))
producer = KafkaProducer(bootstrap_servers=bootstrap, api_version=version)
sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(COUNT)]
offsets = [it.get(30).offset for it in sent]
consumer = KafkaConsumer(
    bootstrap_servers=bootstrap, api_version=version, group_id=f"{topic}-{told}",
    auto_offset_reset="earliest", consumer_timeout_ms=30_000, enable_auto_commit=False,
)  # fmt: skip
consumer.assign([TopicPartition(topic, 0)])
heard = []
for message in consumer:
    heard.append(message.value)
    if len(heard) == COUNT:
        break
consumer.commit()
assert consumer.committed(TopicPartition(topic, 0)) == COUNT
print(len(heard), len(set(heard)), max(offsets))
