"""Identity, policy and brokers together, as the answers that a protocol session asks for.

One for each listener. Everything is in memory: each method answers at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import Names
from gateway.identity.credential import OwnCredential
from gateway.policy.accounts import AccountBook
from gateway.telemetry.figures import ClusterFigures
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Principal, Refusal
from gateway.wire.services import Again, LookupOutcome
from gateway.wire.subject import Caller, Subject


class Proof(Protocol):
    """A credential that was found good."""

    @property
    def name(self) -> str: ...

    @property
    def expires_at(self) -> float | None: ...


class Verifier(Protocol):
    """Checks the credentials of clients. `now`: wall-clock seconds, for what expires."""

    def verify(self, data: bytes, now_wall: float) -> Proof | Denial: ...


class RateLimits(Protocol):
    """What rules limit. All listeners of a process share it."""

    @property
    def paced(self) -> Collection[Action]: ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None
    ) -> float | Again | Denial: ...

    def admit(self, account: Account, *, again: bool) -> Denial | None: ...

    def wants(self, account: Account) -> bool: ...

    def is_in_debt(self, account: Account) -> bool: ...

    def release(self, account: Account) -> None: ...


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """What all listeners of one cluster share. `name`: the cluster's.

    `migrations`: the gateways of other clusters, by the brokers there.
    """

    name: str
    names: Names
    learned: LearnedHosts
    credential: OwnCredential
    accounts: AccountBook
    figures: ClusterFigures
    migrations: Mapping[Address, Address] = field(default_factory=dict)


_NO_GATEWAY = Denial(Refusal.NOT_READY, "no gateway is known for the cluster of this broker")
_NO_METHOD = Denial(Refusal.UNAUTHENTICATED, "a credential of method token is needed")


def _unheard(event: str, **values: object) -> None:
    """A log that nobody reads."""


def _always(_account: Account) -> bool:
    return True


def _never(_account: Account) -> bool:
    return False


class ListenerServices:
    """See `wire.services.Services`. `verifiers`: by authentication method; none for pass-through.

    `log(event, **values)` is told what an operator must mend. `name`: the listener's. `limits`: of
    all rules; None: there are none.
    """

    def __init__(
        self,
        cluster: ClusterParts,
        verifiers: dict[str, Verifier],
        log: Callable[..., object] = _unheard,
        wall_clock: Callable[[], float] = time.time,
        *,
        name: str = "",
        limits: RateLimits | None = None,
    ) -> None:
        self._cluster = cluster
        self._verifiers = verifiers
        self._log = log
        self._wall_clock = wall_clock
        self._name = name
        self._limits = limits
        # Asked for frames that wait: bound once, so that each call is one call less.
        self.wants = _always if limits is None else limits.wants
        self.is_in_debt = _never if limits is None else limits.is_in_debt
        self._generation = 0

    def leave(self, generation: int) -> None:
        """The gateway stops: from now on lookups are answered with aliases.

        `generation`: of the aliases, 1 to 2**32 - 1, another one for each gateway.
        """
        self._generation = generation

    def authenticate(self, credential: Credential) -> Principal | Denial:
        """See `wire.services.Services`."""
        verifier = self._verifiers.get(credential.method)
        if verifier is None:
            return _NO_METHOD
        proof = verifier.verify(credential.data, self._wall_clock())
        if isinstance(proof, Denial):
            return proof
        return Principal(proof.name, verified=True, expires_at=proof.expires_at)

    def credential(self) -> Credential | Denial:
        """See `wire.services.Services`."""
        return self._cluster.credential.current()

    @property
    def paced(self) -> Collection[Action]:
        """See `wire.services.Services`."""
        return () if self._limits is None else self._limits.paced

    def complete(self, caller: Caller) -> Caller:
        """See `wire.services.Services`."""
        return caller._replace(listener=self._name, cluster=self._cluster.name)

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        """See `wire.services.Services`."""
        return 0.0 if self._limits is None else self._limits.wait(action, subject, again)

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """See `wire.services.Services`. Refuse what rules have no room for. An account
        that no rule limits is endless."""
        account = self._cluster.accounts.open(action, subject)
        if self._limits is None or action is Action.LOOKUP:
            return account
        denial = self._limits.admit(account, again=again)
        if denial is None:
            return account
        self._cluster.accounts.close(account)
        return denial

    def release(self, account: Account) -> None:
        """See `wire.services.Services`."""
        if self._limits is not None:
            self._limits.release(account)
        self._cluster.accounts.close(account)

    def advertise(self, broker: Address) -> Address | Denial:
        """See `wire.services.Services`."""
        self._cluster.learned.learn(broker.host)
        names = self._cluster.names
        found = names.advertise(broker, self._generation)
        if self._generation and isinstance(found, Denial):
            found = names.advertise(broker)
        if isinstance(found, Denial):
            self._log("broker_without_name", broker=str(broker), reason=found.text)
        return found

    def alias(self, broker: Address) -> Address | Denial:
        """See `wire.services.Services`. Names made from a template have none."""
        return self._cluster.names.advertise(broker, self._generation or 1)

    def migrated(self, broker: Address) -> Address | Denial:
        """See `wire.services.Services`."""
        self._cluster.learned.learn(broker.host)
        # A broker is the same one by TLS; the configuration names it without.
        gateway = self._cluster.migrations.get(broker._replace(tls=False))
        if gateway is None:
            self._cluster.figures.migrations_withheld += 1
            self._log("migration_without_gateway", broker=str(broker))
            return _NO_GATEWAY
        self._cluster.figures.migrations += 1
        return gateway

    def open(self, name: str) -> Address | Denial:
        """See `wire.services.Services`."""
        # Not learned: clients make names up. What is connected to is learned then.
        return self._cluster.names.open(name)

    def clean(self, text: str) -> str:
        """See `wire.services.Services`."""
        return self._cluster.learned.clean(text)

    def looked_up(self, outcome: LookupOutcome) -> None:
        """See `wire.services.Services`."""
        self._cluster.figures.lookups[outcome] += 1

    def redirected(self) -> None:
        """See `wire.services.Services`."""
        self._cluster.figures.redirects += 1
