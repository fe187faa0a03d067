"""The registry of protocols: the one module outside their folders that names them."""

from __future__ import annotations

from gateway.wire.plugin import Plugin
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR

PLUGINS = {plugin.name: plugin for plugin in (PULSAR,)}
"""All protocols, by the names that listeners know them by."""

DEFAULT = PULSAR.name
"""The protocol of listeners that name none."""

SCHEMES = {name: scheme for plugin in PLUGINS.values() for name, scheme in plugin.schemes.items()}
"""The schemes of all URLs that name brokers."""


def example(address: str) -> str:
    """Return a URL of the default protocol, for texts that show what would be right."""
    plain = next(name for name, scheme in PLUGINS[DEFAULT].schemes.items() if not scheme.tls)
    return f"{plain}://{address}"


def plugin_of(url: str) -> Plugin | None:
    """Return the plugin to whose brokers a URL leads, by its scheme."""
    scheme = url.partition("://")[0].lower()
    return next((plugin for plugin in PLUGINS.values() if scheme in plugin.schemes), None)
