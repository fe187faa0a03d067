"""What the openings of connections have in common, in any protocol: bounds and limits that a client
meets before a broker is dialled, and why there is no connection."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from gateway.wire.account import Action
from gateway.wire.budget import Quota
from gateway.wire.contract import (
    Denial,
    EndReason,
    Opened,
    Opening,
    Refusal,
    Refused,
    Step,
    StepResult,
    Wait,
)
from gateway.wire.services import Again, Services, Slot
from gateway.wire.subject import Subject

SILENCES = {
    Refusal.TIMEOUT: EndReason.HANDSHAKE_TIMEOUT,
    Refusal.TOO_MANY: EndReason.FRAME_TOO_LARGE,
}
"""Why a connection ends on which no frame came; in all other cases the client has closed it."""

UNDIALLED = {
    Refusal.TARGET: EndReason.TARGET_REFUSED,
    Refusal.TIMEOUT: EndReason.DIAL_TIMEOUT,
}
"""Why a connection ends whose broker was not reached; in all other cases there is no broker."""


class Guest(Protocol):
    """A client whose connection is being opened; see the `Client` of each protocol."""

    subject: Subject
    quota: Quota
    slot: Slot | None

    def leave(self) -> None:
        """Give back what the connection has of the process's bounds."""


def admit(services: Services, guest: Guest, size: int, pair: Opening) -> Opening:
    """Go on with the opening `pair` once there is room for the client (`size` bytes of the budget),
    a place for its connection, and rules let it connect. A client that gets no pair gives all of
    that back; otherwise its session does at its end."""
    if not guest.quota.fits(size):
        return Refused(EndReason.OUT_OF_MEMORY, detail="no room for another connection")
    guest.quota.take(size)
    slot = services.slot(guest.subject)
    if isinstance(slot, Denial):
        guest.leave()
        return Refused(EndReason.TOO_MANY_CONNECTIONS, detail=slot.text)
    guest.slot = slot
    outcome: Opened | Refused | None = None
    try:
        denied = yield from pace(services, guest.subject)
        if denied is not None:
            return Refused(EndReason.TOO_MANY_CONNECTS, detail=denied.text)
        outcome = yield from pair
        return outcome
    finally:
        if not isinstance(outcome, Opened):
            guest.leave()


def pace(services: Services, client: Subject) -> Generator[Step, StepResult, Denial | None]:
    """Wait until rules let the client connect; return why they never do, None if they did."""
    if Action.CONNECT not in services.paced:
        return None
    found = services.wait(Action.CONNECT, client)
    while isinstance(found, Again):
        yield Wait(found.seconds)
        found = services.wait(Action.CONNECT, client, found)
    if isinstance(found, Denial):
        return found
    if found:
        yield Wait(found)
    return None


def silent(denial: StepResult) -> Refused:
    """Return the refusal of a client that did not send what was awaited."""
    assert isinstance(denial, Denial)
    return Refused(SILENCES.get(denial.refusal, EndReason.CLIENT_CLOSED), detail=denial.text)


def undialled(denial: Denial) -> Refused:
    """Return the refusal of a client whose broker was not reached."""
    return Refused(UNDIALLED.get(denial.refusal, EndReason.NO_BROKER), detail=denial.text)
