"""Implements `wire.services.Services` by means of identity, policy and brokers.

Each listener has its own services. All state is in memory, so no method waits.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

from gateway.brokers.endpoints import Endpoints
from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import Names
from gateway.brokers.nodes import Nodes
from gateway.brokers.resolver import Log, no_log
from gateway.control.slots import Slot, Slots
from gateway.control.turns import HashTurns
from gateway.identity.credential import OwnCredential
from gateway.identity.each_principal import EachPrincipal
from gateway.policy.access import Access
from gateway.policy.accounts import AccountBook
from gateway.telemetry.figures import ClusterFigures, ListenerFigures
from gateway.telemetry.latency import ListenerLatencies
from gateway.telemetry.progress import Position
from gateway.telemetry.spans import CONNECTION, Span, Spans
from gateway.wire.account import Account, Action, Burst, Right
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Origin, Principal, Refusal, Settle
from gateway.wire.counters import ENDLESS
from gateway.wire.scram import ScramSecret
from gateway.wire.services import Again, LookupOutcome, LookupTimes, Tokens, Undecided
from gateway.wire.stopwatch import Latencies
from gateway.wire.subject import Caller, Subject, TopicName


class Proof(Protocol):
    """A verified identity: a name, and the wall-clock second in which its credential expires (None:
    never)."""

    @property
    def name(self) -> str: ...

    @property
    def expires_at(self) -> float | None: ...


class Verifier(Protocol):
    """Verifies the data of a client's credential, and the client's TLS certificate (DER) if it has
    shown one. `now_wall`: wall-clock seconds, to check expiry. Returns the identity or a denial;
    `Unsettled` if the verification takes longer than a call."""

    def verify(
        self, data: bytes, now_wall: float, certificate: bytes | None = None, /
    ) -> Proof | Denial | Unsettled: ...


@runtime_checkable
class Unsettled(Protocol):
    """A verification that takes longer than a call. `outcome` waits for its result, and returns
    it. `hashes_for`: the user name whose slow hash has to be computed; None: no hash."""

    @property
    def hashes_for(self) -> str | None: ...

    async def outcome(self) -> Proof | Denial: ...


@runtime_checkable
class ScramVerifier(Protocol):
    """Verifies by SCRAM, in which a client proves its password without showing it. `secret`:
    returns the secret of a user; of an unknown user a made-up one. `proven`: returns the identity
    that a secret belongs to, or a denial; `right`: the client has proved that it knows the
    password."""

    def secret(self, user: str, mechanism: str, /) -> ScramSecret: ...

    def proven(self, secret: ScramSecret, /, *, right: bool) -> Proof | Denial: ...


@runtime_checkable
class TokenMaker(Protocol):
    """A verifier of signatures that also issues tokens, which clients show in place of signatures;
    see `Services.tokens`."""

    def tokens(self, data: bytes, client: str, now_wall: float, /) -> Tokens | None: ...


class RateLimits(Protocol):
    """The limits of the rules in force. All listeners of a process share one such object."""

    @property
    def paced(self) -> Collection[Action]: ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None
    ) -> float | Again | Denial: ...

    def admit(self, account: Account, *, again: bool) -> Denial | None: ...

    def wants(self, account: Account) -> bool: ...

    def is_in_debt(self, account: Account) -> bool: ...

    def due_in(self, account: Account) -> float: ...

    def burst(self, account: Account) -> Burst: ...

    def release(self, account: Account) -> None: ...


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """The parts that all listeners of one cluster share. `name`: the cluster's name.

    `migrations`: the gateway of another cluster, by that cluster's brokers. `nodes`: the addresses
    of brokers by id, if the protocol's brokers have ids.
    """

    name: str
    names: Names
    learned: LearnedHosts
    credential: OwnCredential
    accounts: AccountBook
    figures: ClusterFigures
    migrations: Mapping[Address, Address] = field(default_factory=dict)
    nodes: Nodes = field(default_factory=Nodes)


_LAST_GENERATION = (1 << 32) - 1

MOST_ERRORS = 1000
"""Pairs of a request's kind and an error code to count: real clients see some tens."""

_NO_GATEWAY = Denial(Refusal.NOT_READY, "no gateway is known for the cluster of this broker")

_NO_NAME = Denial(Refusal.UNAUTHENTICATED, "a client of this name is not accepted here")


def _as_proven(name: str) -> str | None:
    return name


def _always(_account: Account) -> bool:
    return True


def _never(_account: Account) -> bool:
    return False


def _at_once(_account: Account) -> float:
    return 0.0


def _endless(_account: Account) -> Burst:
    return Burst(ENDLESS, ENDLESS)


def _on_all(_topic: TopicName) -> bool:
    return True


def _lookup_span(outcome: LookupOutcome, times: LookupTimes) -> Span:
    subject = times.subject
    fields = {
        "messaging.system": subject.protocol,
        "messaging.destination.name": None if subject.topic is None else subject.topic.name,
        "gateway.listener": subject.listener,
        "gateway.cluster": subject.cluster,
        CONNECTION: subject.connection,
        "client.address": subject.host,
        "user.id": subject.principal,
    }
    attributes = {key: value for key, value in fields.items() if value is not None}
    error = "" if outcome is LookupOutcome.CONNECT else outcome.value
    return Span("lookup", times.began, times.ended, error, attributes)


