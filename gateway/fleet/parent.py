"""The store of workers: their parent process, which keeps one book of reservations for all."""

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
"""`Channel.ask` of `gateway.workers`: a subject and a value in, the parts of the answer out."""


class ParentStore:
    """A `Store`. The owner of the channel to the parent closes it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See `Store`."""
        task_status.started()

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """See `Store`. An answer is the numbers of a `Reserved`, or a text about what failed."""
        answers = await self._answer("reserve", asks)
        return [StoreError(it) if isinstance(it, str) else Reserved(*it) for it in answers]

    async def beat(self) -> int:
        """See `Store`."""
        return int(await self._answer("beat", None))

    async def close(self) -> None:
        """See `Store`."""

    async def _answer(self, subject: str, value: Any) -> Any:
        try:
            (answer,) = await self._ask(subject, value)
        except trio.BrokenResourceError:
            raise StoreError("the parent process is gone") from None
        except InternalError as failure:
            raise StoreError(f"the parent process failed: {failure}") from failure
        return answer
