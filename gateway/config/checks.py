"""Checks that compare several fields of the configuration file.

The checks read the file's plain data, not the model, so that they work even if the file has other
mistakes. Each check skips data of an unexpected shape, because the model reports these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from gateway import protocols
from gateway.config import model, parts, units
from gateway.config.mistakes import Mistake, Place, format_place, nearest
from gateway.config.model import (
    CREDENTIALS,
    KEYS,
    METHODS,
    OF_ISSUERS,
    PUBLIC_KEY_ALGORITHMS,
    SECRET_ALGORITHMS,
)
from gateway.config.store import address
from gateway.wire.address import Address
from gateway.wire.plugin import COMMON

if TYPE_CHECKING:
    from gateway.wire.plugin import Plugin

Part = Mapping[str, Any]
Placed = tuple[Place, Part]
"""A mapping of the file, and its place."""


def find_mistakes(data: object) -> Iterator[Mistake]:
    """Yield the mistakes that show only if several fields are compared. `data`: the file as
    parsed from YAML, before its values are checked."""
    if not isinstance(data, Mapping):
        return
    listeners = list(_mappings(data, "listeners"))
    clusters = list(_mappings(data, "clusters"))
    yield from _names_differ(listeners)
    binding = [*_mapping(data, "admin"), *_mapping(data, "console")]
    yield from _binds_differ([*listeners, *binding])
    yield from _clusters_exist(listeners, data.get("clusters"))
    yield from _protocols_fit(listeners, data.get("clusters"))
    for place, listener in listeners:
        yield from _advertises(listener, place)
        yield from _has_effect(listener, place, protocols.PLUGINS.get(_protocol_of(listener)))
        yield from _identity_fits(listener, place)
        yield from _client_certificates_fit(listener, place)
        yield from _access_fits(listener, place, data)
    yield from _agent_is_asked(data, listeners)
    for place, usage in _mapping(data, "usage"):
        yield from _records_have_topics(usage, place, data.get("clusters"))
    for place, store in _mapping(data, "store"):
        yield from _store_is_secured(store, place)
    for place, cluster in clusters:
        yield from _brokers_speak_alike(cluster, place)
        yield from _has_effect(cluster, place, _plugin_of(place[-1], data.get("clusters")))
        yield from _names_are_of_one_kind(cluster, place)
        yield from _targets_have_effect(cluster, place)
        yield from _tls_has_effect(cluster, place)
        yield from _credential_is_one(cluster, place)
        yield from _principals_are_known(cluster, place, listeners)
        yield from _aged_find_others(cluster, place, listeners)


def _mapping(part: Part, key: str, place: Place = ()) -> Iterator[Placed]:
    """Yield the mapping under a key, if there is one."""
    if isinstance(part.get(key), Mapping):
        yield (*place, key), part[key]


def _mappings(part: Part, key: str) -> Iterator[Placed]:
    """Yield the mappings in the list or mapping under a key."""
    value = part.get(key)
    if isinstance(value, Mapping):
        entries = list(value.items())
    else:
        entries = list(enumerate(value)) if isinstance(value, list) else []
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
        for bind in [*_binds(server.get("bind")), *_node_binds(server)]:
            for other in [other for other, before in taken if _overlap(bind, before)][:1]:
                text = f"overlaps with {format_place(other)}.bind; choose another port or address"
                yield Mistake((*place, "bind"), text)
            taken.append((place, bind))


def _binds(value: object) -> tuple[Address, ...]:
    try:
        return units.binds(value)
    except ValueError:
        return ()


def _node_binds(server: Part) -> tuple[Address, ...]:
    """Return the addresses of brokers' ports; none if they are wrong."""
    for _, advertise in _mapping(server, "advertise"):
        for _, ports in _mapping(advertise, "ports"):
            try:
                ids, first = units.ids(ports.get("ids")), units.port(ports.get("first_port"))
            except ValueError:
                return ()
            hosts = dict.fromkeys(bind.host for bind in _binds(server.get("bind")))
            numbers = range(first, first + len(ids))
            return tuple(Address(host, port) for port in numbers for host in hosts)
    return ()


def _advertises(listener: Part, place: Place) -> Iterator[Mistake]:
    plugin = protocols.PLUGINS.get(_protocol_of(listener))
    if plugin is None or not plugin.numbers_brokers:
        return
    where, advertise = (*place, "advertise"), listener.get("advertise")
    if advertise is None:
        text = f"is missing; clients of {plugin.name} connect to each broker: ports or names"
        yield Mistake(where, text)
    elif isinstance(advertise, Mapping):
        if len(advertise.keys() & {"ports", "names"}) != 1:
            yield Mistake(where, "needs one way to each broker; either ports or names")
        if advertise.get("names") is not None and listener.get("tls") is None:
            text = "tells brokers apart by TLS server names, and the listener has no tls; ports"
            yield Mistake((*where, "names"), text)


