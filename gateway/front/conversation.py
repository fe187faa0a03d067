"""Carries out the steps of a conversation: receive, transmit, wait, dial.

The conversation itself is a generator without I/O; see `wire.contract`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, assert_never

import trio

from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Direction,
    Peek,
    Peer,
    Principal,
    Receive,
    Refusal,
    Settle,
    Step,
    StepResult,
    Transmit,
    Wait,
)

T = TypeVar("T")

STEPS_AT_ONCE = 32
"""Steps in a row before other tasks run. Only a peer that sends faster than the gateway reads gets
so far: each frame has arrived when the conversation asks for it, so this task never waits."""

Reach = Callable[[Address | None], Awaitable[tuple[Leg, Dialled] | Denial]]
"""Connects a conversation to a broker; None: to any broker."""

Watch = Callable[[Direction, bytes], None]
"""Called with each received frame, for traces."""


class Conversation:
    """Runs one conversation. `deadline`: when all its steps must be done, by trio's clock. `reach`:
    connects to a broker. `watch`: called with each received frame. `retire`: called with the
    previous broker's leg before another broker is dialled.

    `legs`: the open legs. `silent`: the leg of the broker whose response is awaited; at the end,
    the leg of a broker that did not respond in time. `principal`: the client's principal; None
    before authentication.
    """

    def __init__(
        self,
        deadline: float,
        reach: Reach,
        client: Leg | None = None,
        watch: Watch | None = None,
        retire: Callable[[Leg], None] = Leg.close,
    ) -> None:
        self._deadline = deadline
        self._reach = reach
        self._watch = watch
        self._retire = retire
        self.legs: dict[Peer, Leg] = {} if client is None else {Peer.CLIENT: client}
        self.silent: Leg | None = None
        self.principal: str | None = None

    @property
    def reached(self) -> list[Leg]:
        """Return a list with the broker's leg, which wraps its stream; an empty list if no broker
        was reached."""
        return [self.legs[Peer.BROKER]] if Peer.BROKER in self.legs else []

    async def run(self, steps: Generator[Step, StepResult, T]) -> T:
        """Carry out the steps that the generator yields, and return what it returns. Raises what it
        raises."""
        try:
            return await self._run(steps)
        finally:
            for leg in self.legs.values():
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
            case Peek(peer, count):
                return await self._peek(peer, count)
            case Transmit(peer, data):
                if peer in self.legs:
                    await self.legs[peer].transmit(data, self._deadline)
                return None
            case Wait(seconds, yields):
                await self._wait(seconds, yields=yields)
                return None
            case Dial(target, principal):
                self.principal = principal
                return await self._dial(target)
            case Settle(response):
                return await self._settle(response)
            case _:
                assert_never(step)

    async def _receive(self, peer: Peer) -> StepResult:
        leg = self.legs.get(peer)
        if leg is None:
            return Denial(Refusal.CLOSED, "there is no such connection")
        self.silent = leg if peer is Peer.BROKER else None
        frame = await leg.receive(self._deadline)
        if not isinstance(frame, Denial) or frame.refusal is not Refusal.TIMEOUT:
            self.silent = None
        if self._watch is not None and isinstance(frame, bytes):
            self._watch(_DIRECTIONS[peer], frame)
        return frame

    async def _peek(self, peer: Peer, count: int) -> StepResult:
        leg = self.legs.get(peer)
        if leg is None:
            return Denial(Refusal.CLOSED, "there is no such connection")
        return await leg.peek(count, self._deadline)

    async def _wait(self, seconds: float, *, yields: bool) -> None:
        until = min(trio.current_time() + seconds, self._deadline)
        with trio.CancelScope() as scope, self._patience(scope) if yields else nullcontext():
            await trio.sleep_until(until)

    def _patience(self, scope: trio.CancelScope) -> AbstractContextManager[object]:
        """Mark a wait in which the client may give way to others."""
        client = self.legs.get(Peer.CLIENT)
        return nullcontext() if client is None else client.patience(scope)

    async def _settle(
        self, response: Callable[[], Awaitable[Principal | Denial | None]]
    ) -> StepResult:
        with trio.CancelScope(deadline=self._deadline) as scope, self._patience(scope):
            return await response()
        return _NOT_SETTLED

    async def _dial(self, target: Address | None) -> StepResult:
        previous = self.legs.pop(Peer.BROKER, None)
        if previous is not None:
            previous.release()
            self._retire(previous)
        reached = await self._reach(target)
        if isinstance(reached, Denial):
            return reached
        leg, dialled = reached
        self.legs[Peer.BROKER] = leg
        await leg.wait_turn()  # the brokers of many conversations may accept at once
        return dialled


_NOT_SETTLED = Denial(Refusal.TIMEOUT, "it took too long to check the credential")

_DIRECTIONS = {Peer.CLIENT: Direction.TO_BROKER, Peer.BROKER: Direction.TO_CLIENT}
