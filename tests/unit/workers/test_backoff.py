"""How soon a worker is started again."""

from __future__ import annotations

from itertools import pairwise

from gateway.workers.backoff import FIRST, LASTING, LONGEST, BackOff


def test_who_ends_again_and_again_waits_longer_and_longer() -> None:
    back_off = BackOff()
    waits = [back_off.after(lived=1.0) for _ in range(10)]
    assert waits[0] == FIRST
    assert all(later == min(LONGEST, 2 * wait) for wait, later in pairwise(waits))
    assert waits[-1] == LONGEST


def test_a_long_life_is_a_new_beginning() -> None:
    back_off = BackOff()
    for _ in range(10):
        back_off.after(lived=1.0)
    assert [back_off.after(lived=LASTING), back_off.after(lived=0.0)] == [FIRST, 2 * FIRST]
