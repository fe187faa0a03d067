"""Rate limits of requests that several processes share."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Any

import pytest

from gateway.policy.dimensions import Dimension
from gateway.policy.matching import AppliedLimit
from gateway.wire.services import Again
from tests.unit.policy.fleet import Fleet, Process
from tests.unit.policy.test_requests import limit

OPENS = Dimension.PRODUCER_CREATIONS
LONGEST = OPENS.longest_wait or 0.0


class Clients:
    """Clients that make requests. `went`, `refused`: when each request passed or was refused."""

    def __init__(self, processes: int = 2, trip: float = 0.0005, **figures: Any) -> None:
        self.fleet = Fleet(processes, trip)
        self.limit: AppliedLimit = limit(**figures)
        self.went: list[tuple[float, int, Process]] = []
        self.refused: list[float] = []
        self.asked = 0
        self._began = self.fleet.now
        self._due: list[tuple[float, int, Process, Again | None]] = []
        self._tickets = count()

    @property
    def now(self) -> float:
        return self.fleet.now - self._began

    def come(self, process: int, number: int) -> None:
        for _ in range(number):
            self._ask(next(self._tickets), self.fleet.processes[process], None)

    def runs(self, seconds: float) -> None:
        end = self.fleet.now + seconds
        while self._due and self._due[0][0] <= end:
            when, ticket, process, again = heappop(self._due)
            self.fleet.runs(max(0.0, when - self.fleet.now))
            self._ask(ticket, process, again)
        self.fleet.runs(end - self.fleet.now)

    def _ask(self, ticket: int, process: Process, again: Again | None) -> None:
        self.asked += 1
        answer = process.requests.wait([self.limit], self.fleet.now, again)
        if isinstance(answer, Again):
            entry = (self.fleet.now + answer.seconds, ticket, process, answer)
            heappush(self._due, entry)
        elif isinstance(answer, float):
            self.went.append((self.now + answer, ticket, process))
        else:
            self.refused.append(self.now)


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("trip", [0.0005, 0.01])
def test_no_more_pass_in_all_than_the_limit_allows(processes: int, trip: float) -> None:
    clients = Clients(processes, trip, rate=20, burst=5)
    for _ in range(10):
        for process in range(processes):
            clients.come(process, 8)
        clients.runs(1.0)
    clients.runs(6.0)
    went = sorted(when for when, _, _ in clients.went)
    for number, when in enumerate(went):
        assert number + 1 <= 5 + 20 * when + 1
    # No request came in the last seconds, and each has passed or was refused.
    assert len(went) + len(clients.refused) == 80 * processes
    assert len(went) >= min(80 * processes, 20 * 10)


def test_one_process_alone_has_all_of_the_rate() -> None:
    clients = Clients(4, rate=50, burst=1)
    clients.come(0, 100)
    clients.runs(LONGEST)
    assert len(clients.went) + len(clients.refused) == 100
    assert len(clients.went) >= 95


def test_requests_pass_in_the_order_in_which_they_came() -> None:
    clients = Clients(1, rate=20, burst=1)
    clients.come(0, 40)
    clients.runs(5.0)
    tickets = [ticket for _, ticket, _ in clients.went]
    assert len(tickets) == 40
    # Two requests at the same time may change places.
    assert all(abs(ticket - place) <= 1 for place, ticket in enumerate(tickets))


def test_a_new_request_does_not_overtake_waiting_ones() -> None:
    clients = Clients(1, rate=10, burst=1)
    clients.come(0, 10)
    for _ in range(4):
        clients.runs(0.5)
        clients.come(0, 1)
    clients.runs(5.0)
    tickets = [ticket for _, ticket, _ in clients.went]
    assert len(tickets) == 14
    assert all(abs(ticket - place) <= 1 for place, ticket in enumerate(tickets))


def test_a_request_that_would_wait_too_long_is_refused_soon() -> None:
    clients = Clients(2, rate=10, burst=1)
    clients.come(0, 200)
    clients.runs(0.01)
    assert len(clients.refused) >= 200 - 10 * LONGEST - 2
    assert all(when < 0.05 for when in clients.refused)


def test_waiting_requests_ask_seldom() -> None:
    clients = Clients(4, rate=100, burst=1)
    for process in range(4):
        clients.come(process, 400)
    clients.runs(10.0)
    assert clients.asked / 1600 < 10


def test_a_rule_that_rejects_lets_producers_wait_only_for_an_answer() -> None:
    clients = Clients(2, rate=1, burst=3, action="reject")
    clients.come(0, 10)
    clients.runs(1.0)
    assert len(clients.went) == 3
    assert all(when <= 0.2 for when in clients.refused)
    assert len(clients.refused) == 7


def test_a_waiting_request_that_never_asks_again_is_forgotten() -> None:
    clients = Clients(1, rate=1, burst=1)
    process = clients.fleet.processes[0]
    clients.come(0, 4)
    clients._due.clear()
    (figures,) = process.requests.figures(clients.fleet.now)
    assert figures.waiting == 4
    clients.runs(LONGEST + 1)
    clients.come(0, 1)
    clients.runs(2)
    assert len(clients.went) == 1
    (figures,) = process.requests.figures(clients.fleet.now)
    assert figures.waiting == 0


@pytest.mark.parametrize(("on_loss", "least", "most"), [("open", 100, 100), ("closed", 0, 1)])
def test_without_a_store_requests_follow_on_loss(on_loss: str, least: int, most: int) -> None:
    clients = Clients(2, rate=10, burst=1, on_store_failure=on_loss)
    for process in clients.fleet.processes:
        process.loses()
    clients.come(0, 100)
    clients.runs(6)
    assert least <= len(clients.went) <= most
    assert len(clients.went) + len(clients.refused) == 100


def test_without_a_store_each_process_takes_its_part() -> None:
    clients = Clients(2, rate=10, burst=2)
    for process in clients.fleet.processes:
        process.loses()
    clients.come(0, 100)
    clients.runs(6)
    assert 5 * 4 <= len(clients.went) <= 5 * 6 + 2
