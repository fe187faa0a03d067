"""Keep the commands of clients whose rights are asked of others, until there is a response.

A command is decided then as if it came only now. Later requests about the same producer or consumer
wait behind it, so that no close overtakes the opening that it closes. All else of the connection
goes on.
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

MOST_ASKED = 128
"""Questions about one command, each of which names 100 topics at most."""

Party = tuple[object, int]
"""Whatever a command is about; commands of one party keep their order."""


class _Kept(NamedTuple):
    """A frame that waits. `asked`: how often its rights were asked for."""

    frame: bytes
    asked: int = 0


class UndecidedCommands:
    """The commands of one pair that wait for answers.

    `decide`: decides a frame at a time, or returns what is still not known of it. `refuse`: returns
    the effects of refusing a frame.
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
        """Keep a frame behind others of its party; None: there are none."""
        kind = kind_of(frame)
        if kind not in REQUESTS:
            return None
        queue = self._queues.get(read_request(kind, command).party)
        if queue is None:
            return None
        return DROP if self._keep(queue, frame) else self._refuse(frame, FULL)

    def ask(self, command: BaseCommand, frame: bytes, undecided: Undecided) -> Effects:
        """Keep a frame until there is a response about it."""
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
        """Decide the frames of a party until one has to be asked about."""
        queue = self._queues.get(party)
        if queue is None:
            return ()  # the pair is over
        effects: list[Effect] = []
        while queue:
            frame, asked = queue[0]
            found = self._found(frame, asked, result, now)
            if isinstance(found, Undecided):
                queue[0] = _Kept(frame, asked + 1)
                return (*effects, self._start(party, found))
            queue.popleft()
            self._waiting.give_back(frame)
            effects += found
            result = b""
        del self._queues[party]
        return tuple(effects)

    def _found(
        self, frame: bytes, asked: int, result: bytes | Denial, now: float
    ) -> Iterable[Effect] | Undecided:
        if isinstance(result, Denial) or asked >= MOST_ASKED:
            return self._refuse(frame, UNKNOWN)
        return self._decide(frame, now)

    def clear(self) -> None:
        """Forget the commands of a pair that is over; it gives its quota back."""
        self._queues.clear()
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class _Question:
    """The job that waits for a response."""

    undecided: Undecided

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = UNKNOWN
    late: ClassVar[Denial] = UNKNOWN

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `contract.Job`."""
        yield Settle(self.undecided.ask)
        return b""
