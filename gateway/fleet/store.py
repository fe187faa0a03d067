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

    The text continues a sentence that begins with "the store", for logs: "refuses connections".
    """


class Store(Protocol):
    """The interface of a store. One task makes all calls, one at a time. A call that takes too long
    is cancelled and retried.

    A call that failed or was cancelled may still have been carried out; the next call about the
    same limits undoes its effect. So a retry repeats the debt and the units given back.
    """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connection until `close`. Start this before the first call."""
        ...

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """Reserve units of several limits, see `policy.reservations`.

        Return one response for each request, in the same order: an error for each limit that fails
        alone. Raises `StoreError` where all fail.
        """
        ...

    async def beat(self) -> int:
        """Report that this process is alive; return the number of live processes. Raises
        `StoreError`.

        Call this every second: a process that was silent for three seconds no longer counts.
        """
        ...

    async def close(self) -> None: ...
