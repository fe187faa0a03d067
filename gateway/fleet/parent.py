"""The store that workers share: their parent process, which keeps the reservations of all
workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trio

from gateway.errors import InternalError
from gateway.fleet.store import StoreError
from gateway.policy.reservations import Reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.policy.reservations import UnitRequest

Ask = Callable[[str, Any], Awaitable[list[Any]]]
"""`Channel.ask` of `gateway.workers`: a subject and a value in, the parts of the response out."""


class ParentStore:
    """A `Store` that sends requests to the parent process over the worker's channel. The owner of
    the channel closes it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Report at once that the store is ready, because the channel is already open. See
        `Store`."""
        task_status.started()

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """Reserve units at the parent; see `Store`. The parent's response for each request is
        either the numbers of a `Reserved`, or a text about a failure."""
        responses = await self._answer("reserve", asks)
        return [
            StoreError(response) if isinstance(response, str) else Reserved(*response)
            for response in responses
        ]

    async def beat(self) -> int:
        """Tell the parent that this worker is alive; return the number of live workers. See
        `Store`."""
        return int(await self._answer("beat", None))

    async def close(self) -> None:
        """Do nothing: the channel stays open. See `Store`."""

    async def _answer(self, subject: str, value: Any) -> Any:
        try:
            (answer,) = await self._ask(subject, value)
        except trio.BrokenResourceError:
            raise StoreError("the parent process is gone") from None
        except InternalError as failure:
            raise StoreError(f"the parent process failed: {failure}") from failure
        return answer
