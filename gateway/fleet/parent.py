"""Limits shared through the parent process, by which workers ask one book of reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import trio

from gateway.errors import InternalError
from gateway.fleet.store import StoreError
from gateway.policy.reservations import Reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.policy.reservations import UnitRequest


def _read(answer: Any) -> Reserved | StoreError:
    """Numbers; a text says what went wrong."""
    return StoreError(answer) if isinstance(answer, str) else Reserved(*answer)


class Parent(Protocol):
    """The way to the parent; see `gateway.workers.channel`."""

    async def ask(self, subject: str, value: Any = None) -> list[Any]: ...


class ParentStore:
    """See `Store`. Whoever made the way to the parent closes it."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See `Store`."""
        task_status.started()

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]:
        """See `Store`."""
        return [_read(it) for it in await self._ask("reserve", asks)]

    async def beat(self) -> int:
        """See `Store`."""
        return int(await self._ask("beat"))

    async def close(self) -> None:
        """See `Store`."""

    async def _ask(self, subject: str, value: Any = None) -> Any:
        try:
            (answer,) = await self._parent.ask(subject, value)
        except trio.BrokenResourceError:
            raise StoreError("the parent process is gone") from None
        except InternalError as failure:
            raise StoreError(f"the parent process failed: {failure}") from failure
        return answer
