"""The compiled line of requests does what the pure one does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from gateway.compiled import COMPILED, WHY_PURE
from gateway.wire.account import Account, Action
from gateway.wire.kafka.in_flight import Asked, Line, PureLine

pytestmark = pytest.mark.skipif(not COMPILED, reason=f"pure: {WHY_PURE}")

ACCOUNTS = Account(Action.PRODUCE), Account(Action.PRODUCE)
MOST = 300


def usual(random: Random, number: int) -> Asked:
    """Return a request that sends to one topic or none."""
    accounts = tuple(random.choice(ACCOUNTS) for _ in range(random.randrange(2)))
    return Asked(*random.choice(((0, 9), (1, 13), (1, 12))), number, accounts)


def asked(random: Random, number: int) -> Asked:
    """Return any request."""
    kind = random.random()
    if kind < 0.7:
        return usual(random, number)
    if kind < 0.8:
        return Asked(0, 9, number, ACCOUNTS)
    return Asked(3, 12, number, is_own=kind < 0.9, since=kind)


def step(random: Random, number: int) -> Callable[[Any], object]:
    """Return what is done to both lines."""
    kind = random.random()
    if kind < 0.4:
        request = asked(random, number)
        return lambda line: line.is_full or line.ask(request)
    if kind < 0.5:
        return lambda line: line.is_full or line.add(bytes([number % 256]))
    if kind < 0.7:
        return lambda line: len(line) and line.pop()
    like = usual(random, 0)
    taken = random.random() < 0.7  # with the right id

    def take(line: Any) -> object:
        first = line.first
        correlation = first.correlation if taken and isinstance(first, Asked) else number
        return line.take(correlation, like)

    return take


@pytest.mark.parametrize("seed", range(40))
def test_lines_agree_whatever_is_done_to_them(seed: int) -> None:
    random = Random(seed)
    lines = PureLine(Asked, MOST), Line(Asked, MOST)
    for number in range(1000):
        act = step(random, number)
        pure, compiled = map(act, lines)
        assert pure == compiled
        pure, compiled = map(seen, lines)
        assert pure == compiled


def seen(line: Any) -> tuple[object, ...]:
    """Return all that a line says of itself."""
    numbers = len(line), line.open, line.room, line.is_full, line.precedes_own_answer
    return *numbers, line.first, list(line)
