"""Witnesses: objects that are notified of each opened or ended connection and each denied right,
such as the audit log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.wire.contract import EndReason
    from gateway.wire.subject import Caller, Subject


class Ended(NamedTuple):
    """The end of a connection, which may never have been open.

    `connection`: its number. `client`: the client's address. `caller`: None if the client is not
    known yet. `seconds`: since the connection was accepted. `detail`: more about the reason, or
    empty.
    """

    listener: str
    connection: int
    client: str
    caller: Caller | None
    reason: EndReason
    seconds: float
    detail: str


class Witness(Protocol):
    """Is notified of what happens to connections. Methods must not wait, and raise nothing."""

    def opened(self, connection: int, caller: Caller) -> None:
        """Note that a connection is open: its client is authenticated, and has a broker."""

    def ended(self, end: Ended) -> None:
        """Note that a connection ended."""

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Note that a client was denied a right. `rule`: the denying one; None if no rule allowed
        it. `shadow`: the right would have been denied, but shadow mode let the client pass."""


class Witnesses:
    """Notifies several witnesses; itself a `Witness`."""

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
