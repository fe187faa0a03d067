"""Witnesses: objects that the gateway tells of single events, such as the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.wire.contract import EndReason
    from gateway.wire.subject import Caller, Subject


class Ended(NamedTuple):
    """The end of a connection, whether it was open or not.

    `connection`: its number. `client`: its address. `caller`: None if nothing is known of the
    client. `seconds`: since the connection was accepted.
    """

    listener: str
    connection: int
    client: str
    caller: Caller | None
    reason: EndReason
    seconds: float
    detail: str


class Witness(Protocol):
    """Is told what happens to connections. Methods must not wait, and raise nothing."""

    def opened(self, connection: int, caller: Caller) -> None:
        """Note that a connection is open: its client is authenticated, and has a broker."""

    def ended(self, it: Ended) -> None:
        """Note that a connection ended."""

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Note that a client was denied a right; `shadow`: would have been. `rule`: None if none
        allowed it."""


class Witnesses:
    """Tells several witnesses."""

    def __init__(self, witnesses: Sequence[Witness]) -> None:
        self._all = witnesses

    def opened(self, connection: int, caller: Caller) -> None:
        for it in self._all:
            it.opened(connection, caller)

    def ended(self, it: Ended) -> None:
        for witness in self._all:
            witness.ended(it)

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        for it in self._all:
            it.denied(subject, right, rule, shadow=shadow)