def _protocol_of(listener: Part) -> str:
    return str(listener.get("protocol", protocols.DEFAULT))


OF_PROTOCOLS: Mapping[str, type[parts.Part]] = {
    "listeners": model.Listener,
    "listeners.advertise": model.Advertise,
    "listeners.identity": model.Identity,
    "clusters": model.Cluster,
    "clusters.credential": model.Credential,
    "clusters.credential.basic": model.Password,
}
"""The parts of the file, by path, of whose settings each protocol has only some."""


def _has_effect(part: Part, place: Place, plugin: Plugin | None) -> Iterator[Mistake]:
    """Find settings of a listener or a cluster that its protocol does not have."""
    if plugin is not None:
        yield from _lacks(part, place, str(place[0]), plugin)


def _lacks(part: Part, place: Place, path: str, plugin: Plugin) -> Iterator[Mistake]:
    for name, value in _chosen(part, OF_PROTOCOLS[path]):
        setting = f"{path}.{name}"
        lacking = [choice for choice in (setting, f"{setting}={value}") if not _has(plugin, choice)]
        for choice in lacking[:1]:
            yield Mistake((*place, name), f"has no effect: {plugin.why_not(choice)}")
        # In pass-through nothing of an identity has an effect, which is told elsewhere.
        in_force = name != "identity" or _verifies(part)
        if isinstance(value, Mapping) and setting in OF_PROTOCOLS and in_force and not lacking:
            yield from _lacks(value, (*place, name), setting, plugin)


def _has(plugin: Plugin, setting: str) -> bool:
    """Return whether a protocol has a setting; of a value of one, unless only others have it."""
    if "=" in setting and setting not in protocols.CHOICES:
        return True
    return setting in COMMON or setting in plugin.settings


def _chosen(part: Part, kind: type[parts.Part]) -> Iterator[tuple[str, object]]:
    """Yield the settings of a part that are not left at their defaults."""
    for name, field in kind.model_fields.items():
        value = part.get(name)
        usual = field.default
        if isinstance(usual, bool) and _is_text(value):  # of an environment variable
            value = value.lower() == "true"
        if value not in (None, "", [], usual):
            yield name, value


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
            text = "is missing; verifying needs a key of those who issue tokens in it"
            yield Mistake((*where, "token"), text)
        for name in methods if identity.get("mode", "pass-through") == "pass-through" else ():
            text = "has no effect: pass-through verifies nothing; set mode: verify, or leave it out"
            yield Mistake((*where, name), text)
        if identity.get("trusted_proxies") and not verifies:
            text = (
                "has no effect: pass-through trusts no proxies; set mode: verify, or leave it out"
            )
            yield Mistake((*where, "trusted_proxies"), text)
        if identity.get("trusted_proxies") and identity.get("anonymous") is not None:
            text = "would let anybody be one of them, with anonymous; use two listeners"
            yield Mistake((*where, "trusted_proxies"), text)
        if identity.get("principals") and not verifies:
            text = "has no effect: pass-through knows no names; set mode: verify, or leave it out"
            yield Mistake((*where, "principals"), text)
        if identity.get("tls") is not None and not _asks_for_certificates(listener):
            text = "has no effect: clients show no certificate; set tls.client_certificates"
            yield Mistake((*where, "tls"), text)
        if verifies and listener.get("tls") is None:
            yield from _passwords_are_hidden(listener, where, methods)
        for inside, token in _mapping(identity, "token", where):
            yield from _issuers_fit(token, inside)


def _passwords_are_hidden(listener: Part, place: Place, methods: list[str]) -> Iterator[Mistake]:
    """Find methods that clients of a listener without TLS are not offered."""
    plugin = protocols.PLUGINS.get(_protocol_of(listener))
    for name in (method for method in methods if plugin is not None and method in plugin.under_tls):
        text = "is not offered to clients without TLS; tls of the listener, or scram in its place"
        yield Mistake((*place, name), text)


def _verifies(listener: Part) -> bool:
    identity = listener.get("identity")
    return isinstance(identity, Mapping) and identity.get("mode", "pass-through") != "pass-through"


def _asks_for_certificates(listener: Part) -> bool:
    tls = listener.get("tls")
    return isinstance(tls, Mapping) and tls.get("client_certificates", "none") != "none"


