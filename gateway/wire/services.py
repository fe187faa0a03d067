"""What a protocol session may ask of identity, policy and brokers."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Principal
from gateway.wire.subject import Caller, Subject


class Again(NamedTuple):
    """It is not known yet: ask again in so many seconds. Nothing counts until then.

    `since`: when it was asked first, by the clock of who is asked.
    """

    seconds: float
    since: float


class LookupOutcome(StrEnum):
    """How one topic lookup of a client ended."""

    CONNECT = "connect"  # answered with a name of ours
    FAILED = "failed"  # the broker's own no
    REFUSED = "refused"  # ours


class Services(Protocol):
    """What a session may ask. All answers come at once, from memory; what is slow is a `Job`."""

    def authenticate(self, credential: Credential) -> Principal | Denial: ...

    def complete(self, caller: Caller) -> Caller:
        """Return the caller with the names of its listener and cluster."""
        ...

    def credential(self) -> Credential | Denial:
        """Our own, towards brokers."""
        ...

    @property
    def paced(self) -> Collection[Action]:
        """What some rule lets be done only so often: before it `wait` is asked."""
        ...

    def wait(
        self, action: Action, subject: Subject, again: Again | None = None
    ) -> float | Again | Denial:
        """Return in how many seconds the subject may do this, and count it now; a denial if that
        would be long.

        `again`: the answer of the last time, if the same is asked again.
        """
        ...

    def admit(self, action: Action, subject: Subject, *, again: bool = False) -> Account | Denial:
        """Open an account under the limits that hold for the subject, or refuse.

        `again`: what is opened was open before, and the broker may still have it.
        """
        ...

    def wants(self, account: Account) -> bool:
        """A frame of this account has no allowance: may it pass now? If not it waits for a grant,
        and so does all that comes behind it."""
        ...

    def is_in_debt(self, account: Account) -> bool:
        """A limit of this account owes more than a second of its rate, or this account does there:
        nothing should pass without allowance now. Nobody begins to wait by being asked."""
        ...

    def release(self, account: Account) -> None:
        """The producer or consumer of this account is gone; its counts stay."""
        ...

    def advertise(self, broker: Address) -> Address | Denial:
        """Return the address that stands for a broker towards clients."""
        ...

    def alias(self, broker: Address) -> Address | Denial:
        """Return another one, which no client has met: of use when this gateway stops."""
        ...

    def migrated(self, broker: Address) -> Address | Denial:
        """The gateway in front of another cluster, to which a topic has gone with this broker."""
        ...

    def open(self, name: str) -> Address | Denial:
        """The broker that an advertised name stands for, or an alias."""
        ...

    def clean(self, text: str) -> str:
        """The text without any broker's address."""
        ...

    def looked_up(self, outcome: LookupOutcome) -> None: ...

    def redirected(self) -> None:
        """A lookup answer sent us to another broker."""
        ...
