"""The registry of protocols: the one module outside their folders that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.wire.kafka.plugin import PLUGIN as KAFKA
from gateway.wire.plugin import Plugin
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.tubemq.plugin import PLUGIN as TUBEMQ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.wire.address import Address

PLUGINS = {plugin.name: plugin for plugin in (PULSAR, KAFKA, TUBEMQ)}
"""All protocols, by the value of a listener's `protocol`."""

DEFAULT = PULSAR.name
"""The protocol of listeners without `protocol`."""

SCHEMES = {name: scheme for plugin in PLUGINS.values() for name, scheme in plugin.schemes.items()}
"""The URL schemes of all brokers."""


class Void(NamedTuple):
    """A setting that means nothing in a protocol. `path`: from `listeners` or `clusters` on.
    `why`: with what to do instead. `value`: only this one means nothing; None: any."""

    path: tuple[str, ...]
    why: str
    value: object = None


VOID = {
    PULSAR.name: (
        Void(
            ("listeners", "identity", "scram"),
            "clients of pulsar have no SCRAM; basic, or leave it out",
        ),
        Void(
            ("listeners", "identity", "signature"),
            "clients of pulsar sign nothing; token, or leave it out",
        ),
        Void(
            ("listeners", "client_metrics"),
            "clients of pulsar tell brokers no metrics; leave it out",
            value="hide",
        ),
        Void(
            ("clusters", "credential", "basic", "without_tls"),
            "brokers of pulsar are shown a password in any case; leave it out",
            value=True,
        ),
        Void(
            ("clusters", "credential", "each_principal"),
            "brokers of pulsar are told who the client is; basic, or another credential",
        ),
    ),
    KAFKA.name: (
        Void(
            ("listeners", "identity", "signature"),
            "clients of kafka sign nothing; scram, or leave it out",
        ),
        Void(
            ("listeners", "identity", "trusted_proxies"),
            "clients of kafka cannot speak for others; leave it out",
        ),
        Void(
            ("listeners", "checksums"),
            "checksums of kafka are left to brokers and consumers; leave it out",
            value="verify",
        ),
        Void(
            ("clusters", "brokers_are"),
            "gateways for kafka are reached as brokers are; leave it out",
            value="gateways",
        ),
        Void(
            ("clusters", "names"),
            "clients of kafka reach brokers as advertise of a listener says; leave it out",
        ),
        Void(("clusters", "migrations"), "topics of kafka do not migrate; leave it out"),
    ),
    TUBEMQ.name: (
        Void(
            ("listeners", "identity", "mode"),
            "servers of tubemq verify nobody, so nothing is forwarded to them; verify",
            value="verify-and-forward",
        ),
        *(
            Void(
                ("listeners", "identity", method),
                "clients of tubemq have nothing of the kind; signature, tls or anonymous",
            )
            for method in ("token", "basic", "scram")
        ),
        Void(
            ("listeners", "identity", "trusted_proxies"),
            "clients of tubemq cannot speak for others; leave it out",
        ),
        Void(
            ("listeners", "advertise", "names"),
            "clients of tubemq send no server name; ports",
        ),
        Void(
            ("listeners", "checksums"),
            "checksums of tubemq are left to brokers and consumers; leave it out",
            value="verify",
        ),
        Void(
            ("listeners", "client_metrics"),
            "clients of tubemq tell brokers no metrics; leave it out",
            value="hide",
        ),
        Void(
            ("clusters", "brokers_are"),
            "gateways for tubemq are reached as masters are; leave it out",
            value="gateways",
        ),
        Void(
            ("clusters", "credential"),
            "servers of tubemq are shown no credential of the gateway yet; leave it out",
        ),
        Void(
            ("clusters", "names"),
            "clients of tubemq reach brokers as advertise of a listener says; leave it out",
        ),
        Void(("clusters", "migrations"), "topics of tubemq do not migrate; leave it out"),
    ),
}
"""By protocol: settings that would mislead, because they have no effect."""

MASKED = frozenset({KAFKA.name, TUBEMQ.name})
"""Protocols in which nothing that is not known passes, whatever `unknown` says: peers agree on
versions first, or nobody could say where a request that is not known names brokers."""

UNDER_TLS = {KAFKA.name: ("basic",)}
"""By protocol: methods of `identity` that clients are offered under TLS alone."""


def example(address: str) -> str:
    """Return an example URL of the default protocol, for texts to users."""
    plain = next(name for name, scheme in PLUGINS[DEFAULT].schemes.items() if not scheme.tls)
    return f"{plain}://{address}"


def url_of(protocol: str, brokers: Sequence[Address]) -> str:
    """Return one URL of all these brokers; of those with TLS alone if there are some."""
    secured = [it for it in brokers if it.tls]
    schemes = PLUGINS[protocol].schemes.items()
    name = next(name for name, scheme in schemes if scheme.tls == bool(secured))
    return f"{name}://{','.join(map(str, secured or brokers))}"


def plugin_of(url: str) -> Plugin | None:
    """Return the plugin that has a URL's scheme; None: none has it."""
    scheme = url.partition("://")[0].lower()
    return next((plugin for plugin in PLUGINS.values() if scheme in plugin.schemes), None)