def _client_certificates_fit(listener: Part, place: Place) -> Iterator[Mistake]:
    for where, tls in _mapping(listener, "tls", place):
        asks = _asks_for_certificates(listener)
        if asks and tls.get("client_ca_file") is None:
            text = "is missing; the file of the authorities that sign clients' certificates"
            yield Mistake((*where, "client_ca_file"), text)
        for name in ("client_ca_file", "crl_files"):
            if tls.get(name) and not asks:
                text = "has no effect: clients show no certificate; set client_certificates"
                yield Mistake((*where, name), text)


def _access_fits(listener: Part, place: Place, data: Part) -> Iterator[Mistake]:
    access, where = listener.get("access", "open"), (*place, "access")
    if access == "open":
        return
    if access == "opa" and not data.get("opa"):
        text = "asks a policy agent, but none is named; name its url in opa"
        yield Mistake(where, text)
    elif access != "opa" and not data.get("rules"):
        text = "lets nobody do anything, as there are no rules that allow it; name files in rules"
        yield Mistake(where, text)
    plugin = protocols.PLUGINS.get(_protocol_of(listener))
    masked = listener.get("unknown") == "mask" or (plugin is not None and plugin.masks)
    if access in ("closed", "opa") and not masked:
        text = "lets commands pass that are not known, and whose rights are not; unknown: mask"
        yield Mistake(where, text)


def _agent_is_asked(data: Part, listeners: Iterable[Placed]) -> Iterator[Mistake]:
    if data.get("opa") and not any(listener.get("access") == "opa" for _, listener in listeners):
        text = "has no effect: no listener asks it; set access: opa of one, or remove it"
        yield Mistake(("opa",), text)


def _issuers_fit(token: Part, place: Place) -> Iterator[Mistake]:
    listed = [((*place, *where), issuer) for where, issuer in _mappings(token, "issuers")]
    unused = listed and not _key_settings(token)
    for setting in sorted(set(token) & set(OF_ISSUERS)) if unused else ():
        yield Mistake((*place, setting), "has no effect: each of issuers has its own")
    issuers = listed if unused else [(place, token), *listed]
    first: dict[object, Place] = {}
    for where, issuer in issuers:
        yield from _key_is_one(issuer, where)
        yield from _algorithms_fit(issuer, where)
        name = issuer.get("issuer")
        if (name is None or _is_text(name)) and first.setdefault(name, where) != where:
            other = format_place(first[name])
            text = f"is the same as of {other}; tokens must tell their issuers apart"
            yield Mistake((*where, "issuer"), text)


def _key_settings(issuer: Part) -> list[str]:
    return [name for name in KEYS if issuer.get(name)]


def _key_is_one(issuer: Part, place: Place) -> Iterator[Mistake]:
    keys = _key_settings(issuer)
    if len(keys) != 1:
        text = f"has {len(keys) or 'no'} keys; one of {', '.join(KEYS)}"
        yield Mistake(place, text)
    if "discovery" in keys:
        try:
            units.https(issuer.get("issuer"))
        except ValueError as why:
            yield Mistake((*place, "issuer"), f"cannot be discovered: {why}")
    if issuer.get("ca_file") and not {"discovery", "jwks_url"} & set(keys):
        text = "has no effect: nothing is fetched; with jwks_url or discovery, or leave it out"
        yield Mistake((*place, "ca_file"), text)


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
    keys = _key_settings(token)
    if len(keys) != 1:
        return ()
    return SECRET_ALGORITHMS if keys == ["secret_file"] else PUBLIC_KEY_ALGORITHMS


# -- clusters --------------------------------------------------------------------------------


def _brokers_speak_alike(cluster: Part, place: Place) -> Iterator[Mistake]:
    urls = units.brokers(cluster.get("brokers"))
    listed = [url for url in urls if _is_text(url)] if isinstance(urls, list) else []
    spoken = [plugin.name for url in listed if (plugin := protocols.plugin_of(url.strip()))]
    if len(set(spoken)) > 1:
        named = " and ".join(dict.fromkeys(spoken))
        text = f"speak different protocols, {named}; a cluster for each"
        yield Mistake((*place, "brokers"), text)


def _targets_have_effect(cluster: Part, place: Place) -> Iterator[Mistake]:
    if cluster.get("brokers_are") == "gateways" and cluster.get("targets") is not None:
        text = "has no effect: gateways know where their brokers are; leave it out"
        yield Mistake((*place, "targets"), text)


