"""Apache InLong TubeMQ's protocol as a plugin; see `gateway.wire.plugin`.

Many modules import it for a name or a scheme, so it loads the protocol itself only for an entry.
"""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.address import Scheme
from gateway.wire.contract import Entry
from gateway.wire.plugin import EntrySettings, Plugin
from gateway.wire.tubemq.names import read_topic


def _enter(settings: EntrySettings) -> Entry:
    from gateway.wire.tubemq.context import Listener
    from gateway.wire.tubemq.entry import TubeEntry

    return TubeEntry(Listener(settings))


PLUGIN = Plugin(
    name="tubemq",
    schemes={"tubemq": Scheme(8715), "tubemq+ssl": Scheme(8716, tls=True)},
    topic_schemes=(),
    read_topic=read_topic,
    actions=frozenset(Action),
    enter=_enter,
    checks="gateway.doctor.tubemq.checks",
    numbers_brokers=True,
)
