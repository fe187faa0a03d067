"""The interface of a store that shares limits among processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

from gateway.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.policy.reservations import Reserved, UnitRequest


class StoreError(UpstreamError):
    """The store did not respond, or its response is unusable.

    The text of the error is the end of a sentence that begins with "the store", for logs: "refuses
    connections".
    """


class Store(Protocol):
    """The interface of a store. One task makes all calls, one at a time. It cancels a call that
    takes too long, and tries again.

    A store may have carried out a call that failed or was cancelled. The next call about the same
    limits then undoes the effect of that call. So a retry states the same debt and the same units
    given back again.
    """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connection until `close` is called. Start this method before the first call."""
        ...

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """Reserve units of several limits; see `policy.reservations`.

        Return one response for each request, in the same order; a `StoreError` if the store fails
        for this limit alone. Raises `StoreError` if it fails for all limits.
        """
        ...

    async def beat(self) -> int:
        """Tell the store that this process is alive; return the number of live processes. Raises
        `StoreError`.

        Call this every second: a process that has been silent for three seconds is no longer
        counted.
        """
        ...

    async def close(self) -> None: ...
