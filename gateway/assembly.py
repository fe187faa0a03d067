"""Makes the parts of each package from the configuration.

Here is what a part is made of; who gets it is the affair of `app`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from gateway.brokers.names import ChainedNames, Names, SealedNames, TemplateNames
from gateway.brokers.seal import SealKey
from gateway.plane.state import PlaneSettings
from gateway.protocols import DEFAULT
from gateway.system import machine
from gateway.telemetry.figures import ReloadFigures
from gateway.wire.plugin import FrameBounds

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    from gateway.config import model
    from gateway.control.services import Verifier
    from gateway.control.shaper import Shaper
    from gateway.fleet.store import Store
    from gateway.fleet.supplier import Supplier
    from gateway.plane.reactor import Reactor
    from gateway.policy.supply import Supply
    from gateway.reload.reloader import Reloader
    from gateway.wire.address import Address


PARENT_TIMEOUT = 1.0
"""Seconds for an answer of the parent of workers, which may wait for its turn on a busy machine. It
has nothing else to do: one that does not answer has died, and its workers with it."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """What there is where there are rules."""

    shaper: Shaper
    reloader: Reloader
    figures: ReloadFigures
    sharing: Sharing | None


@dataclass(frozen=True, slots=True)
class Sharing:
    """What there is where limits are shared with other processes."""

    store: Store
    supplier: Supplier

    async def run(self) -> None:
        """Share until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.store.run)
            nursery.start_soon(self.supplier.run)


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a worker has of its parent: sockets that listen, by listener; by cluster the secrets
    that seal names, where no keys are configured: all workers open what one has sealed.
    """

    sockets: Mapping[str, Sequence[socket.socket]]
    seals: Mapping[str, bytes]


LEAST_ADMIN_CONNECTIONS = 64
"""Where clients may use up all descriptors: probes, scrapers and people still have these."""


def admin_connections(setting: int, clients: int) -> int:
    """How many connections the admin listener may have: as many as are set, but no more than so
    many clients leave of the process's descriptors.
    """
    there = machine.descriptors()
    if there is None:
        return setting
    return max(LEAST_ADMIN_CONNECTIONS, min(setting, there - machine.descriptors_for(clients)))


def plane_settings(configuration: model.Configuration) -> PlaneSettings:
    return PlaneSettings(
        buffer=configuration.data_plane.buffer,
        turn=configuration.data_plane.turn,
        idle=configuration.deadlines.idle,
        silent=configuration.deadlines.silent,
        stalled=configuration.deadlines.stalled,
        frame=configuration.deadlines.frame,
        memory=configuration.limits.waiting,
        held=configuration.limits.all_held,
        collected=configuration.limits.all_collected,
        opening=configuration.limits.all_handshakes,
        held_for=configuration.deadlines.held,
    )


def bounds(limits: model.ResourceLimits) -> FrameBounds:
    """Return what one connection may send."""
    return FrameBounds(
        collected=limits.collected_frame,
        all_collected=limits.all_collected,
        command=limits.command,
        fields=limits.fields,
        names=limits.name,
        text=limits.text,
    )


def rules(
    configuration: model.Configuration, reactor: Reactor, store: Store | None
) -> RateLimiting | None:
    """Imported only where there are rules. `store`: what limits are shared by where none is
    configured, by which workers share with those of other gateways, too."""
    paths = configuration.rules
    if not paths:
        return None
    from gateway.control.shaper import Shaper
    from gateway.policy.matching import RuleSet
    from gateway.policy.supply import Supply
    from gateway.reload.files import signs
    from gateway.reload.reloader import Reloader
    from gateway.rules import files

    seen = frozenset(signs(paths))  # before they are read: what changes from here on is read again
    found = files.rules_of(files.load(paths))
    compiled = RuleSet.compile(found)
    store = _store(configuration) or store
    supply = Supply() if store is not None else None
    shaper, figures = Shaper(compiled, reactor, supply), ReloadFigures(time.time())
    reloader = Reloader(paths, compiled, shaper.adopt, figures, seen)
    sharing = _sharing(configuration, store, supply, shaper) if store and supply else None
    return RateLimiting(shaper, reloader, figures, sharing)


def _store(configuration: model.Configuration) -> Store | None:
    if configuration.store is None:
        return None
    from gateway.fleet.stores import store_of

    return store_of(configuration.store)


def _sharing(
    configuration: model.Configuration, store: Store, supply: Supply, shaper: Shaper
) -> Sharing:
    from gateway.fleet.supplier import Supplier

    timeout = PARENT_TIMEOUT if configuration.store is None else configuration.store.timeout
    return Sharing(store, Supplier(store, supply, shaper.supplied, timeout))


def names(name: str, cluster: model.Cluster, secret: bytes | None = None) -> Names:
    """How brokers are named. `secret`: what seals where no keys are configured, else a new one."""
    names = cluster.names
    if names.template is not None:
        return TemplateNames(names.template.advertise, names.template.broker)
    keys = names.sealed.keys if names.sealed is not None else ()
    sealing = [SealKey.from_file(key.file) for key in keys]
    sealing = sealing or [SealKey(secret) if secret else SealKey.random()]
    if cluster.brokers_are == "gateways":
        # Under one key, too, our names and theirs must not be taken for each other.
        return ChainedNames(SealedNames(f"{name} of gateways", sealing))
    return SealedNames(name, sealing)


def protocol(configuration: model.Configuration, cluster: str) -> str:
    """Return the protocol of a cluster: that of its listeners, which all have the same one."""
    listeners = (it.protocol for it in configuration.listeners if it.cluster == cluster)
    return next(listeners, DEFAULT)


def migrations(cluster: model.Cluster) -> dict[Address, Address]:
    """Gateways of other clusters, by the brokers there."""
    return {broker: to.gateway for to in cluster.migrations for broker in to.brokers}


def verifiers(identity: model.Identity) -> dict[str, Verifier]:
    """By authentication method. Imported only where tokens are verified: 12 MB, 40 ms."""
    token = identity.token
    if identity.mode == "pass-through" or token is None:
        return {}
    from gateway.identity.keys import public_key, secret_key
    from gateway.identity.token import TokenVerifier

    secrets = [secret_key(path) for path in [token.secret_file] if path]
    keys = [public_key(path) for path in [token.public_key_file] if path]
    verifier = TokenVerifier(
        [*secrets, *keys],
        token.algorithms,
        principal_claim=token.principal_claim,
        clock_skew=token.clock_skew,
        audience=token.audience,
        issuer=token.issuer,
    )
    return {"token": verifier}
