"""Apache Pulsar's binary protocol as a plugin; see `gateway.wire.plugin`.

Many modules import it for a name or a scheme, so it loads the protocol itself only for an entry.
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
    tells_largest=True,
)
