"""A topic's name, taken apart for labels.

Pulsar's forms (TopicName): `persistent://tenant/namespace/topic`, the older
`persistent://tenant/cluster/namespace/topic`, those of scalable topics (`topic://` and
`segment://`, whose last part may hold slashes), and short ones, `topic` and
`tenant/namespace/topic`. Whatever else there is is a name without parts.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.figures import OTHER

# What Pulsar takes where a short name says nothing.
_DOMAIN = "persistent"
_NAMESPACE = "public/default"

_PARTS = 3
_OLDER_PARTS = 4

_SCALABLE = frozenset({"topic", "segment"})

# Brokers keep a topic's name in paths and file names, where 255 is usual. It bounds what a
# client that invents names can write into every scrape.
_LONGEST = 512


class TopicName(NamedTuple):
    """`topic` is the full name, as the broker's own metrics have it."""

    tenant: str
    namespace: str
    topic: str


def parsed(name: str) -> TopicName:
    """Take a name apart; parts that it does not have are empty. Never fails."""
    if name == OTHER:
        return TopicName("", "", name)
    full = _full(name)
    domain, _, path = full.partition("://")
    parts = _PARTS if domain in _SCALABLE else _OLDER_PARTS
    match path.split("/", parts - 1):
        case [tenant, namespace, local] if tenant and namespace and local:
            return TopicName(tenant[:_LONGEST], namespace[:_LONGEST], full[:_LONGEST])
        case [tenant, cluster, namespace, local] if tenant and cluster and namespace and local:
            older = f"{cluster}/{namespace}"
            return TopicName(tenant[:_LONGEST], older[:_LONGEST], full[:_LONGEST])
    return TopicName("", "", name[:_LONGEST])


def _full(name: str) -> str:
    if "://" in name:
        return name
    slashes = name.count("/")
    if slashes == _PARTS - 1:
        return f"{_DOMAIN}://{name}"
    return f"{_DOMAIN}://{_NAMESPACE}/{name}" if name and not slashes else name
