"""Asks the store for all shared limits of a process, and keeps count of who shares them.

Everything that is wanted by then is asked in one call, and calls are `TICK` apart, so how many
there are depends on nothing that passes. A call that takes too long is given up, and the store is
*lost*: limits go on alone, as their rules say. Nobody waits for it meanwhile; it is tried again and
again, and is back when it answers.

A limit that alone has no answer goes on alone, too, and is asked for again.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, TypeVar

import structlog
import trio

from gateway.fleet.store import Store, StoreError
from gateway.policy.reservations import Reserved
from gateway.telemetry.figures import StoreFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from gateway.policy.supply import Asked, Supply

T = TypeVar("T")

TICK = 0.005
"""Seconds between two calls: who waits for an answer waits for half of that more."""

BEAT = 1.0
"""Seconds after which we say that we are there."""

AGAIN = 0.5
"""Seconds after which a store that is lost is tried again."""

GATHERING = 1.0
"""Seconds for all others to find a store that is back. Whoever shares before them would have all of
the rate, and they their parts besides."""

SOON = 0.05
"""Seconds after which it is asked again whether all are there."""


class Supplier:
    """One for a process. `supplied` is told whose limits have answers; None: all are concerned.

    `timeout`: seconds for one call.
    """

    def __init__(
        self,
        store: Store,
        supply: Supply,
        supplied: Callable[[Sequence[Hashable] | None], None],
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.figures = StoreFigures()
        self._store = store
        self._supply = supply
        self._supplied = supplied
        self._timeout = timeout
        self._clock = clock
        self._beat_at = -math.inf
        self._back_at = math.inf  # when a store that was lost answered first
        self._reason = ""  # of the last failure
        self._wanted = trio.Event()
        supply.wake = self._wake
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def _wake(self) -> None:
        self._wanted.set()

    async def run(self) -> None:
        """Ask the store until cancelled."""
        while True:
            now = self._clock()
            if now >= self._beat_at:
                await self._beat()
            elif not self._supply.lost and self._supply.next_time(now) <= now:
                await self._ask()
            await trio.sleep(TICK)
            await self._until_wanted()

    async def _until_wanted(self) -> None:
        """Until somebody wants something, or it is time to."""
        now = self._clock()
        due = math.inf if self._supply.lost else self._supply.next_time(now)
        self._wanted = trio.Event()
        with trio.move_on_after(max(0.0, min(due, self._beat_at) - now)):
            await self._wanted.wait()

    async def _ask(self) -> None:
        asked = self._supply.questions(self._clock())
        if not asked:
            return
        answers = await self._called(self._store.reserve([it.ask for it in asked]))
        if answers is None:
            self._supply.unanswered(asked)
            self._lose()
            return
        self.figures.asked += len(asked)
        self._tell(asked, answers)
        reserved = [it if isinstance(it, Reserved) else None for it in answers]
        self._supply.answered(asked, reserved, self._clock())
        self._supplied([it.meter.owner for it in asked])

    def _tell(self, asked: Sequence[Asked], answers: Sequence[Reserved | StoreError]) -> None:
        """Log which limits have no answer from now on, and which have one again."""
        each = list(zip(asked, answers, strict=True))
        failures = [(it, no) for it, no in each if isinstance(no, StoreError)]
        lost = [(it, str(no)) for it, no in failures if not it.meter.lost]
        back = [it for it, answer in each if isinstance(answer, Reserved) and it.meter.lost]
        self.figures.refused += len(failures)
        if lost:
            key, reason = lost[0][0].ask.key, lost[0][1]
            self._log.warning("limits_lost", limits=len(lost), first=key, reason=reason)
        if back:
            self._log.info("limits_back", limits=len(back), first=back[0].ask.key)

    async def _beat(self) -> None:
        processes = await self._called(self._store.beat())
        now = self._clock()
        if processes is None:
            self._beat_at = now + AGAIN
            self._lose()
        elif self._are_all_there(processes, now):
            self._beat_at = now + BEAT
            self._supply.processes = self.figures.processes = max(1, processes)
            self._regain()
        else:
            self._beat_at = now + SOON

    def _are_all_there(self, processes: int, now: float) -> bool:
        """Those that were before a store was lost, or so many as came in time."""
        self._back_at = min(self._back_at, now)
        late = now >= self._back_at + GATHERING
        return not self._supply.lost or late or processes >= self._supply.processes

    async def _called(self, call: Awaitable[T]) -> T | None:
        """Answer what the store does; None: nothing in time."""
        self.figures.calls += 1
        self._reason = f"does not answer within {self._timeout * 1000:.0f} ms"
        with trio.move_on_after(self._timeout):
            try:
                return await call
            except StoreError as error:
                self._reason = str(error)
        self.figures.failures += 1
        return None

    def _lose(self) -> None:
        self._back_at = math.inf
        if self._supply.lost:
            return
        self._supply.lose()
        self.figures.lost = True
        self._beat_at = self._clock() + AGAIN
        self._log.warning("store_lost", reason=self._reason)
        self._supplied(None)

    def _regain(self) -> None:
        if self._supply.lost:
            self._supply.regain()
            self.figures.lost = False
            self._log.info("store_back", processes=self._supply.processes)
            self._supplied(None)
