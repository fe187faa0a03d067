"""Witnesses: objects that the gateway tells of single events, such as the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.wire.contract import EndReason
    from gateway.wire.subject import Caller, Subject


class Witness(Protocol):
    """Is told what happens to connections. Methods must not wait, and raise nothing.

    `connection`: its number in this process. `client`: its address. `caller`: None if nothing is
    known of the client. `seconds`: since the connection was accepted.
    """

    def opened(self, connection: int, caller: Caller) -> None:
        """Note that a connection is open: its client is authenticated, and has a broker."""

    def ended(
        self,
        listener: str,
        connection: int,
        client: str,
        caller: Caller | None,
        reason: EndReason,
        seconds: float,
        detail: str,
    ) -> None:
        """Note that a connection ended, whether it was open or not."""

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

    def ended(
        self,
        listener: str,
        connection: int,
        client: str,
        caller: Caller | None,
        reason: EndReason,
        seconds: float,
        detail: str,
    ) -> None:
        for it in self._all:
            it.ended(listener, connection, client, caller, reason, seconds, detail)

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        for it in self._all:
            it.denied(subject, right, rule, shadow=shadow)
