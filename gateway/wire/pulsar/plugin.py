"""Apache Pulsar's binary protocol as a plugin; see `gateway.wire.plugin`.

Many modules import this module for a name or a URL scheme. So it imports the rest of the protocol
only when an entry is made.
"""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.contract import Entry
from gateway.wire.plugin import EntrySettings, Plugin
from gateway.wire.pulsar.topics import named
from gateway.wire.pulsar.urls import SCHEMES


def _enter(settings: EntrySettings) -> Entry:
    from gateway.wire.pulsar.context import ListenerContext
    from gateway.wire.pulsar.entry import PulsarEntry
    from gateway.wire.pulsar.scanning import load
    from gateway.wire.pulsar.table import COMMANDS

    load(verify=settings.checksums)
    return PulsarEntry(ListenerContext.of(settings, COMMANDS))


PLUGIN = Plugin(
    name="pulsar",
    schemes=SCHEMES,
    topic_schemes=("persistent", "non-persistent", "topic", "segment"),
    read_topic=named,
    actions=frozenset(Action),
    enter=_enter,
    checks="gateway.doctor.pulsar.checks",
    settings=frozenset(
        (
            *("listeners.identity.mode=verify-and-forward", "listeners.identity.token"),
            *("listeners.identity.basic", "listeners.identity.trusted_proxies"),
            *("listeners.checksums", "clusters.brokers_are", "clusters.credential"),
            *("clusters.names", "clusters.migrations"),
        )
    ),
    instead={
        "listeners.advertise": "clients of pulsar name brokers in it; leave it out",
        "listeners.identity.scram": "clients of pulsar have no SCRAM; basic, or leave it out",
        "listeners.identity.signature": "clients of pulsar sign nothing; token, or leave it out",
        "listeners.client_metrics": "clients of pulsar tell brokers no metrics; leave it out",
        "clusters.credential.basic.without_tls": (
            "brokers of pulsar are shown a password in any case; leave it out"
        ),
        "clusters.credential.each_principal": (
            "brokers of pulsar are told who the client is; basic, or another credential"
        ),
    },
)
