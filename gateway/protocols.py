"""The registry of protocols: the one module outside their folders that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


CHOICES = frozenset(
    setting for plugin in PLUGINS.values() for setting in plugin.settings if "=" in setting
)
"""Values of settings that not every protocol has, as `setting=value`."""


def example(address: str) -> str:
    """Return an example URL of the default protocol, for texts to users."""
    plain = next(name for name, scheme in PLUGINS[DEFAULT].schemes.items() if not scheme.tls)
    return f"{plain}://{address}"


def url_of(protocol: str, brokers: Sequence[Address]) -> str:
    """Return one URL that lists these brokers. If some of them have TLS, it lists only those."""
    secured = [broker for broker in brokers if broker.tls]
    schemes = PLUGINS[protocol].schemes.items()
    name = next(name for name, scheme in schemes if scheme.tls == bool(secured))
    return f"{name}://{','.join(map(str, secured or brokers))}"


def plugin_of(url: str) -> Plugin | None:
    """Return the plugin of the protocol to which the scheme of a URL belongs; None if it belongs to
    no protocol."""
    scheme = url.partition("://")[0].lower()
    return next((plugin for plugin in PLUGINS.values() if scheme in plugin.schemes), None)
