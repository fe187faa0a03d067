"""Keeps commands whose authorization a policy agent must decide, until its response.

When the response has come, the command is decided as if it came only then. Later requests about the
same producer or consumer wait behind it, so that no close overtakes the opening that it closes. All
other frames of the connection are forwarded meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from gateway.wire.contract import (
    DROP,
    Denial,
    Drop,
    Effect,
    Effects,
    Refusal,
    Settle,
    Start,
    Step,
    StepResult,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import kind_of
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.delays import FULL
from gateway.wire.pulsar.requests import REQUESTS, read_request
from gateway.wire.pulsar.waiting import WaitingFrames
from gateway.wire.services import Undecided

UNKNOWN = Denial(Refusal.NOT_READY, "whether this client may do this is not known now")

MOST_QUESTIONS = 128
"""Questions about one command, each of which names 100 topics at most."""

Party = tuple[object, int]
"""What a command is about, such as one producer; commands of one party keep their order."""


class _Kept(NamedTuple):
    """A frame that waits. `questions`: how many questions were asked about it."""

    frame: bytes
    questions: int = 0


class UndecidedCommands:
    """The commands of one pair whose authorization a policy agent has not decided yet.

    `decide`: returns the effects of a frame at a time, or an `Undecided` if the agent must be asked
    once more. `refuse`: returns the effects that refuse a frame.
    """

    __slots__ = ("_decide", "_next", "_queues", "_refuse", "_waiting")

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        decide: Callable[[bytes, float], Iterable[Effect] | Undecided],
        refuse: Callable[[bytes, Denial], Effects],
    ) -> None:
        self._decide = decide
        self._refuse = refuse
        self._waiting = WaitingFrames(listener, client)
        self._queues: dict[Party, deque[_Kept]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def follow(self, command: BaseCommand, frame: bytes) -> Effects | None:
        """If frames about the same producer or consumer wait, return the effects that make this
        frame wait behind them; otherwise None."""
        kind = kind_of(frame)
        if kind not in REQUESTS:
            return None
        queue = self._queues.get(read_request(kind, command).party)
        if queue is None:
            return None
        return DROP if self._keep(queue, frame) else self._refuse(frame, FULL)

    def ask(self, command: BaseCommand, frame: bytes, undecided: Undecided) -> Effects:
        """Return the effects that ask the policy agent about a frame, and make the frame wait for
        the response."""
        queue: deque[_Kept] = deque()
        if not self._keep(queue, frame):
            return self._refuse(frame, FULL)
        party = self._party(kind_of(frame), command)
        self._queues[party] = queue
        return (Drop(), self._start(party, undecided))

    def _party(self, kind: int, command: BaseCommand) -> Party:
        if kind in REQUESTS:
            return read_request(kind, command).party
        self._next += 1
        return None, self._next

    def _keep(self, queue: deque[_Kept], frame: bytes) -> bool:
        if not self._waiting.fits(frame):
            return False
        self._waiting.take(frame)
        queue.append(_Kept(frame))
        return True

    def _start(self, party: Party, undecided: Undecided) -> Start:
        return Start(_Question(undecided), partial(self._answered, party))

    def _answered(self, party: Party, result: bytes | Denial, now: float) -> Effects:
        """Decide the waiting frames of a party, up to a frame that needs another question."""
        queue = self._queues.get(party)
        if queue is None:
            return ()  # the pair is over
        effects: list[Effect] = []
        while queue:
            frame, questions = queue[0]
            outcome = self._decide_or_refuse(frame, questions, result, now)
            if isinstance(outcome, Undecided):
                queue[0] = _Kept(frame, questions + 1)
                return (*effects, self._start(party, outcome))
            queue.popleft()
            self._waiting.give_back(frame)
            effects += outcome
            result = b""
        del self._queues[party]
        return tuple(effects)

    def _decide_or_refuse(
        self, frame: bytes, questions: int, result: bytes | Denial, now: float
    ) -> Iterable[Effect] | Undecided:
        if isinstance(result, Denial) or questions >= MOST_QUESTIONS:
            return self._refuse(frame, UNKNOWN)
        return self._decide(frame, now)

    def clear(self) -> None:
        """Forget all waiting commands, because the pair has ended. Their bytes still count in the
        memory budget until `Client.leave` gives back all bytes of the connection."""
        self._queues.clear()
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class _Question:
    """The job that waits for the policy agent's response."""

    undecided: Undecided

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = UNKNOWN
    late: ClassVar[Denial] = UNKNOWN

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `contract.Job`."""
        yield Settle(self.undecided.ask)
        return b""