class ListenerServices:
    """The services of one listener; `wire.services.Services` documents the methods.

    `verifiers`: by authentication method; empty if the listener leaves authentication to brokers.
    `log`: is called with events that an operator must act on. `name`: the listener's name.
    `naming`: maps a proven name to a principal, or to None if the name is not accepted. `limits`,
    `access`: None if there are no rules. `slots`: None if there are no connection quotas.
    `turns`: turns of all listeners at slow hashes, and failed authentications. `latencies`,
    `figures`, `spans`: None if they are not recorded. `endpoints`: the gateway's addresses for
    brokers that have ids. `age`: about how many seconds after its opening a client is moved; None:
    never.
    """

    def __init__(
        self,
        cluster: ClusterParts,
        verifiers: dict[str, Verifier],
        log: Log = no_log,
        wall_clock: Callable[[], float] = time.time,
        *,
        name: str = "",
        naming: Callable[[str], str | None] = _as_proven,
        limits: RateLimits | None = None,
        access: Access | None = None,
        slots: Slots | None = None,
        turns: HashTurns | None = None,
        latencies: ListenerLatencies | None = None,
        figures: ListenerFigures | None = None,
        spans: Spans | None = None,
        endpoints: Endpoints | None = None,
        age: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._verifiers = verifiers
        self._log = log
        self._wall_clock = wall_clock
        self._name = name
        self._naming = naming
        self._access = access
        self._slots = slots or Slots()
        self._turns = HashTurns(clock) if turns is None else turns
        self._limits = limits
        self._latencies = latencies
        self._figures = figures
        self._spans = spans
        self._endpoints = endpoints
        # Bound once, which saves a call for each waiting frame.
        self.wants = _always if limits is None else limits.wants
        self.is_in_debt = _never if limits is None else limits.is_in_debt
        self.due_in = _at_once if limits is None else limits.due_in
        self.burst = _endless if limits is None else limits.burst
        self._age = age
        self._clock = clock
        self._generation = 0
        self._ours: Credential | Denial | None = None
        self._epoch = secrets.randbelow(_LAST_GENERATION) + 1  # of aliases, by credential of ours
        methods = " or ".join(sorted(method for method in verifiers if method)) or "token"
        self._no_method = Denial(
            Refusal.UNAUTHENTICATED, f"a credential of method {methods} is needed"
        )

    def leave(self, generation: int) -> None:
        """From now on, respond to lookups with aliases (new names) of brokers, because the gateway
        shuts down.

        `generation`: identifies this set of aliases, 1 to 2**32 - 1, different for each gateway.
        """
        self._generation = generation

    def authenticate(
        self, credential: Credential, host: str, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        verifier = self._verifiers.get(credential.method)
        if verifier is None:
            return self._counted("other", self._no_method)
        result = verifier.verify(credential.data, self._wall_clock(), certificate)
        if isinstance(result, Unsettled):
            return Settle(partial(self._outcome, credential.method, host, result))
        return self._counted(credential.method, self._principal(result))

    @property
    def methods(self) -> Collection[str]:
        return self._verifiers.keys()

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        return self._scram().secret(user, mechanism)

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        return self._counted("scram", self._principal(self._scram().proven(secret, right=right)))

    def _scram(self) -> ScramVerifier:
        verifier = self._verifiers["scram"]
        assert isinstance(verifier, ScramVerifier)
        return verifier

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        verifier = self._verifiers[credential.method]
        assert isinstance(verifier, TokenMaker)
        return verifier.tokens(credential.data, client, self._wall_clock())

    async def _outcome(self, method: str, host: str, unsettled: Unsettled) -> Principal | Denial:
        user = unsettled.hashes_for
        if user is None:
            result = await unsettled.outcome()
        else:
            result = await self._turns.take(host, user, unsettled.outcome)
        return self._counted(method, self._principal(result))

    def _counted(self, method: str, result: Principal | Denial) -> Principal | Denial:
        if self._figures is not None:
            accepted = isinstance(result, Principal)
            self._figures.authenticated(method or "none", accepted=accepted)
        return result

    def _principal(self, result: Proof | Denial) -> Principal | Denial:
        if isinstance(result, Denial):
            return result
        name = self._naming(result.name)
        if name is None:
            return _NO_NAME
        return Principal(name, verified=True, expires_at=result.expires_at)

    def left(self, principal: Principal) -> float:
        if principal.expires_at is None:
            return math.inf
        return principal.expires_at - self._wall_clock()

    def credential(self, principal: str | None = None) -> Credential | Denial:
        if isinstance(self._cluster.credential, EachPrincipal):
            return self._cluster.credential.of(principal)
        ours = self._cluster.credential.current()
        if ours is not self._ours:
            self._ours, self._epoch = ours, self._epoch % _LAST_GENERATION + 1
        return ours

    @property
    def paced(self) -> Collection[Action]:
        return () if self._limits is None else self._limits.paced

    def complete(self, caller: Caller) -> Caller:
        return Caller(caller.protocol, self._name, self._cluster.name, *caller[3:])

    def setback(self, host: str) -> float:
        return self._turns.failures.failed(host)

    def slot(self, subject: Subject) -> Slot | Denial:
        return self._slots.take(subject.host or "", subject.principal)

    @property
    def guarded(self) -> bool:
        return self._access is not None

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        return None if self._access is None else self._access.refuse(right, subject)

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        return _on_all if self._access is None else self._access.which(right, client)

    def which_named(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        return _on_all if self._access is None else self._access.which_named(right, client)

    def forbid_any(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        return None if self._access is None else self._access.refuse_any(right, client, place)

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        return None if self._access is None else self._access.refuse_all(right, client, place)

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        return 0.0 if self._limits is None else self._limits.wait(action, subject, again)

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """Open an account for an action of a subject; see `Services`. If no limit applies to the
        account, it has endless allowance."""
        account = self._cluster.accounts.open(action, subject)
        if self._limits is None or action is Action.LOOKUP:
            return account
        denial = self._limits.admit(account, again=again)
        if denial is None:
            return account
        self._cluster.accounts.close(account)
        return denial

    def release(self, account: Account) -> None:
        if self._limits is not None:
            self._limits.release(account)
        self._cluster.accounts.close(account)

    def advertise(self, broker: Address) -> Address | Denial:
        self._cluster.learned.learn(broker.host)
        names = self._cluster.names
        advertised = names.advertise(broker, self._generation)
        if self._generation and isinstance(advertised, Denial):
            advertised = names.advertise(broker)
        if isinstance(advertised, Denial):
            self._log("broker_without_name", broker=str(broker), reason=advertised.text)
        return advertised

    def advertise_node(self, node: int, broker: Address) -> Address:
        assert self._endpoints is not None, "the protocol's brokers have no ids"
        self._cluster.learned.learn(broker.host)
        self._cluster.nodes.learn(node, broker)
        advertised = self._endpoints.of(node)
        if isinstance(advertised, Address):
            return advertised
        self._log("broker_without_address", broker=str(broker), node=node)
        return self._endpoints.any

    def reached(self, origin: Origin) -> int | None:
        assert self._endpoints is not None, "the protocol's brokers have no ids"
        return self._endpoints.node(origin.reached, origin.server_name)

    def broker(self, node: int) -> Address | None:
        return self._cluster.nodes.broker(node)

    def alias(self, broker: Address) -> Address | Denial:
        """Return an alias of a broker; see `Services`. Names made from a template have no aliases.
        A client that is given an alias of a new generation opens another connection, because it
        does not know this name yet."""
        return self._cluster.names.advertise(broker, self._generation or self._next_generation())

    def _next_generation(self) -> int:
        """Return a generation that differs from that of each client to be moved. It changes with
        the gateway's credential, and twice in the age of a connection."""
        halves = 0 if self._age is None else int(self._clock() / (self._age / 2))
        return (self._epoch + halves) % _LAST_GENERATION + 1

    def migrated(self, broker: Address) -> Address | Denial:
        self._cluster.learned.learn(broker.host)
        # The broker may be reached with TLS, but the configuration names it without.
        gateway = self._cluster.migrations.get(broker._replace(tls=False))
        if gateway is None:
            self._cluster.figures.migrations_withheld += 1
            self._log("migration_without_gateway", broker=str(broker))
            return _NO_GATEWAY
        self._cluster.figures.migrations += 1
        return gateway

    def open(self, name: str) -> Address | Denial:
        # Clients invent names, so the broker is learned only once a connection succeeds.
        return self._cluster.names.open(name)

    def clean(self, text: str) -> str:
        return self._cluster.learned.clean(text)

    @property
    def timed(self) -> bool:
        return self._latencies is not None

    def latencies(self, subject: Subject, *, proven: bool) -> Latencies:
        assert self._latencies is not None, "nobody reads durations"
        tenant = "" if subject.topic is None else subject.topic.tenant
        return self._latencies.of(tenant, proven=proven)

    def looked_up(self, outcome: LookupOutcome, times: LookupTimes | None = None) -> None:
        self._cluster.figures.lookups[outcome] += 1
        if times is None:
            return
        if times.ended > times.began:
            latencies = self.latencies(times.subject, proven=times.proven)
            latencies.lookup.add(times.ended - times.began)
        if self._spans is not None:
            self._spans(_lookup_span(outcome, times))

    def answered_by_error(self, request: str, code: int) -> None:
        errors = self._cluster.figures.errors
        if len(errors) < MOST_ERRORS or (request, code) in errors:
            errors[request, code] += 1

    def ends(self, topic: TopicName) -> dict[int, int]:
        return self._cluster.figures.progress.of(topic.whole)

    def committed(self, group: str, topic: TopicName, partition: int, offset: int) -> None:
        self._cluster.figures.progress.commit(Position(group, topic.whole, partition, offset))

    def deleted(self, group: str) -> None:
        self._cluster.figures.progress.forget(group)

    def redirected(self) -> None:
        self._cluster.figures.redirects += 1
