"""Sends 20 messages, receives them, and prints how many came, and how many of these differ.

python kafka_python.py VERSION BOOTSTRAP TOPIC [MECHANISM FOLDER]      VERSION: such as 0.9

With a mechanism, bob proves who he is, under TLS; the folder has the authority's certificate.
"""

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

COUNT = 20

version, bootstrap, topic, *proof = sys.argv[1:]
settings = {
    "bootstrap_servers": bootstrap,
    "api_version": tuple(int(it) for it in version.split(".")),
}
if proof:
    settings |= {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": proof[0],
        "sasl_plain_username": "bob",
        "sasl_plain_password": "builder",
        "ssl_cafile": f"{proof[1]}/authority.crt",
    }
producer = KafkaProducer(**settings)
sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(COUNT)]
assert max(it.get(30).offset for it in sent) == COUNT - 1
consumer = KafkaConsumer(
    group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000,
    enable_auto_commit=False, **settings,
)  # fmt: skip
consumer.assign([TopicPartition(topic, 0)])
heard = []
for message in consumer:
    heard.append(message.value)
    if len(heard) == COUNT:
        break
consumer.commit()
assert consumer.committed(TopicPartition(topic, 0)) == COUNT
print(len(heard), len(set(heard)))
