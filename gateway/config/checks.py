"""Checks that span several fields of the file.

The checks read plain data, not the model, so that they also find mistakes in a file that has
others. Each skips data of an unexpected shape, which the model reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from gateway import protocols
from gateway.config import units
from gateway.config.mistakes import Mistake, Place, format_place, nearest
from gateway.config.model import METHODS, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS
from gateway.config.store import address

if TYPE_CHECKING:
    from gateway.wire.address import Address
    from gateway.wire.plugin import Plugin

Part = Mapping[str, Any]
Placed = tuple[Place, Part]
"""A mapping of the file, and its place."""


def find_mistakes(data: object) -> Iterator[Mistake]:
    """Find the mistakes that span several fields of a file."""
    if not isinstance(data, Mapping):
        return
    listeners = list(_mappings(data, "listeners"))
    clusters = list(_mappings(data, "clusters"))
    yield from _names_differ(listeners)
    yield from _binds_differ([*listeners, *_mapping(data, "admin")])
    yield from _clusters_exist(listeners, data.get("clusters"))
    yield from _protocols_fit(listeners, data.get("clusters"))
    for place, listener in listeners:
        yield from _identity_fits(listener, place)
    for place, store in _mapping(data, "store"):
        yield from _store_is_secured(store, place)
    for place, cluster in clusters:
        yield from _names_are_of_one_kind(cluster, place)
        yield from _targets_have_effect(cluster, place)


def _mapping(part: Part, key: str, place: Place = ()) -> Iterator[Placed]:
    """Yield the mapping under a key, if there is one."""
    if isinstance(part.get(key), Mapping):
        yield (*place, key), part[key]


def _mappings(part: Part, key: str) -> Iterator[Placed]:
    """Yield the mappings in the list or mapping under a key."""
    found = part.get(key)
    if isinstance(found, Mapping):
        entries = list(found.items())
    else:
        entries = list(enumerate(found)) if isinstance(found, list) else []
    yield from (((key, step), entry) for step, entry in entries if isinstance(entry, Mapping))


# -- listeners -------------------------------------------------------------------------------


def _names_differ(listeners: list[Placed]) -> Iterator[Mistake]:
    first: dict[str, Place] = {}
    for place, listener in listeners:
        name = listener.get("name")
        if isinstance(name, str) and first.setdefault(name, place) != place:
            yield Mistake(
                (*place, "name"), f"is also the name of {format_place(first[name])}; choose another"
            )


def _binds_differ(servers: list[Placed]) -> Iterator[Mistake]:
    taken: list[tuple[Place, Address]] = []
    for place, server in servers:
        for bind in _binds(server.get("bind")):
            for other in [other for other, before in taken if _overlap(bind, before)][:1]:
                text = f"overlaps with {format_place(other)}.bind; choose another port or address"
                yield Mistake((*place, "bind"), text)
            taken.append((place, bind))


def _binds(value: object) -> tuple[Address, ...]:
    try:
        return units.binds(value)
    except ValueError:
        return ()


def _overlap(one: Address, other: Address) -> bool:
    everywhere = {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    hosts = {one.host, other.host}
    return one.port == other.port != 0 and (len(hosts) == 1 or bool(hosts & everywhere))


def _clusters_exist(listeners: list[Placed], clusters: object) -> Iterator[Mistake]:
    known = [str(key) for key in clusters] if isinstance(clusters, Mapping) else []
    for place, listener in listeners:
        name = listener.get("cluster")
        if isinstance(name, str) and name not in known:
            yield Mistake((*place, "cluster"), f"names no cluster; {nearest(name, known)}")


def _protocols_fit(listeners: list[Placed], clusters: object) -> Iterator[Mistake]:
    for place, listener in listeners:
        plugin = _plugin_of(listener.get("cluster"), clusters)
        named = listener.get("protocol", protocols.DEFAULT)
        if plugin and named in list(protocols.PLUGINS) and named != plugin.name:
            text = f"is not that of its cluster, whose brokers speak {plugin.name}; the same"
            yield Mistake((*place, "protocol"), text)


def _plugin_of(name: object, clusters: object) -> Plugin | None:
    """Return the protocol of a cluster, by the first of its brokers."""
    cluster = clusters.get(name) if isinstance(clusters, Mapping) and _is_text(name) else None
    urls = units.brokers(cluster.get("brokers")) if isinstance(cluster, Mapping) else None
    first = urls[0] if isinstance(urls, list) and urls else None
    return protocols.plugin_of(first) if _is_text(first) else None


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


# -- identity --------------------------------------------------------------------------------


def _identity_fits(listener: Part, place: Place) -> Iterator[Mistake]:
    for where, identity in _mapping(listener, "identity", place):
        verifies = identity.get("mode") in ("verify", "verify-and-forward")
        methods = [name for name in METHODS if identity.get(name) is not None]
        if verifies and not methods:
            text = "is missing; verifying needs a secret_file or a public_key_file in it"
            yield Mistake((*where, "token"), text)
        for name in methods if identity.get("mode", "pass-through") == "pass-through" else ():
            text = "has no effect: pass-through verifies nothing; set mode: verify, or leave it out"
            yield Mistake((*where, name), text)
        if identity.get("trusted_proxies") and not verifies:
            text = (
                "has no effect: pass-through trusts no proxies; set mode: verify, or leave it out"
            )
            yield Mistake((*where, "trusted_proxies"), text)
        for inside, token in _mapping(identity, "token", where):
            yield from _key_is_one(token, inside)
            yield from _algorithms_fit(token, inside)


def _key_is_one(token: Part, place: Place) -> Iterator[Mistake]:
    keys = len(token.keys() & {"secret_file", "public_key_file"})
    if keys != 1:
        text = f"has {keys or 'no'} keys; a secret_file or a public_key_file"
        yield Mistake(place, text)


def _algorithms_fit(token: Part, place: Place) -> Iterator[Mistake]:
    fitting = _fitting(token)
    algorithms = units.entries(token.get("algorithms"))
    for index, algorithm in enumerate(algorithms if isinstance(algorithms, list) else ()):
        known = algorithm in SECRET_ALGORITHMS or algorithm in PUBLIC_KEY_ALGORITHMS
        if known and fitting and algorithm not in fitting:
            text = f"does not fit the kind of key; one of {', '.join(fitting)}"
            yield Mistake((*place, "algorithms", index), text)


def _fitting(token: Part) -> tuple[str, ...]:
    """Return the algorithms that fit the one key, or none if there is not exactly one."""
    if ("secret_file" in token) == ("public_key_file" in token):
        return ()
    return SECRET_ALGORITHMS if "secret_file" in token else PUBLIC_KEY_ALGORITHMS


# -- clusters --------------------------------------------------------------------------------


def _targets_have_effect(cluster: Part, place: Place) -> Iterator[Mistake]:
    if cluster.get("brokers_are") == "gateways" and cluster.get("targets") is not None:
        text = "has no effect: gateways know where their brokers are; leave it out"
        yield Mistake((*place, "targets"), text)


def _names_are_of_one_kind(cluster: Part, place: Place) -> Iterator[Mistake]:
    for where, names in _mapping(cluster, "names", place):
        if len(names.keys() & {"sealed", "template"}) != 1:
            yield Mistake(where, "needs one kind of names; either sealed or template")


# -- the store -------------------------------------------------------------------------------


def _store_is_secured(store: Part, place: Place) -> Iterator[Mistake]:
    if store.get("username") is not None and store.get("password_file") is None:
        yield Mistake((*place, "password_file"), "is missing; a user needs a password")
    if store.get("ca_file") is not None and not _has_tls(store.get("url")):
        text = "has no effect: the URL of the store has no TLS; rediss://host:port, or leave it out"
        yield Mistake((*place, "ca_file"), text)


def _has_tls(url: object) -> bool:
    """Return true if the URL has TLS, or is no address, which the model reports."""
    try:
        return address(url).tls
    except ValueError:
        return True
