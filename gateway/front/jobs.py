"""Runs the jobs that sessions start, and reports to servers how their pairs ended.

The plane calls these hooks within a turn, so they only start tasks.
"""

from __future__ import annotations

from functools import partial

import trio

from gateway.errors import PeerError
from gateway.front.connection import Connection
from gateway.front.conversation import Conversation
from gateway.front.side import JOBS_AT_ONCE, QueuedJob, SideConnections
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.wire.contract import AfterJob, Denial, EndReason, Job


class Jobs:
    """Implements `plane.pair.Hooks`. `nursery` and `reactor` must be set before the first pair
    opens."""

    nursery: trio.Nursery
    reactor: Reactor

    def start(self, pair: Pair, job: Job, then: AfterJob) -> None:
        """See `Hooks`. A client may start thousands of jobs at once, so they wait in a queue, not
        each in a task."""
        connection = _connection(pair)
        if connection.side is None:
            reach = partial(connection.server.reach, header=connection.header)
            connection.side = SideConnections(reach)
        side = connection.side
        side.waiting.append(QueuedJob(job, then, trio.current_time() + job.patience))
        if side.busy < JOBS_AT_ONCE:
            side.busy += 1
            self.nursery.start_soon(self._work, pair, side)

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        """See `Hooks`."""
        connection = _connection(pair)
        connection.server.ended(connection, reason, detail)

    def crashed(self, pair: Pair, error: Exception) -> None:
        """See `Hooks`."""
        connection = _connection(pair)
        connection.server.crashed(connection, error)

    async def _work(self, pair: Pair, side: SideConnections) -> None:
        """Run one job after another until none waits."""
        while side.waiting:
            job, then, deadline = side.waiting.popleft()
            result: bytes | Denial = job.late
            with trio.CancelScope(deadline=deadline):
                result = await self._converse(pair, side, job, deadline)
            self.reactor.resume(pair, then, result)
            await trio.lowlevel.checkpoint()  # a refused job may not have waited at all
        side.busy -= 1
        self._sweep_later(side)

    def _sweep_later(self, side: SideConnections) -> None:
        """Schedule the closing of unused connections. No task waits for it, and the deadline keeps
        no reference to the pair."""
        seconds = side.expires_in
        if seconds is None or side.sweeping:
            return

        def sweep(_now: float) -> None:
            side.sweeping = False
            side.sweep()
            self._sweep_later(side)

        side.sweeping = True
        self.reactor.deadlines.add(self.reactor.clock() + seconds, sweep)

    async def _converse(
        self, pair: Pair, side: SideConnections, job: Job, deadline: float
    ) -> bytes | Denial:
        """Run a job's conversation. A failure is a result, and does not end other jobs."""
        conversation = Conversation(deadline, side.reach, retire=side.retire)
        usable = False
        try:
            if pair.over:
                return job.failed
            result = await conversation.run(job.converse())
            usable = isinstance(result, bytes)
        except PeerError:
            return job.failed
        except Exception as error:
            self.crashed(pair, error)
            return job.failed
        else:
            return result
        finally:
            if trio.current_time() >= deadline:
                _connection(pair).server.unanswered(conversation)
            side.give_back(conversation.reached, usable=usable)


def _connection(pair: Pair) -> Connection:
    assert isinstance(pair.owner, Connection)
    return pair.owner
