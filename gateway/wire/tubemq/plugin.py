"""Apache InLong TubeMQ's protocol as a plugin; see `gateway.wire.plugin`.

Many modules import this module for a name or a URL scheme. So it imports the rest of the protocol
only when an entry is made.
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


_OTHER_METHODS = "clients of tubemq have nothing of the kind; signature, tls or anonymous"

PLUGIN = Plugin(
    name="tubemq",
    schemes={"tubemq": Scheme(8715), "tubemq+ssl": Scheme(8716, tls=True)},
    topic_schemes=(),
    read_topic=read_topic,
    actions=frozenset(Action),
    enter=_enter,
    checks="gateway.doctor.tubemq.checks",
    settings=frozenset(("listeners.advertise", "listeners.identity.signature")),
    instead={
        "listeners.identity.mode=verify-and-forward": (
            "servers of tubemq verify nobody, so nothing is forwarded to them; verify"
        ),
        "listeners.identity.token": _OTHER_METHODS,
        "listeners.identity.basic": _OTHER_METHODS,
        "listeners.identity.scram": _OTHER_METHODS,
        "listeners.identity.trusted_proxies": (
            "clients of tubemq cannot speak for others; leave it out"
        ),
        "listeners.advertise.names": "clients of tubemq send no server name; ports",
        "listeners.checksums": (
            "checksums of tubemq are left to brokers and consumers; leave it out"
        ),
        "listeners.client_metrics": "clients of tubemq tell brokers no metrics; leave it out",
        "clusters.brokers_are": "gateways for tubemq are reached as masters are; leave it out",
        "clusters.credential": (
            "servers of tubemq are shown no credential of the gateway yet; leave it out"
        ),
        "clusters.names": (
            "clients of tubemq reach brokers as advertise of a listener says; leave it out"
        ),
        "clusters.migrations": "topics of tubemq do not migrate; leave it out",
    },
    masks=True,
    numbers_brokers=True,
)
