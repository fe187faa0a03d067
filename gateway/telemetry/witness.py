"""Witnesses: objects that are notified when a connection opens or ends, and when a right is denied.
The audit log is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.wire.contract import EndReason
    from gateway.wire.subject import Caller, Subject


class Ended(NamedTuple):
    """The end of a connection, even of one that was never open.

    `connection`: the number of the connection. `client`: the client's address. `caller`: the
    client; None if it is not known yet. `seconds`: the time since the connection was accepted.
    `detail`: more about the reason; may be empty.
    """

    listener: str
    connection: int
    client: str
    caller: Caller | None
    reason: EndReason
    seconds: float
    detail: str


class Witness(Protocol):
    """Is notified of what happens to connections. The methods must not wait, and must not raise."""

    def opened(self, connection: int, caller: Caller) -> None:
        """Is called when a connection is open: its client is authenticated, and is connected to a
        broker."""

    def ended(self, end: Ended) -> None:
        """Is called when a connection has ended."""

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Is called when a client was denied a right. `rule`: the id of the rule that denied it;
        None if no rule allowed it. `shadow`: the right would have been denied, but shadow mode let
        the client pass."""


class Witnesses:
    """Notifies each of several witnesses. It is a `Witness` itself."""

    def __init__(self, witnesses: Sequence[Witness]) -> None:
        self._all = witnesses

    def opened(self, connection: int, caller: Caller) -> None:
        for witness in self._all:
            witness.opened(connection, caller)

    def ended(self, end: Ended) -> None:
        for witness in self._all:
            witness.ended(end)

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        for witness in self._all:
            witness.denied(subject, right, rule, shadow=shadow)


def described(subject: Subject) -> dict[str, str | None]:
    """Return what a denial is about, as fields of a line: the topic, and the subscription, consumer
    group or transactional id if there is one."""
    topic = None if subject.topic is None else subject.topic.name
    group = subject.subscription
    return {"topic": topic} if group is None else {"topic": topic, "subscription": group}
