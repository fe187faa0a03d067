"""Apache Kafka's protocol as a plugin; see `gateway.wire.plugin`.

Many modules import it for a name or a scheme, so it loads the protocol itself only for an entry.
"""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.address import Scheme
from gateway.wire.contract import Entry
from gateway.wire.kafka.names import read_topic
from gateway.wire.plugin import EntrySettings, Plugin


def _enter(settings: EntrySettings) -> Entry:
    from gateway.wire.kafka.context import Listener
    from gateway.wire.kafka.entry import KafkaEntry

    return KafkaEntry(Listener(settings))


PLUGIN = Plugin(
    name="kafka",
    schemes={"kafka": Scheme(9092), "kafka+ssl": Scheme(9093, tls=True)},
    topic_schemes=(),
    read_topic=read_topic,
    actions=frozenset(Action),
    enter=_enter,
    checks="gateway.doctor.kafka.checks",
    numbers_brokers=True,
    groups_apart=True,
)
