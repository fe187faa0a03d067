"""Several processes that share their limits by one book, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gateway.policy.limiter import Limiter, local_meter
from gateway.policy.limits import LimitSpec
from gateway.policy.requests import RequestLimiter
from gateway.policy.reservations import Reservations, Reserved, UnitRequest
from gateway.policy.supply import Metered, OnLoss, SentRequest, Supply
from tests.unit.policy.world import World

TICK = 0.005


class _Call(NamedTuple):
    """Requests on their way to the book, or their answers on the way back."""

    until: float
    asked: list[SentRequest]
    answers: list[Reserved | None] | None


class Process:
    """One process of a fleet."""

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.supply = Supply()
        self.world = World(limiter=Limiter(None, self._make_meter))
        self.requests = RequestLimiter(self.supply)
        self.world.now = now
        self.call: _Call | None = None
        self.next_call = now
        self.calls = 0

    def _make_meter(self, spec: LimitSpec) -> Metered:
        if spec.on_loss is None:
            return local_meter(spec)
        figures = (spec.rate, spec.metered_burst, spec.on_loss)
        return self.supply.meter(str(spec.key), *figures, owner=spec.identity)

    def next_time(self, now: float) -> float:
        """Return when something happens in this process."""
        return min(self._times(now))

    def _times(self, now: float) -> Iterator[float]:
        when = self.world.limiter.next_time(now)
        yield float("inf") if when is None else when
        if self.call is not None:
            yield self.call.until
        elif not self.supply.lost:
            yield max(self.supply.next_time(now), self.next_call)

    @property
    def passed(self) -> int:
        return sum(it.account.messages for it in self.world.producers)

    def loses(self) -> None:
        self.call = None
        self.supply.lose()
        self.world.limiter.supplied(None, self.world.now)

    def regains(self) -> None:
        self.supply.regain()
        self.world.limiter.supplied(None, self.world.now)


class Fleet:
    """`trip`: seconds of a request, and of its answer. `spoilt`: keys without answers. `refused`:
    requests without an answer."""

    def __init__(self, processes: int, trip: float = 0.0005) -> None:
        self.book = Reservations()
        self.now = 1000.0
        self.trip = trip
        self.spoilt: set[str] = set()
        self.refused = 0
        self.processes = [Process(str(number), self.now) for number in range(processes)]
        for process in self.processes:
            process.supply.processes = processes

    @property
    def passed(self) -> int:
        return sum(it.passed for it in self.processes)

    def runs(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            when = min(it.next_time(self.now) for it in self.processes)
            if when > end:
                break
            self.now = max(self.now, when)
            for process in self.processes:
                process.world.now = self.now
                if process.next_time(self.now) <= self.now:
                    self._acts(process)
        self.now = end
        for process in self.processes:
            process.world.now = end

    def _acts(self, process: Process) -> None:
        when = process.world.limiter.next_time(self.now)
        if when is not None and when <= self.now:
            process.world.holds_a_round()
        call = process.call
        if call is not None and call.until <= self.now:
            self._answers(process, call)
        elif call is None and not process.supply.lost and process.next_call <= self.now:
            self._asks(process)

    def _asks(self, process: Process) -> None:
        if process.supply.next_time(self.now) > self.now:
            return
        asked = process.supply.questions(self.now)
        if asked:
            process.calls += 1
            process.call = _Call(self.now + self.trip, asked, None)

    def _answers(self, process: Process, call: _Call) -> None:
        if call.answers is None:
            asks = [it.ask for it in call.asked]
            answers = [self._answer(process, ask) for ask in asks]
            process.call = _Call(self.now + self.trip, call.asked, answers)
            return
        self.refused += call.answers.count(None)
        process.call, process.next_call = None, self.now + TICK
        process.supply.answered(call.asked, call.answers, self.now)
        owners = [it.meter.owner for it in call.asked]
        process.world.limiter.supplied(owners, self.now)

    def _answer(self, process: Process, ask: UnitRequest) -> Reserved | None:
        if ask.key in self.spoilt:
            return None
        (answer,) = self.book.reserve(process.name, [ask], self.now)
        return answer


def shared(spec: LimitSpec, on_loss: OnLoss = OnLoss.LOCAL_SHARE) -> LimitSpec:
    """Return the same limit, shared by all processes."""
    return replace(spec, on_loss=on_loss)
