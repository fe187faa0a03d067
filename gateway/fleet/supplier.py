"""Calls the store for all shared limits of a process, and tracks how many processes share them.

One call sends all requests that were made since the last call. Calls are at least `TICK` apart, so
the rate of calls does not depend on traffic. If a call times out, the store is *lost*: each limit
works within this process alone, as its rule says, and no client waits for the store. The supplier
tries again until the store responds.

If the store responds with an error for one limit, only that limit works within this process alone,
and the supplier asks for this limit again later.
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

    from gateway.policy.supply import SentRequest, Supply

T = TypeVar("T")

TICK = 0.005
"""Seconds between two calls; on average they delay a response by half of that."""

BEAT = 1.0
"""Seconds between two heartbeats of this process."""

AGAIN = 0.5
"""Seconds between attempts to reach a lost store."""

GATHERING = 1.0
"""Seconds for all other processes to find that the store is back. A process that shared earlier
would have the whole rate, while the others still use their local parts."""

SOON = 0.05
"""Seconds between heartbeats while the other processes are still missing."""


class Supplier:
    """Makes the calls of one process to its store. `supplied`: called with the owners of the limits
    that got a response, or with None if all limits are affected. `timeout`: seconds for one call.
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
        self._back_at = math.inf  # when a lost store first answered again
        self._reason = ""  # of the last failure
        self._wanted = trio.Event()
        supply.wake = self._wake
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def _wake(self) -> None:
        self._wanted.set()

    async def run(self) -> None:
        """Make the calls to the store that are due, until cancelled."""
        while True:
            now = self._clock()
            if now >= self._beat_at:
                await self._beat()
            elif not self._supply.lost and self._supply.next_time(now) <= now:
                await self._ask()
            await trio.sleep(TICK)
            await self._wait()

    async def _wait(self) -> None:
        """Wait until a limit is requested, or the next request or heartbeat is due."""
        now = self._clock()
        due = math.inf if self._supply.lost else self._supply.next_time(now)
        self._wanted = trio.Event()
        with trio.move_on_after(max(0.0, min(due, self._beat_at) - now)):
            await self._wanted.wait()

    async def _ask(self) -> None:
        requests = self._supply.questions(self._clock())
        if not requests:
            return
        responses = await self._call(self._store.reserve([request.ask for request in requests]))
        if responses is None:
            self._supply.unanswered(requests)
            self._lose()
            return
        self.figures.asked += len(requests)
        self._log_changes(requests, responses)
        reserved = [response if isinstance(response, Reserved) else None for response in responses]
        self._supply.answered(requests, reserved, self._clock())
        self._supplied([request.meter.owner for request in requests])

    def _log_changes(
        self, requests: Sequence[SentRequest], responses: Sequence[Reserved | StoreError]
    ) -> None:
        """Log the limits for which the store fails now, and those for which it works again."""
        pairs = list(zip(requests, responses, strict=True))
        failures = [(sent, error) for sent, error in pairs if isinstance(error, StoreError)]
        lost = [(sent, str(error)) for sent, error in failures if not sent.meter.lost]
        back = [sent for sent, got in pairs if isinstance(got, Reserved) and sent.meter.lost]
        self.figures.refused += len(failures)
        if lost:
            key, reason = lost[0][0].ask.key, lost[0][1]
            self._log.warning("limits_lost", limits=len(lost), first=key, reason=reason)
        if back:
            self._log.info("limits_back", limits=len(back), first=back[0].ask.key)

    async def _beat(self) -> None:
        processes = await self._call(self._store.beat())
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
        """Return true if as many processes as before the loss are back, or `GATHERING` is over."""
        self._back_at = min(self._back_at, now)
        late = now >= self._back_at + GATHERING
        return not self._supply.lost or late or processes >= self._supply.processes

    async def _call(self, call: Awaitable[T]) -> T | None:
        """Return the store's response; None if it failed, or did not come in time."""
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