def _credential_is_one(cluster: Part, place: Place) -> Iterator[Mistake]:
    for where, credential in _mapping(cluster, "credential", place):
        given = [name for name in CREDENTIALS if credential.get(name)]
        if len(given) != 1:
            names = " and ".join(given) or "none"
            yield Mistake(where, f"is {names}; exactly one of {', '.join(CREDENTIALS)}")
        tls = cluster.get("tls")
        if "tls" in given and not (isinstance(tls, Mapping) and tls.get("certificate")):
            text = "shows a certificate that is not named; set tls.certificate of the cluster"
            yield Mistake((*where, "tls"), text)
        for inside, oauth in _mapping(credential, "oauth2", where):
            if len(oauth.keys() & {"token_url", "issuer"}) != 1:
                yield Mistake(inside, "needs one place to ask; either token_url or issuer")


def _principals_are_known(
    cluster: Part, place: Place, listeners: list[Placed]
) -> Iterator[Mistake]:
    of = [listener for _, listener in listeners if listener.get("cluster") == place[-1]]
    for where, header in _mapping(cluster, "proxy_protocol", place):
        if header.get("principal") is True and of and not any(map(_verifies, of)):
            text = "has no effect: no listener of the cluster verifies clients; leave it out"
            yield Mistake((*where, "principal"), text)


def _tls_has_effect(cluster: Part, place: Place) -> Iterator[Mistake]:
    urls = units.brokers(cluster.get("brokers"))
    listed = [url for url in urls if _is_text(url)] if isinstance(urls, list) else []
    schemes = [name for name, scheme in protocols.SCHEMES.items() if scheme.tls]
    says_tls = any(url.partition("://")[0].strip().lower() in schemes for url in listed)
    if cluster.get("tls") is not None and listed and not says_tls:
        right = " or ".join(f"{name}://host:port" for name in schemes)
        text = f"has no effect: no broker's URL says TLS; {right}"
        yield Mistake((*place, "tls"), text)


def _names_are_of_one_kind(cluster: Part, place: Place) -> Iterator[Mistake]:
    for where, names in _mapping(cluster, "names", place):
        if len(names.keys() & {"sealed", "template"}) != 1:
            yield Mistake(where, "needs one kind of names; either sealed or template")


def _aged_find_others(cluster: Part, place: Place, listeners: list[Placed]) -> Iterator[Mistake]:
    names = cluster.get("names")
    sealed = names.get("sealed") if isinstance(names, Mapping) else None
    if isinstance(sealed, Mapping) and sealed.get("keys"):
        return
    for where, listener in listeners:
        plugin = protocols.PLUGINS.get(_protocol_of(listener))
        if plugin is None or plugin.numbers_brokers:  # whose addresses are the same everywhere
            continue
        if listener.get("cluster") == place[-1] and listener.get("connection_age") is not None:
            yield Mistake(
                (*where, "connection_age"),
                "moves clients to gateways that cannot open this one's names; give all the same "
                f"{format_place((*place, 'names', 'sealed', 'keys'))}",
            )


# -- usage records ---------------------------------------------------------------------------

RECORDS_PROTOCOL = "pulsar"
"""The protocol of the topics that get records: its client library sends them."""


def _records_have_topics(usage: Part, place: Place, clusters: object) -> Iterator[Mistake]:
    known = [str(key) for key in clusters] if isinstance(clusters, Mapping) else []
    for where, topic in _mapping(usage, "topic", place):
        name = topic.get("cluster")
        plugin = _plugin_of(name, clusters)
        if _is_text(name) and name not in known:
            yield Mistake((*where, "cluster"), f"names no cluster; {nearest(name, known)}")
        elif plugin is not None and plugin.name != RECORDS_PROTOCOL:
            text = f"speaks {plugin.name}; a cluster that speaks {RECORDS_PROTOCOL}"
            yield Mistake((*where, "cluster"), text)
        for setting in ("records", "events"):
            wrong = _wrong_topic(topic.get(setting))
            if wrong:
                yield Mistake((*where, setting), wrong)
        if topic.get("events") is not None and usage.get("events") is False:
            text = "has no effect: no events are written; set usage.events: true, or leave it out"
            yield Mistake((*where, "events"), text)
        if topic.get("events") is not None and topic.get("events") == topic.get("records"):
            text = "is also the topic of records, which are of another kind; choose another"
            yield Mistake((*where, "events"), text)


def _wrong_topic(name: object) -> str:
    """Return what is wrong with the name of a topic that gets records; empty: nothing."""
    if not _is_text(name):
        return ""
    topic = protocols.PLUGINS[RECORDS_PROTOCOL].read_topic(name)
    if topic is None or topic.whole != name or not name.startswith("persistent://"):
        return "is no whole name of a topic that is kept; persistent://tenant/namespace/topic"
    if topic.tenant == RECORDS_PROTOCOL:
        return "is in the tenant of the brokers' own topics; a topic of another tenant"
    return ""


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
