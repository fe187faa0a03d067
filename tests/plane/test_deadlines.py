"""The heap of timers."""

from __future__ import annotations

import pytest

from gateway.plane.deadlines import FEW, Cancellable, Deadlines


class Alarm:
    """Counts how often the first deadline became earlier."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


@pytest.fixture
def alarm() -> Alarm:
    return Alarm()


@pytest.fixture
def deadlines(alarm: Alarm) -> Deadlines:
    return Deadlines(alarm)


def test_without_callbacks_there_is_no_head(deadlines: Deadlines) -> None:
    assert deadlines.head is None
    deadlines.expire(1e9)


def test_due_callbacks_are_called_in_order_of_time(deadlines: Deadlines) -> None:
    called: list[str] = []
    for when, name in ((3.0, "c"), (1.0, "a"), (4.0, "d"), (2.0, "b")):
        deadlines.add(when, lambda now, name=name: called.append(name))  # type: ignore[misc]
    deadlines.expire(3.0)
    assert called == ["a", "b", "c"]
    assert deadlines.head == 4.0
    assert len(deadlines) == 1


def test_callbacks_of_the_same_time_are_called_in_order_of_adding(deadlines: Deadlines) -> None:
    called: list[int] = []
    for number in range(5):
        deadlines.add(1.0, lambda now, number=number: called.append(number))  # type: ignore[misc]
    deadlines.expire(1.0)
    assert called == [0, 1, 2, 3, 4]


def test_a_callback_gets_the_current_time(deadlines: Deadlines) -> None:
    times: list[float] = []
    deadlines.add(1.0, times.append)
    deadlines.expire(7.5)
    assert times == [7.5]


def test_a_callback_may_add_another_one(deadlines: Deadlines) -> None:
    times: list[float] = []

    def again(now: float) -> None:
        times.append(now)
        deadlines.add(now + 1, again)

    deadlines.add(0.0, again)
    deadlines.expire(5.0)
    assert times == [5.0]
    assert deadlines.head == 6.0


def test_only_an_earlier_head_sets_the_alarm(deadlines: Deadlines, alarm: Alarm) -> None:
    deadlines.add(5.0, lambda now: None)
    assert alarm.times == 1
    deadlines.add(5.0, lambda now: None)
    deadlines.add(6.0, lambda now: None)
    assert alarm.times == 1
    deadlines.add(4.0, lambda now: None)
    assert alarm.times == 2


def test_cancelled_callbacks_do_not_pile_up(deadlines: Deadlines) -> None:
    called: list[float] = []
    deadlines.add(3600.0, called.append)
    for _ in range(10 * FEW):
        callback = Cancellable(called.append)
        deadlines.add(120.0, callback)
        deadlines.cancel(callback)
        assert len(deadlines) <= FEW + 2
    deadlines.expire(120.0)
    assert called == []
    deadlines.expire(3600.0)
    assert called == [3600.0]


def test_remaining_callbacks_stay_in_order(deadlines: Deadlines) -> None:
    called: list[float] = []
    callbacks = [Cancellable(called.append) for _ in range(5 * FEW)]
    for number, callback in enumerate(callbacks):
        deadlines.add(float(-number), callback)
    for callback in callbacks[: 4 * FEW]:
        deadlines.cancel(callback)
    assert len(deadlines) < 3 * FEW
    assert deadlines.head == 1.0 - 5 * FEW
    deadlines.expire(0.0)
    assert len(called) == FEW
