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
    """No response yet: ask again in so many seconds. Nothing is counted until then.

    `since`: time of the first question, by the clock of `Services`.
    """

    seconds: float
    since: float


class Undecided(NamedTuple):
    """Whether a client has a right is not known here. `ask`: asks who knows it; `forbid` knows it
    then for a while."""

    ask: Callable[[], Awaitable[None]]


class Tokens(NamedTuple):
    """Tokens that a client may show in place of a signature: a text, and a number for requests that
    have no room for a text."""

    text: str
    number: int


NUMBER_SHOWN = b"\0"
"""The first byte of a credential that is the number of a token. The number (8 bytes) and the id of
the client follow."""


class Slot(Protocol):
    """The place of one connection among those that its client may have."""

    def leave(self) -> None:
        """Give the place back."""
        ...


class LookupOutcome(StrEnum):
    """The outcome of one topic lookup of a client."""

    CONNECT = "connect"  # answered with an advertised name
    FAILED = "failed"  # refused by the broker
    REFUSED = "refused"  # refused by the gateway


class LookupTimes(NamedTuple):
    """When a lookup came and was answered, in seconds; both are the same if no broker was asked.

    `subject`: its client and topic. `proven`: a broker knows the topic, so that its tenant is none
    that the client invented.
    """

    subject: Subject
    began: float
    ended: float
    proven: bool


class Services(Protocol):
    """The methods that sessions call. All return at once, from memory; slow work is a `Job`."""

    def authenticate(
        self, credential: Credential, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        """Return who shows a credential, and perhaps a TLS certificate (DER). Only a `Settle` takes
        longer."""
        ...

    @property
    def methods(self) -> Collection[str]:
        """Return the methods by which clients are verified; none if brokers do it."""
        ...

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        """Return what verifies a user's password by a mechanism of SCRAM; of a user that is not
        known something that looks alike. Call this only if `scram` is one of `methods`."""
        ...

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        """Return who has shown by SCRAM to know a password, and count it. `right`: what was shown
        fits the secret, which `scram` returned."""
        ...

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        """Make tokens for the client with this id, which has shown an accepted credential of the
        method `signature`. Return None if the user is gone since."""
        ...

    def complete(self, caller: Caller) -> Caller:
        """Return the caller with the names of its listener and cluster."""
        ...

    def left(self, principal: Principal) -> float:
        """Return the seconds until a principal's credential expires; `math.inf`: never."""
        ...

    def credential(self, principal: str | None = None) -> Credential | Denial:
        """Return the credential that brokers are shown: the gateway's own, or what they know this
        client by."""
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
        """Count a failed authentication of an address; return the seconds that its response
        waits."""
        ...

    def slot(self, subject: Subject) -> Slot | Denial:
        """Return the place of an authenticated client, or why there is none for it."""
        ...

    @property
    def guarded(self) -> bool:
        """Return whether clients need rights."""
        ...

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Return why a client may not do something, and count it; None: it may."""
        ...

    def which(self, right: Right, client: Subject) -> Callable[[TopicName], bool]:
        """Return the test of topics on which a client has a right, for many at once; nothing is
        counted."""
        ...

    def forbid_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Return why a client may not do something to some topic of a namespace, and count it;
        None: it may to each. `place`: any topic of the namespace, whose name has no part in it."""
        ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        """Count the action now, and return the seconds after which the subject may do it; a denial
        if the wait would be too long.

        `again`: the last response, if the same question is asked again.
        """
        ...

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """Open an account under the subject's limits, or refuse.

        `again`: the producer or consumer was open before, and the broker may still have it.
        """
        ...

    def wants(self, account: Account) -> bool:
        """Return whether a frame of this account, which has no allowance, may pass now. If not,
        this frame and all frames behind it wait for a grant."""
        ...

    def is_in_debt(self, account: Account) -> bool:
        """Return whether a limit of this account, or the account's share of it, is in debt by more
        than a second of its rate: no frame should pass without allowance then. Calling this does
        not make the account wait."""
        ...

    def due_in(self, account: Account) -> float:
        """Return the seconds until this account has allowance, about; 0: it has some."""
        ...

    def burst(self, account: Account) -> Burst:
        """Return what may come at once at the account's limits while nobody uses them; less where
        so many share a limit that all of it together would be more than the limit may owe."""
        ...

    def release(self, account: Account) -> None:
        """Give back the account of a producer or consumer that is gone; its counts stay."""
        ...

    def advertise(self, broker: Address) -> Address | Denial:
        """Return the address that stands for a broker towards clients."""
        ...

    def advertise_node(self, node: int, broker: Address) -> Address:
        """Return the address at which clients reach the broker with this id, and learn where it
        is; for protocols whose brokers have ids."""
        ...

    def reached(self, origin: Origin) -> int | None:
        """Return the id of the broker that a client wants, by where it connected; None: any."""
        ...

    def broker(self, node: int) -> Address | None:
        """Return where the broker with this id is; None: nobody has said it yet."""
        ...

    def alias(self, broker: Address) -> Address | Denial:
        """Return an address for a broker that no client knows yet; used when this gateway stops."""
        ...

    def migrated(self, broker: Address) -> Address | Denial:
        """Return the gateway of the other cluster to which a topic migrated with this broker."""
        ...

    def open(self, name: str) -> Address | Denial:
        """Return the broker that an advertised name or an alias names."""
        ...

    def clean(self, text: str) -> str:
        """Return the text without the addresses of brokers."""
        ...

    @property
    def timed(self) -> bool:
        """Return whether anybody reads how long clients wait."""
        ...

    def latencies(self, subject: Subject, *, proven: bool) -> Latencies:
        """Return where the durations of a client with a topic are counted, if they are read.

        `proven`: a broker knows the topic, so that its tenant is none that the client invented.
        """
        ...

    def looked_up(self, outcome: LookupOutcome, times: LookupTimes | None = None) -> None:
        """Count the outcome of a lookup, and its duration if it is known and read (`timed`)."""
        ...

    def answered_by_error(self, request: str, code: int) -> None:
        """Count an error of a broker's response. `request`: the kind of request, as the protocol
        names it; `code`: the protocol's number of the error."""
        ...

    def ends(self, topic: TopicName) -> dict[int, int]:
        """Return the ends of a topic's partitions, by partition. Sessions put the offset into it
        that a broker names as an end; for protocols whose partitions have offsets."""
        ...

    def committed(self, group: str, topic: TopicName, partition: int, offset: int) -> None:
        """Keep the offset that a group has committed of a partition."""
        ...

    def deleted(self, group: str) -> None:
        """Forget a deleted group and its offsets."""
        ...

    def redirected(self) -> None:
        """Count a lookup answer that named another broker to ask."""
        ...
