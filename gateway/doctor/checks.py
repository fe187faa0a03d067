"""What the doctor needs of a protocol: checks of its brokers, which the protocol's plugin names."""

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
    """The checks of one cluster.

    `modes`: identity modes of its listeners. `own`: the gateway's credential for these brokers,
    None if unusable. `role`: the role that it states. `names`: of the template, if any. `tls`:
    makes TLS streams to brokers; None if none speaks TLS, or its files are wrong. `listeners`:
    those that lead there. `largest`: bytes of the largest message that may pass where some are held
    whole; None: none is.
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
        """Return what puts TLS over a socket to a broker; None if it is dialled without."""
        if not broker.tls or self.tls is None:
            return None
        return Secure(broker.host, partial(self.tls.stream, host=broker.host))

    def trust(self, broker: Address) -> Trust:
        """Return what the gateway trusts where it dials a broker."""
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

    `connected`: one for each IP address. `others`: all further ones. `advertised`: addresses that
    the broker leads clients to. `ids`: of all brokers that it tells of, where brokers have some.
    """

    connected: Sequence[Finding]
    others: Sequence[Finding] = ()
    advertised: Collection[Address] = field(default_factory=set)
    ids: Collection[int] = frozenset()


class Spoken(NamedTuple):
    """What a peer speaks (`words`: "speaks HTTP"), and whether it is this protocol."""

    is_protocol: bool
    words: str


class Checks(Protocol):
    """The module of a protocol's checks. `ADVERTISED_BY`: the broker's setting of the address that
    it leads clients to, and where it is."""

    ADVERTISED_BY: str

    async def examine_broker(
        self, plan: Plan, broker: Address, addresses: Sequence[Address]
    ) -> Examined:
        """Check one broker at all its IP addresses, which speak TLS if it does."""
        ...

    async def identify(
        self, network: Network, address: Address, secure: Secure | None
    ) -> Spoken | None:
        """Return what a peer at an IP address speaks, under TLS if `secure` is given; None without
        an answer."""
        ...


def checks_of(plugin: Plugin) -> Checks:
    """Return the checks of a protocol."""
    return cast("Checks", import_module(plugin.checks))
