"""Folding floods of log lines."""

from __future__ import annotations

import pytest
import structlog
from structlog.typing import EventDict

from gateway.telemetry.folding import CLIENTS, INTERVAL, KINDS, KINDS_OF_CLIENT, Folding


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folding(clock: Clock) -> Folding:
    return Folding(burst=5, clock=clock)


def passed(folding: Folding, method: str = "warning", **event: object) -> EventDict | None:
    try:
        return folding(None, method, {"level": method, **event})
    except structlog.DropEvent:
        return None


def count(folding: Folding, method: str, number: int, **event: object) -> int:
    """Return the number of lines that pass."""
    return sum(passed(folding, method, **event) is not None for _ in range(number))


def test_identical_warnings_are_folded_and_counted(folding: Folding, clock: Clock) -> None:
    assert passed(folding, event="e") == {"level": "warning", "event": "e"}
    clock.now += 9.9
    assert [passed(folding, event="e") for _ in range(3)] == [None] * 3
    clock.now += 0.2
    assert passed(folding, event="e") == {"level": "warning", "event": "e", "repeated": 3}
    clock.now += INTERVAL
    assert passed(folding, event="e") == {"level": "warning", "event": "e"}


def test_warnings_that_differ_pass(folding: Folding) -> None:
    assert passed(folding, event="e", reason="a")
    assert passed(folding, event="e", reason="b")
    assert passed(folding, event="f", reason="a")
    assert passed(folding, "error", event="e", reason="a")


def test_fields_of_one_occurrence_make_no_difference(folding: Folding) -> None:
    assert passed(folding, event="e", connection=1, client="a:1")
    assert not passed(folding, event="e", connection=2, client="a:2")


def test_a_client_hides_neither_other_causes_nor_other_clients(folding: Folding) -> None:
    count(folding, "warning", 100, event="e", client="10.0.0.1:1", detail="expired")
    assert passed(folding, event="e", client="10.0.0.1:2", detail="audience")
    assert passed(folding, event="e", client="10.0.0.2:1", detail="expired")
    assert passed(folding, event="e", client="[2001:db8::1]:1", detail="expired")
    invented = sum(
        passed(folding, event="e", client="10.0.0.1:3", detail=f"{n}") is not None
        for n in range(100)
    )
    assert invented == KINDS_OF_CLIENT - 1
    assert passed(folding, event="e", client="10.0.0.2:1", detail="audience")


def test_clients_beyond_a_bound_are_folded_together(folding: Folding, clock: Clock) -> None:
    def lines() -> int:
        clients = (f"10.0.{n // 250}.{n % 250}:1" for n in range(1000))
        return sum(passed(folding, event="e", client=client) is not None for client in clients)

    assert lines() == CLIENTS + 1
    clock.now += INTERVAL + 0.1
    assert lines() == CLIENTS + 1
    assert all(len(it.clients) <= CLIENTS for it in folding._events.values())


def test_info_lines_pass_until_the_burst_is_used_up(folding: Folding, clock: Clock) -> None:
    """One line passes by its kind, five by its event."""
    assert count(folding, "info", 100, event="e") == 1 + 5
    clock.now += INTERVAL + 0.1
    again = passed(folding, "info", event="e")
    assert again is not None
    assert again["repeated"] == 94
    assert count(folding, "info", 100, event="e") == 5


def test_a_flood_of_one_kind_hides_no_other(folding: Folding) -> None:
    count(folding, "info", 100, event="e", reason="client_closed")
    assert passed(folding, "info", event="e", reason="broker_closed")
    assert passed(folding, "info", event="f")
    assert passed(folding, "warning", event="e", reason="client_closed")


def test_passed_and_repeated_lines_add_up(folding: Folding, clock: Clock) -> None:
    lines = told = 0
    for number in range(3000):
        clock.now += 0.05
        line = passed(folding, event="e", reason=number % 100)
        lines += line is not None
        told += line["repeated"] if line and "repeated" in line else 0
    clock.now += INTERVAL + 0.1
    for reason in range(100):
        line = passed(folding, event="e", reason=reason)
        lines += line is not None
        told += line["repeated"] if line and "repeated" in line else 0
    clock.now += INTERVAL + 0.1
    for reason in range(100, 100 + KINDS + 1):
        line = passed(folding, event="e", reason=reason)
        lines += line is not None
        told += line["repeated"] if line and "repeated" in line else 0
    assert lines + told == 3000 + 100 + KINDS + 1


@pytest.mark.parametrize(("method", "most"), [("warning", KINDS + 1), ("info", KINDS + 1 + 5)])
def test_invented_values_are_folded_too(
    folding: Folding, clock: Clock, method: str, most: int
) -> None:
    for _ in range(3):
        lines = sum(
            passed(folding, method, event="e", topic=f"{clock.now} {number}") is not None
            for number in range(10_000)
        )
        assert lines == most
        assert sum(len(it.others.kinds) for it in folding._events.values()) <= KINDS
        clock.now += INTERVAL + 0.1


def test_a_kind_may_have_values_of_any_type(folding: Folding) -> None:
    assert passed(folding, event="e", addresses=["a"])
    assert passed(folding, event="e", addresses=["b"])
    assert not passed(folding, event="e", addresses=["a"])


def test_traces_are_never_folded(folding: Folding) -> None:
    assert count(folding, "info", 1000, event="frame", frame="PING") == 1000
