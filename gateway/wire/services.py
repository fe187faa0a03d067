"""The interface of protocol sessions to identity, policy and brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.wire.account import Account, Action, Burst, Right
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Origin, Principal, Settle
from gateway.wire.scram import ScramSecret
from gateway.wire.stopwatch import Latencies
from gateway.wire.subject import Caller, Subject, TopicName


class Again(NamedTuple):
    """The result of `Services.wait` while the wait is not known yet: call `wait` again after
    `seconds`. Nothing is counted until then. `since`: time of the first call, by the clock of
    `Services`."""

    seconds: float
    since: float


class Undecided(NamedTuple):
    """An authorization that cannot be decided from memory. `ask`: asks the policy agent;
    `Services.forbid` then knows the agent's decision for a while."""

    ask: Callable[[], Awaitable[None]]


class Tokens(NamedTuple):
    """Tokens that a client may show later in place of a signature: one is a text, the other a
    number, for requests that have no field for a text."""

    text: str
    number: int


NUMBER_SHOWN = b"\0"
"""The first byte of a credential's data that holds the number of a token. The number (8 bytes) and
the id of the client follow."""


class Slot(Protocol):
    """The right to one connection, of the number that a client or an address may have at a time."""

    def leave(self) -> None:
        """Give the slot back, so that another connection can have it."""
        ...


class LookupOutcome(StrEnum):
    """The outcome of one topic lookup of a client."""

    CONNECT = "connect"  # the response is an advertised name
    FAILED = "failed"  # refused by the broker
    REFUSED = "refused"  # refused by the gateway


class LookupTimes(NamedTuple):
    """When a lookup's request came and its response was sent, in seconds; both are equal if no
    broker was asked.

    `subject`: the client and the topic. `proven`: a broker knows the topic, so the client has not
    invented the topic's tenant.
    """

    subject: Subject
    began: float
    ended: float
    proven: bool


