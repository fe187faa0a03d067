"""Makes clients wait that connect more often than rules allow, in any protocol."""

from __future__ import annotations

from collections.abc import Generator

from gateway.wire.account import Action
from gateway.wire.contract import Denial, Step, StepResult, Wait
from gateway.wire.services import Again, Services
from gateway.wire.subject import Subject


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
