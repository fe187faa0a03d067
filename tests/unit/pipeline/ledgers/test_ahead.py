"""Work ahead of who reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from gateway.pipeline.ledgers.ahead import in_order


def test_results_come_in_order_though_later_ones_are_done_before() -> None:
    second = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second.wait(10)
        if item == 1:
            second.set()
        return item * item

    assert list(in_order(work, range(10), 3)) == [item * item for item in range(10)]


def test_no_more_than_the_window_is_begun_ahead() -> None:
    begun = 0

    def items() -> Iterator[int]:
        nonlocal begun
        for item in range(100):
            begun += 1
            yield item

    results = in_order(lambda item: item, items(), 4)
    assert begun == 0
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert begun == 4 + 2


def test_what_is_raised_comes_in_its_place() -> None:
    def work(item: int) -> int:
        if item == 2:
            raise KeyError(item)
        return item

    results = in_order(work, range(10), 4)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(KeyError):
        next(results)


def test_a_reader_that_goes_ends_the_threads() -> None:
    before = threading.active_count()
    results = in_order(lambda item: item, range(100), 4)
    assert next(results) == 0
    results.close()
    assert threading.active_count() == before


def test_without_items_there_are_no_results() -> None:
    assert list(in_order(lambda item: item, [], 4)) == []
