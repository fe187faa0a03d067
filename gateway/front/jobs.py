"""Does what sessions ask for and must wait for, and tells servers how their pairs ended.

The plane calls these hooks within a turn: work is only begun here.
"""

from __future__ import annotations

import trio

from gateway.errors import PeerError
from gateway.front.connection import Connection
from gateway.front.conversation import Conversation
from gateway.front.side import SideConnections
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor
from gateway.wire.contract import Denial, EndReason, Job, Refusal

PATIENCE = 10.0
"""Seconds for one job. Clients give a lookup 30 s, and all delays of one sequence share them."""

_FAILED = Denial(Refusal.NOT_READY, "the topic's broker was not found")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the topic's broker was not found in time")


class Jobs:
    """See `plane.reactor.Hooks`. `nursery` and `reactor` are set before the first pair opens."""

    nursery: trio.Nursery
    reactor: Reactor

    def start(self, pair: Pair, job: Job, token: int) -> None:
        """See `Hooks`."""
        self.nursery.start_soon(self._do, pair, job, token)

    def ended(self, pair: Pair, reason: EndReason, detail: str) -> None:
        """See `Hooks`."""
        connection = _connection(pair)
        connection.server.ended(connection, reason, detail)

    def crashed(self, pair: Pair, error: Exception) -> None:
        """See `Hooks`."""
        connection = _connection(pair)
        connection.server.crashed(connection, error)

    async def _do(self, pair: Pair, job: Job, token: int) -> None:
        connection = _connection(pair)
        if connection.side is None:
            connection.side = SideConnections(connection.server.connect)
        result: bytes | Denial = _TOO_SLOW
        with trio.move_on_after(PATIENCE):
            async with connection.side.room:
                result = await self._converse(pair, connection.side, job)
        self.reactor.resume(pair, token, result)
        await connection.side.expire()

    async def _converse(self, pair: Pair, side: SideConnections, job: Job) -> bytes | Denial:
        """Have one conversation; whatever goes wrong in it is an answer, not the end of others."""
        conversation = Conversation(trio.current_time() + PATIENCE, side.reach)
        usable = False
        try:
            if pair.over:
                return _FAILED
            result = await conversation.run(job.converse())
            usable = isinstance(result, bytes)
        except PeerError:
            return _FAILED
        except Exception as error:
            self.crashed(pair, error)
            return _FAILED
        else:
            return result
        finally:
            side.give_back(conversation.reached, usable=usable)


def _connection(pair: Pair) -> Connection:
    assert isinstance(pair.owner, Connection)
    return pair.owner
