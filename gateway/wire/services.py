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
    """The result of `Services.wait` if it is not known yet: call it again after `seconds`. Nothing
    is counted until then. `since`: time of the first call, by the clock of `Services`.
    """

    seconds: float
    since: float


class Undecided(NamedTuple):
    """An authorization that is not decided in memory. `ask`: asks the policy agent; after that
    `Services.forbid` knows the decision for a while."""

    ask: Callable[[], Awaitable[None]]


class Tokens(NamedTuple):
    """Tokens that a client may show in place of a signature: a text, and a number for requests that
    have no room for a text."""

    text: str
    number: int


NUMBER_SHOWN = b"\0"
"""The first byte of a credential's data that holds the number of a token. The number (8 bytes) and
the id of the client follow."""


class Slot(Protocol):
    """One of the connections that a client, or an address, may have at a time."""

    def leave(self) -> None:
        """Give the slot back."""
        ...


class LookupOutcome(StrEnum):
    """The outcome of one topic lookup of a client."""

    CONNECT = "connect"  # the response is an advertised name
    FAILED = "failed"  # refused by the broker
    REFUSED = "refused"  # refused by the gateway


class LookupTimes(NamedTuple):
    """The times of a lookup's request and response, in seconds; the same if no broker was asked.

    `subject`: its client and topic. `proven`: a broker knows the topic, so that the client has not
    invented its tenant.
    """

    subject: Subject
    began: float
    ended: float
    proven: bool


class Services(Protocol):
    """The methods of identity, policy and brokers that sessions call. All return at once, from
    memory; slow work is a `Job`."""

    def authenticate(
        self, credential: Credential, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        """Return the principal of a credential, and perhaps of a TLS certificate (DER); a `Denial`
        if the client is refused; a `Settle` if the decision takes longer."""
        ...

    @property
    def methods(self) -> Collection[str]:
        """Return the methods by which the gateway verifies clients; none if brokers verify them."""
        ...

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        """Return the secret that verifies a user by a SCRAM mechanism; of an unknown user, one that
        is made up. Call this only if `scram` is one of `methods`."""
        ...

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        """Return the principal of a client after SCRAM, or a denial, and count either. `right`: the
        client's proof fits the secret, which `scram` returned."""
        ...

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        """Return new tokens for the client with this id, whose credential of the method `signature`
        was accepted; None if the user is gone since."""
        ...

    def complete(self, caller: Caller) -> Caller:
        """Return the caller with the names of its listener and cluster added."""
        ...

    def left(self, principal: Principal) -> float:
        """Return the seconds until a principal's credential expires; `math.inf`: never."""
        ...

    def credential(self, principal: str | None = None) -> Credential | Denial:
        """Return the credential for brokers: the gateway's own, or the one kept for `principal`."""
        ...

    @property
    def paced(self) -> Collection[Action]:
        """Return the actions that rules limit by rate; call `wait` before each of these."""
        ...

    @property
    def limits_sends(self) -> bool:
        """Return whether a rule limits the messages or bytes of producers."""
        ...

    def setback(self, host: str) -> float:
        """Count a failed authentication of an address; return the seconds to delay its response."""
        ...

    def slot(self, subject: Subject) -> Slot | Denial:
        """Return a slot for an authenticated client's connection; a denial if all are taken."""
        ...

    @property
    def guarded(self) -> bool:
        """Return whether requests of clients have to be authorized."""
        ...

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Authorize a client's use of a topic. Return None if it is allowed; `Undecided` if the
        policy agent must be asked; otherwise the denial, which is counted."""
        ...

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        """Return a function that tells whether a client has the right on a topic, for use with many
        topics. Nothing is counted."""
        ...

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Authorize a client on all topics of a namespace. Return None if it has the right on each;
        otherwise the denial, which is counted. `place`: any topic of the namespace."""
        ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        """Count an action under the rate limits. Return the seconds after which the subject may do
        it; `Again` if that is not known yet; a denial if the wait would be too long.

        `again`: the `Again` of the last call for the same action.
        """
        ...

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """Open an account under the subject's limits; return it, or a denial.

        `again`: the producer or consumer was open before, and the broker may still have it.
        """
        ...

    def wants(self, account: Account) -> bool:
        """Return whether a frame of this account, which has no allowance, may pass after all. If
        not, the frame and all frames behind it wait for a grant."""
        ...

    def is_in_debt(self, account: Account) -> bool:
        """Return whether a limit of this account, or the account's share of a limit, is in debt by
        more than a second of its rate, so that no frame should pass without allowance. This call
        does not make the account wait."""
        ...

    def due_in(self, account: Account) -> float:
        """Return about how many seconds pass until this account has allowance; 0: it has some."""
        ...

    def burst(self, account: Account) -> Burst:
        """Return the messages and bytes that may come at once under the account's limits while no
        other account uses them; less if many accounts share a limit, because all their bursts
        together must not exceed the debt that the limit allows."""
        ...

    def release(self, account: Account) -> None:
        """Close the account of a producer or consumer that is gone; its counts stay."""
        ...

    def advertise(self, broker: Address) -> Address | Denial:
        """Return the advertised address, which stands for a broker towards clients."""
        ...

    def advertise_node(self, node: int, broker: Address) -> Address:
        """Return the address at which clients reach the broker with this id, and remember the
        broker's own address; for protocols whose brokers have ids."""
        ...

    def reached(self, origin: Origin) -> int | None:
        """Return the id of the broker that a client wants, by the address and the TLS server name
        that it connected to; None: any broker."""
        ...

    def broker(self, node: int) -> Address | None:
        """Return the address of the broker with this id; None: not known yet."""
        ...

    def alias(self, broker: Address) -> Address | Denial:
        """Return an alias of a broker: an address that no client knows yet. For a gateway that
        drains."""
        ...

    def migrated(self, broker: Address) -> Address | Denial:
        """Return the gateway's address for another cluster, to which a topic migrated. `broker`:
        the other cluster's broker, as the migration names it."""
        ...

    def open(self, name: str) -> Address | Denial:
        """Return the address of the broker behind an advertised name or an alias."""
        ...

    def clean(self, text: str) -> str:
        """Return a text without the broker addresses in it."""
        ...

    @property
    def timed(self) -> bool:
        """Return whether the latencies of clients are measured."""
        ...

    def latencies(self, subject: Subject, *, proven: bool) -> Latencies:
        """Return the object that counts the durations of a client with a topic, by tenant.

        `proven`: a broker knows the topic, so that the client has not invented its tenant.
        """
        ...

    def looked_up(self, outcome: LookupOutcome, times: LookupTimes | None = None) -> None:
        """Count the outcome of a lookup, and its duration if `times` is given and `timed` holds."""
        ...

    def answered_by_error(self, request: str, code: int) -> None:
        """Count a broker's response that is an error. `request`: the kind of request, as the
        protocol names it; `code`: the protocol's number of the error."""
        ...

    def ends(self, topic: TopicName) -> dict[int, int]:
        """Return the end offsets of a topic's partitions, by partition. Sessions write into this
        dict the end that a broker names; for protocols whose partitions have offsets."""
        ...

    def committed(self, group: str, topic: TopicName, partition: int, offset: int) -> None:
        """Keep the offset that a group has committed for a partition."""
        ...

    def deleted(self, group: str) -> None:
        """Forget a deleted group and its offsets."""
        ...

    def redirected(self) -> None:
        """Count a lookup response that redirects to another broker."""
        ...
