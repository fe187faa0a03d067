"""Makes the parts of each package from the configuration; `app` connects them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import trio

from gateway.brokers.names import ChainedNames, Names, SealedNames, TemplateNames
from gateway.brokers.seal import SealKey
from gateway.plane.state import PlaneSettings
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
    from gateway.reload.reloader import Reloader


PARENT_TIMEOUT = 1.0
"""Seconds in which the workers' parent must answer; on a busy machine it may wait for CPU. The
parent has no other work: without an answer it has died, and its workers with it."""

LEAST_ADMIN_CONNECTIONS = 64
"""Admin connections for probes, scrapers and people even if clients may use up all descriptors."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """The parts of a gateway with rules."""

    shaper: Shaper
    reloader: Reloader
    figures: ReloadFigures
    sharing: Sharing | None


@dataclass(frozen=True, slots=True)
class Sharing:
    """The parts of a gateway that shares limits with other processes."""

    store: Store
    supplier: Supplier

    async def run(self) -> None:
        """Share limits until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.store.run)
            nursery.start_soon(self.supplier.run)


@dataclass(frozen=True, slots=True)
class Inherited:
    """The parts that a worker gets from its parent.

    `sockets`: listening sockets, by listener. `seals`: secrets for sealed names, by cluster, used
    if no keys are configured, so that all workers can open each other's names.
    """

    sockets: Mapping[str, Sequence[socket.socket]]
    seals: Mapping[str, bytes]


def admin_connections(setting: int, clients: int) -> int:
    """Return the maximum of admin connections: the setting, or fewer if `clients` client
    connections leave fewer descriptors of the process."""
    descriptors = machine.descriptors()
    if descriptors is None:
        return setting
    left = descriptors - machine.descriptors_for(clients)
    return max(LEAST_ADMIN_CONNECTIONS, min(setting, left))


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


def frame_bounds(limits: model.ResourceLimits) -> FrameBounds:
    """Return the bounds of frames that one connection may send."""
    return FrameBounds(
        collected=limits.collected_frame,
        all_collected=limits.all_collected,
        command=limits.command,
        fields=limits.fields,
        names=limits.name,
        text=limits.text,
    )


def make_rate_limiting(
    configuration: model.Configuration, reactor: Reactor, store: Store | None
) -> RateLimiting | None:
    """Return the rate limiting, or None without rules; its packages are imported only with rules.

    `store`: used if no store is configured. Through a configured store, workers share limits with
    the workers of other gateways too.
    """
    paths = configuration.rules
    if not paths:
        return None
    from gateway.control.shaper import Shaper
    from gateway.policy.matching import RuleSet
    from gateway.policy.supply import Supply
    from gateway.reload.files import signs
    from gateway.reload.reloader import Reloader
    from gateway.rules import files

    seen = frozenset(signs(paths))  # before reading, so that any later change is noticed
    found = files.rules_of(files.load(paths))
    compiled = RuleSet.compile(found)
    timeout = PARENT_TIMEOUT
    if configuration.store is not None:
        from gateway.fleet.stores import store_of

        store, timeout = store_of(configuration.store), configuration.store.timeout
    supply = Supply() if store is not None else None
    shaper, figures = Shaper(compiled, reactor, supply), ReloadFigures(time.time())
    reloader = Reloader(paths, compiled, shaper.adopt, figures, seen)
    sharing = None
    if store is not None and supply is not None:
        from gateway.fleet.supplier import Supplier

        sharing = Sharing(store, Supplier(store, supply, shaper.supplied, timeout))
    return RateLimiting(shaper, reloader, figures, sharing)


def make_names(name: str, cluster: model.Cluster, secret: bytes | None = None) -> Names:
    """Return the advertised names of a cluster's brokers. `secret`: seals them if no keys are
    configured; None: a new random secret."""
    names = cluster.names
    if names.template is not None:
        return TemplateNames(names.template.advertise, names.template.broker)
    keys = names.sealed.keys if names.sealed is not None else ()
    sealing = [SealKey.from_file(key.file) for key in keys]
    sealing = sealing or [SealKey(secret) if secret else SealKey.random()]
    if cluster.brokers_are == "gateways":
        # Both gateways may have the same key, but their names must differ.
        return ChainedNames(SealedNames(f"{name} of gateways", sealing))
    return SealedNames(name, sealing)


def make_verifiers(identity: model.Identity) -> dict[str, Verifier]:
    """Return verifiers by authentication method.

    Their packages are imported only if tokens are verified, because that takes 12 MB and 40 ms.
    """
    methods = identity.methods()
    return {name: import_module(it.verified_by).make_verifier(it) for name, it in methods.items()}
