"""Admission of new connections, for all protocols: the bounds and limits that are checked before a
broker is dialled, and the reasons of refused connections."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

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
"""The end reason if the awaited frame did not arrive, by the kind of denial; otherwise the client
has closed the connection."""

UNDIALLED = {
    Refusal.TARGET: EndReason.TARGET_REFUSED,
    Refusal.TIMEOUT: EndReason.DIAL_TIMEOUT,
}
"""The end reason if dialling the broker failed, by the kind of denial; otherwise `NO_BROKER`."""

NO_ROOM = Denial(Refusal.TOO_MANY, "this gateway has no memory left for more")


@dataclass(slots=True, eq=False)
class BaseClient:
    """The client of one connection, in all protocols.

    `subject`: the client as rules and metrics read it, without a topic. `quota`: the connection's
    bytes of the memory budget. `slot`: the connection's slot in the connection quotas.
    """

    subject: Subject
    quota: Quota
    slot: Slot | None = field(default=None, init=False)

    def leave(self) -> None:
        """Give back the connection's memory quota and its slot in the connection quotas."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None


def refused(reason: EndReason, denial: Denial) -> Refused:
    """Return a `Refused` of which the client gets nothing but the end of its connection."""
    return Refused(reason, detail=denial.text)


def admit(
    services: Services,
    client: BaseClient,
    size: int,
    pair: Opening,
    refuse: Callable[[EndReason, Denial], Refused] = refused,
) -> Opening:
    """Admit a client, then run `pair`, the rest of the opening. Return the outcome of `pair`, or a
    `Refused` if the client is not admitted.

    Admission takes `size` bytes of the memory budget and a slot for the connection, and waits until
    rate limits let the client connect. If no pair opens, the client gives back the bytes and the
    slot; the session of an opened pair gives them back at its end. `refuse`: for protocols that
    tell clients why.
    """
    if not client.quota.fits(size):
        return refuse(EndReason.OUT_OF_MEMORY, NO_ROOM)
    client.quota.take(size)
    slot = services.slot(client.subject)
    if isinstance(slot, Denial):
        client.leave()
        return refuse(EndReason.TOO_MANY_CONNECTIONS, slot)
    client.slot = slot
    outcome: Opened | Refused | None = None
    try:
        denied = yield from pace(services, client.subject)
        if denied is not None:
            return refuse(EndReason.TOO_MANY_CONNECTS, denied)
        outcome = yield from pair
        return outcome
    finally:
        if not isinstance(outcome, Opened):
            client.leave()


def pace(services: Services, client: Subject) -> Generator[Step, StepResult, Denial | None]:
    """Wait until rate limits let a client connect, then return None. Return the denial if a rule
    refuses the client."""
    if Action.CONNECT not in services.paced:
        return None
    wait = services.wait(Action.CONNECT, client)
    while isinstance(wait, Again):
        yield Wait(wait.seconds)
        wait = services.wait(Action.CONNECT, client, wait)
    if isinstance(wait, Denial):
        return wait
    if wait:
        yield Wait(wait)
    return None


def silent(denial: StepResult) -> Refused:
    """Return the `Refused` that ends an opening because no whole frame came from the client.
    `denial`: what the step `Receive` returned."""
    assert isinstance(denial, Denial)
    return Refused(SILENCES.get(denial.refusal, EndReason.CLIENT_CLOSED), detail=denial.text)


def undialled(denial: Denial, refuse: Callable[[EndReason, Denial], Refused] = refused) -> Refused:
    """Return the `Refused` that ends an opening because no broker could be reached. `denial`: what
    the step `Dial` returned."""
    return refuse(UNDIALLED.get(denial.refusal, EndReason.NO_BROKER), denial)