class Services(Protocol):
    """What protocol sessions ask of identity, policy and brokers. All methods return at once, from
    memory; slow work is a `Job`."""

    def authenticate(
        self, credential: Credential, host: str, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        """Return the principal of a credential, or of a credential and a TLS certificate (DER).
        `host`: the client's address; slow verifications are made by turn of addresses.
        Return a `Denial` if the client is refused. If the decision takes time, as to fetch a key,
        return a `Settle`, which waits for the decision."""
        ...

    @property
    def methods(self) -> Collection[str]:
        """Return the methods by which the gateway verifies clients; empty if brokers verify
        clients."""
        ...

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        """Return the secret by which a user is verified with a SCRAM mechanism; for an unknown
        user, a made-up secret. Call this only if `scram` is one of `methods`."""
        ...

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        """Count the success or failure of a client's authentication by SCRAM. Return the client's
        principal, or a denial. `right`: the client's proof fits the secret that `scram`
        returned."""
        ...

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        """Return new tokens for a user whose credential of the method `signature` was accepted;
        None if the user was removed meanwhile. `client`: the id of the client that gets them."""
        ...

    def complete(self, caller: Caller) -> Caller:
        """Return the caller with the names of its listener and its cluster filled in."""
        ...

    def left(self, principal: Principal) -> float:
        """Return in how many seconds a principal's credential expires; `math.inf`: never."""
        ...

    def credential(self, principal: str | None = None) -> Credential | Denial:
        """Return the credential that the gateway presents to brokers: its own, or the one that is
        configured for `principal`. Return a denial if there is no such credential."""
        ...

    @property
    def paced(self) -> Collection[Action]:
        """Return the actions for which rules set a rate limit. Before each of them, call `wait`."""
        ...

    def setback(self, host: str) -> float:
        """Count a failed authentication from an address. Return by how many seconds to delay the
        response."""
        ...

    def slot(self, subject: Subject) -> Slot | Denial:
        """Return a slot for an authenticated client's connection; a denial if the client has no
        free slot."""
        ...

    @property
    def guarded(self) -> bool:
        """Return whether clients' requests have to be authorized, because rules or a policy agent
        grant rights."""
        ...

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Authorize a client's use of a topic. Return None if the use is allowed, and `Undecided`
        if the policy agent must be asked; otherwise return the denial, which is counted."""
        ...

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        """Return a function that says of any topic whether the client has the right on it, for use
        with many topics. Unlike `forbid`, the function does not count denials."""
        ...

    def which_named(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        """Return a function as `which` does, for topics that the client has named itself: where the
        policy agent would decide, the function allows, because each use of the topic asks the
        agent."""
        ...

    def forbid_any(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Authorize a client for what belongs to no single topic, such as a group. Return None if
        it may have the right on some topic of a namespace; otherwise the denial, which is counted.
        `place`: any topic of the namespace."""
        ...

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Authorize a client for all topics of a namespace. Return None if it has the right on
        every topic; otherwise the denial, which is counted. `place`: any topic of the namespace."""
        ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        """Count an action under the rate limits. Return after how many seconds the subject may
        carry it out; `Again` if that is not known yet; a denial if the wait would be too long.

        `again`: what the last call for this action returned, if that was an `Again`.
        """
        ...

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """Open an account under the subject's limits, and return it; return a denial if the action
        is refused.

        `again`: the producer or consumer reopens. A rule with `action: reject` then does not refuse
        it.
        """
        ...

    def wants(self, account: Account) -> bool:
        """Request allowance for an account that has none. Return whether its next frame may be
        forwarded now. If False, that frame and all frames behind it wait for a grant."""
        ...

    def is_in_debt(self, account: Account) -> bool:
        """Return whether a limit of this account, or the account's share of a limit, is in debt by
        more than a second of its rate, so that no frame should be forwarded without allowance. This
        call does not make the account wait."""
        ...

    def due_in(self, account: Account) -> float:
        """Return in about how many seconds this account gets allowance; 0: it has allowance now."""
        ...

    def burst(self, account: Account) -> Burst:
        """Return how many messages and bytes may pass at once under the account's limits while no
        other account uses these limits. If many accounts share a limit the burst is smaller,
        because all their bursts together must not exceed the debt that the limit allows."""
        ...

    def release(self, account: Account) -> None:
        """Close the account of a producer or consumer that no longer exists. Metrics keep its
        counts."""
        ...

    def advertise(self, broker: Address) -> Address | Denial:
        """Return the address that clients get in place of a broker's address; a denial if no such
        address can be made."""
        ...

    def advertise_node(self, node: int, broker: Address) -> Address:
        """Remember the address of the broker with this id, and return the address at which clients
        reach this broker; for protocols whose brokers have ids."""
        ...

    def reached(self, origin: Origin) -> int | None:
        """Return the id of the broker that a client wants, judged by the address that it connected
        to and by its TLS server name; None: any broker."""
        ...

    def broker(self, node: int) -> Address | None:
        """Return the address of the broker with this id; None: the address is not known yet."""
        ...

    def alias(self, broker: Address) -> Address | Denial:
        """Return an alias of a broker: an advertised address that no client knows yet. A gateway
        that drains sends it to clients, so that they open a new connection."""
        ...

    def migrated(self, broker: Address) -> Address | Denial:
        """Return the address of the gateway in front of another cluster, to which a topic migrated.
        `broker`: a broker of that cluster, as the migration command names it."""
        ...

    def open(self, name: str) -> Address | Denial:
        """Return the broker's address for an advertised name or an alias; a denial for an unknown
        name."""
        ...

    def clean(self, text: str) -> str:
        """Return a text with all broker addresses removed."""
        ...

    @property
    def timed(self) -> bool:
        """Return whether the latencies of clients are measured."""
        ...

    def latencies(self, subject: Subject, *, proven: bool) -> Latencies:
        """Return the latency histograms of the tenant of the subject's topic.

        `proven`: a broker knows the topic, so the client has not invented the topic's tenant.
        """
        ...

    def looked_up(self, outcome: LookupOutcome, times: LookupTimes | None = None) -> None:
        """Count the outcome of a lookup. If `times` is given, also record the lookup's duration;
        `times` must be None unless latencies are measured (`timed`)."""
        ...

    def answered_by_error(self, request: str, code: int) -> None:
        """Count a broker's response that is an error. `request`: the name that the protocol gives
        to the type of the request. `code`: the protocol's error code."""
        ...

    def ends(self, topic: TopicName) -> dict[int, int]:
        """Return a dict of the end offsets of a topic's partitions, by partition. If a broker
        states an end offset, sessions write it into this dict. For protocols with offsets."""
        ...

    def committed(self, group: str, topic: TopicName, partition: int, offset: int) -> None:
        """Remember the offset that a group has committed for a partition."""
        ...

    def deleted(self, group: str) -> None:
        """Forget a deleted group and the offsets that it committed."""
        ...

    def redirected(self) -> None:
        """Count a broker's lookup response that redirects the client to another broker."""
        ...
