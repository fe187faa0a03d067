"""The interface of a protocol's own checks of its brokers. The plugin of the protocol names the
module with these checks."""

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
    """What the checks of one cluster need to know.

    `modes`: the identity modes of the cluster's listeners. `own`: the gateway's credential for
    these brokers; None if it cannot be used. `role`: the role that this credential states; None if
    it states none. `names`: the template of the brokers' names for clients; None if there is no
    template. `tls`: makes TLS streams to brokers; None if no broker speaks TLS, or if a TLS file is
    wrong. `listeners`: the listeners in front of the cluster.
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
        """Return whether the brokers authenticate clients by the clients' own credentials."""
        return "pass-through" in self.modes or not self.modes

    @property
    def verifying(self) -> bool:
        """Return whether the gateway presents its own credential to brokers for any listener."""
        return bool(set(self.modes) - {"pass-through"})

    @property
    def forwards(self) -> bool:
        """Return whether the gateway always presents both its own credential and the client's to
        the brokers."""
        return self.verifying and "verify" not in self.modes


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings for one broker.

    `connected`: one finding for each IP address of the broker. `others`: all further findings.
    `advertised`: the addresses to which the broker directs clients. `ids`: the ids of all brokers
    that this broker lists, in protocols whose brokers have ids.
    """

    connected: Sequence[Finding]
    others: Sequence[Finding] = ()
    advertised: Collection[Address] = field(default_factory=set)
    ids: Collection[int] = frozenset()


class Spoken(NamedTuple):
    """Which protocol a peer speaks. `is_protocol`: it is the expected protocol. `words`: a phrase
    about the peer for texts, such as "speaks HTTP"."""

    is_protocol: bool
    words: str


class Checks(Protocol):
    """The interface of a module with one protocol's checks. `ADVERTISED_BY`: the broker's setting
    for the address that it advertises, with the place of this setting, for texts."""

    ADVERTISED_BY: str

    async def examine_broker(
        self, plan: Plan, broker: Address, addresses: Sequence[Address]
    ) -> Examined:
        """Check one broker at each of its IP addresses. TLS is used if the broker speaks TLS."""
        ...

    async def identify(
        self, network: Network, address: Address, secure: Secure | None
    ) -> Spoken | None:
        """Return which protocol the peer at an IP address speaks; None if no connection can be
        established. `secure`: the TLS of the connection; None: no TLS."""
        ...


def checks_of(plugin: Plugin) -> Checks:
    """Return the module with the checks of a protocol."""
    return cast("Checks", import_module(plugin.checks))
