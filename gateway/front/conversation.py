"""Carries out the steps of a conversation: receive, transmit, wait, dial.

The conversation itself is a generator without I/O; see `wire.contract`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar, assert_never

import trio

from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Direction,
    Peer,
    Receive,
    Refusal,
    Step,
    StepResult,
    Transmit,
    Wait,
)

T = TypeVar("T")

STEPS_AT_ONCE = 32
"""Steps in a row before others have a chance. Only a peer that talks faster than we listen gets so
far: each of its frames is there when it is asked for, so nothing else would ever wait."""

Reach = Callable[[Address | None], Awaitable[tuple[Leg, Dialled] | Denial]]
"""How a conversation gets its broker leg."""

Watch = Callable[[Direction, bytes], None]
"""Told of each frame that was received; for traces."""


class Conversation:
    """The legs of one conversation. `deadline`: of trio's clock, for each of its steps.

    `leave`: takes the broker leg before, where another broker is dialled.
    `silent`: the broker leg on which an answer is awaited; at the end, one that did not come.
    """

    def __init__(
        self,
        deadline: float,
        reach: Reach,
        client: Leg | None = None,
        watch: Watch | None = None,
        leave: Callable[[Leg], None] = Leg.close,
    ) -> None:
        self._deadline = deadline
        self._reach = reach
        self._watch = watch
        self._leave = leave
        self.legs: dict[Peer, Leg] = {} if client is None else {Peer.CLIENT: client}
        self.silent: Leg | None = None
        self.reached: list[Leg] = []  # the broker leg, if there is one

    async def run(self, steps: Generator[Step, StepResult, T]) -> T:
        """Carry the steps out, to the outcome. Raises what the generator raises."""
        try:
            return await self._run(steps)
        finally:
            for leg in (*self.legs.values(), *self.reached):
                leg.release()

    async def _run(self, steps: Generator[Step, StepResult, T]) -> T:
        result: StepResult = None
        taken = 0
        while True:
            taken += 1
            if taken % STEPS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            try:
                step = steps.send(result)
            except StopIteration as stop:
                outcome: T = stop.value
                return outcome
            result = await self._carry_out(step)

    async def _carry_out(self, step: Step) -> StepResult:
        match step:
            case Receive(peer):
                return await self._receive(peer)
            case Transmit(peer, data):
                if peer in self.legs:
                    await self.legs[peer].transmit(data, self._deadline)
                return None
            case Wait(seconds):
                await trio.sleep_until(min(trio.current_time() + seconds, self._deadline))
                return None
            case Dial(target):
                return await self._dial(target)
            case _:
                assert_never(step)

    async def _receive(self, peer: Peer) -> StepResult:
        leg = self.legs.get(peer)
        if leg is None:
            return Denial(Refusal.CLOSED, "nobody is there")
        self.silent = leg if peer is Peer.BROKER else None
        frame = await leg.receive(self._deadline)
        if not isinstance(frame, Denial) or frame.refusal is not Refusal.TIMEOUT:
            self.silent = None
        if self._watch is not None and isinstance(frame, bytes):
            self._watch(_WAYS[peer], frame)
        return frame

    async def _dial(self, target: Address | None) -> StepResult:
        self.legs.pop(Peer.BROKER, None)
        while self.reached:
            before = self.reached.pop()
            before.release()
            self._leave(before)
        reached = await self._reach(target)
        if isinstance(reached, Denial):
            return reached
        leg, dialled = reached
        self.legs[Peer.BROKER] = leg
        self.reached.append(leg)
        await leg.turn()  # brokers may accept from many conversations at once
        return dialled


_WAYS = {Peer.CLIENT: Direction.TO_BROKER, Peer.BROKER: Direction.TO_CLIENT}
