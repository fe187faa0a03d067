"""Apache Kafka's protocol as a plugin; see `gateway.wire.plugin`.

Many modules import this module for a name or a URL scheme. So it imports the rest of the protocol
only when an entry is made.
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
    settings=frozenset(
        (
            *("listeners.advertise", "listeners.advertise.names", "listeners.client_metrics"),
            *("listeners.identity.mode=verify-and-forward", "listeners.identity.token"),
            *("listeners.identity.basic", "listeners.identity.scram", "clusters.credential"),
            "clusters.credential.basic.without_tls",
            "clusters.credential.each_principal",
        )
    ),
    instead={
        "listeners.identity.signature": "clients of kafka sign nothing; scram, or leave it out",
        "listeners.identity.trusted_proxies": (
            "clients of kafka cannot speak for others; leave it out"
        ),
        "listeners.checksums": (
            "checksums of kafka are left to brokers and consumers; leave it out"
        ),
        "clusters.brokers_are": "gateways for kafka are reached as brokers are; leave it out",
        "clusters.names": (
            "clients of kafka reach brokers as advertise of a listener says; leave it out"
        ),
        "clusters.migrations": "topics of kafka do not migrate; leave it out",
    },
    under_tls=("basic",),
    masks=True,
    numbers_brokers=True,
    groups_apart=True,
)
