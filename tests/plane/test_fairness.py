"""Who is served first while several clients have work."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict
from collections.abc import Mapping
from functools import partial

import pytest

from gateway.plane.backlog import Backlog
from gateway.plane.fairness import AHEAD, Fairness, Served
from gateway.wire.contract import FORWARD, Direction, Effects
from gateway.wire.subject import Caller

from .harness import Opened, Plane
from .protocol import FakeSession, stop

COST = AHEAD / 2


def first(busy: Mapping[str, Served]) -> str:
    """Return whom the loop serves first of those that have work."""
    for name, served in busy.items():
        if served.is_due():
            return name
    chosen = next(iter(busy))
    for name, served in busy.items():
        if served.precedes(busy[chosen]):
            chosen = name
    busy[chosen].admit()
    assert busy[chosen].is_due()
    return chosen


def shares(
    busy: Mapping[str, Served], costs: Mapping[str, float], rounds: int
) -> Mapping[str, float]:
    """Return for how many seconds each was served while all of them have work without end."""
    had: dict[str, float] = defaultdict(float)
    for _ in range(rounds):
        name = first(busy)
        busy[name].charge(costs.get(name, COST))
        had[name] += costs.get(name, COST)
    return had


# -- the parts -----------------------------------------------------------------------------------


def test_clients_get_equal_parts_whatever_an_event_of_theirs_costs() -> None:
    fairness = Fairness()
    busy = {"dear": fairness.served(None, "a"), "cheap": fairness.served(None, "b")}
    had = shares(busy, {"dear": 20 * COST, "cheap": COST / 10}, 20_000)
    assert had["dear"] == pytest.approx(had["cheap"], rel=0.05)


def test_a_hundred_connections_of_one_address_get_what_one_of_another_gets() -> None:
    fairness = Fairness()
    busy = {f"many {n}": fairness.served(None, "many") for n in range(100)}
    busy["one"] = fairness.served(None, "one")
    had = shares(busy, {}, 20_000)
    assert had["one"] == pytest.approx(sum(had.values()) / 2, rel=0.01)


def test_a_principal_gets_no_more_from_many_addresses() -> None:
    fairness = Fairness()
    busy = {f"spread {n}": fairness.served("spread", f"host {n}") for n in range(50)}
    busy["one"] = fairness.served("one", "host 1")
    had = shares(busy, {}, 20_000)
    assert had["one"] == pytest.approx(sum(had.values()) / 2, rel=0.01)


def test_the_connections_of_an_address_get_equal_parts() -> None:
    fairness = Fairness()
    busy = {name: fairness.served(None, "proxy") for name in ("dear", "cheap")}
    had = shares(busy, {"dear": 10 * COST}, 20_000)
    assert had["dear"] == pytest.approx(had["cheap"], rel=0.05)


def test_a_host_and_a_principal_of_one_name_are_two_clients() -> None:
    fairness = Fairness()
    assert fairness.served("a", "b").above is not fairness.served(None, "a").above


def test_an_event_is_rarely_left_out_while_clients_have_equal_parts() -> None:
    """Each costs another poll."""
    fairness = Fairness()
    busy = [fairness.served(None, "proxy") for _ in range(32)]
    left_out, events = 0, 20_000
    for number in range(events):
        served = busy[number % len(busy)]
        if not served.is_due():
            left_out += 1
            served.admit()
        served.charge(AHEAD / 100)
    assert left_out < events / 50


def test_who_comes_back_is_served_at_once_and_has_no_credit() -> None:
    fairness = Fairness()
    busy = {"busy": fairness.served(None, "a"), "other": fairness.served(None, "b")}
    shares(busy, {}, 10_000)
    late = fairness.served(None, "late")
    assert late.is_due()
    had = shares({**busy, "late": late}, {}, 3_000)
    assert had["late"] == pytest.approx(1_000 * COST, rel=0.01)


def test_a_client_without_connections_is_forgotten() -> None:
    fairness = Fairness()
    served = fairness.served("p", "h")
    kept = weakref.ref(served)
    del served
    gc.collect()
    assert kept() is None
    assert not fairness._known


def test_work_put_off_by_one_client_does_not_precede_that_of_another() -> None:
    fairness, backlog, done = Fairness(), Backlog(), list[str]()

    def note(name: str, _now: float) -> None:
        done.append(name)

    for number in range(10):
        backlog.add(fairness.served(None, "many"), partial(note, f"many {number}"))
    backlog.add(fairness.served(None, "one"), partial(note, "one"))
    while backlog:
        served, work = backlog.take()
        work(0.0)
        served.charge(COST)
    assert done == ["many 0", "one", *(f"many {n}" for n in range(1, 10))]


# -- in the reactor ------------------------------------------------------------------------------


class Order:
    """Opens pairs whose decisions take `COST`, and notes the order of the decisions."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.hosts: list[str] = []

    def open(self, host: str) -> Opened:
        """Open a pair of a client at this address."""
        session = FakeSession()
        session.caller = Caller(connection=1, host=host)

        def response(_direction: Direction, _frame: bytes) -> Effects:
            self.hosts.append(host)
            self._plane.clock.now += COST
            return FORWARD

        session.response = response
        return self._plane.open(session)


def test_events_of_many_connections_do_not_precede_that_of_another_client(plane: Plane) -> None:
    order = Order(plane)
    opened = [order.open("many") for _ in range(30)]
    opened.append(order.open("one"))
    for pair in opened:
        pair.client.say(stop(b"x"))
    plane.turn()
    assert order.hosts.index("one") <= AHEAD / COST + 1
    assert order.hosts.count("many") == 30
    assert all(pair.broker.hear() == stop(b"x") for pair in opened)


def test_a_client_alone_is_served_without_a_pause(plane: Plane) -> None:
    order = Order(plane)
    pair = order.open("alone")
    for _ in range(50):
        pair.client.say(stop(b"x"))
        plane.turn()
    assert pair.broker.hear() == 50 * stop(b"x")
