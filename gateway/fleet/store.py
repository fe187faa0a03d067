"""Where limits are shared, as everybody else sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

from gateway.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.policy.reservations import Reserved, UnitRequest


class StoreError(UpstreamError):
    """The store did not answer, or not what it should. The text goes on after "the store", for a
    log: "refuses connections"."""


class Store(Protocol):
    """Asked by one task at a time. What takes too long is cancelled, and may be asked again.

    A call that failed or was cancelled may have been carried out, and is undone by the next one
    about the same limits. So whoever asks again says again what is owed, and gives back again.
    """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep what the others need, until `close`; to be started before them."""
        ...

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """See `policy.reservations`; one answer for each, in their order: an error where one limit
        cannot be had and others can. Raises `StoreError` where none can."""
        ...

    async def beat(self) -> int:
        """Say that this process is there; answers how many are. Raises `StoreError`.

        To be called every second: one that was not heard of for three is not counted.
        """
        ...

    async def close(self) -> None: ...
