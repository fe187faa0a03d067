"""The interface of a protocol's own checks of its brokers; the protocol's plugin names their
module."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.doctor.finding import Finding
from gateway.doctor.insecure import Trust
from gateway.doctor.reach import Network
from gateway.doctor.secured import Secure
from gateway.identity.credential import StoredCredential
from gateway.tls.sides import ClientSide
from gateway.wire.address import Address
from gateway.wire.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Plan:
    """What the checks of one cluster begin with.

    `modes`: identity modes of its listeners. `own`: the gateway's credential for these brokers;
    None if it cannot be used. `role`: the role that this credential states; None if it states none.
    `names`: the template of brokers' names towards clients; None without one. `tls`: makes TLS
    streams to brokers; None if no broker speaks TLS, or a file of TLS is wrong. `listeners`: the
    listeners in front of the cluster. `largest`: bytes of the largest message that may pass where
    the gateway holds some messages whole; None if it holds none.
    """

    name: str
    protocol: str
    cluster: model.Cluster
    modes: Collection[str]
    own: StoredCredential | None
    role: str | None
    names: TemplateNames | None
    network: Network
    tls: ClientSide | None = None
    listeners: Sequence[model.Listener] = ()
    largest: int | None = None

    def secure(self, broker: Address) -> Secure | None:
        """Return the TLS for connections to a broker; None if the broker is dialled without TLS."""
        if not broker.tls or self.tls is None:
            return None
        return Secure(broker.host, partial(self.tls.stream, host=broker.host))

    def trust(self, broker: Address) -> Trust:
        """Return the TLS settings by which the gateway trusts a broker."""
        return Trust(self.name, self.cluster.tls or model.ClusterTls(), broker.host)

    @property
    def passes_through(self) -> bool:
        """Return whether brokers see clients' own credentials."""
        return "pass-through" in self.modes or not self.modes

    @property
    def verifying(self) -> bool:
        """Return whether brokers see the gateway's credential."""
        return bool(set(self.modes) - {"pass-through"})

    @property
    def forwards(self) -> bool:
        """Return whether brokers always see both the gateway's credential and a client's."""
        return self.verifying and "verify" not in self.modes


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings for one broker.

    `connected`: one finding for each IP address. `others`: all further findings. `advertised`:
    addresses to which the broker directs clients. `ids`: the ids of all brokers that it names, in
    protocols whose brokers have ids.
    """

    connected: Sequence[Finding]
    others: Sequence[Finding] = ()
    advertised: Collection[Address] = field(default_factory=set)
    ids: Collection[int] = frozenset()


class Spoken(NamedTuple):
    """The protocol that a peer speaks. `is_protocol`: it is the expected protocol. `words`: a
    phrase for texts, such as "speaks HTTP"."""

    is_protocol: bool
    words: str


class Checks(Protocol):
    """The interface of a module with one protocol's checks. `ADVERTISED_BY`: the name and the place
    of the broker's setting for the address that it advertises, for texts."""

    ADVERTISED_BY: str

    async def examine_broker(
        self, plan: Plan, broker: Address, addresses: Sequence[Address]
    ) -> Examined:
        """Check one broker at each of its IP addresses, with TLS if the broker has TLS."""
        ...

    async def identify(
        self, network: Network, address: Address, secure: Secure | None
    ) -> Spoken | None:
        """Return which protocol a peer at an IP address speaks; None if it cannot be connected to.
        `secure`: TLS of the connection; None: without TLS."""
        ...


def checks_of(plugin: Plugin) -> Checks:
    """Return the module with the checks of a protocol."""
    return cast("Checks", import_module(plugin.checks))
