"""Works ahead of who reads: some items at a time, in threads, with the results in order."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], window: int
) -> Generator[Result, None, None]:
    """Yield what `work` returns of each item, or raise what it raises. At most `window` results are
    under way or wait; nothing is begun for a reader that has gone."""
    under_way: deque[Future[Result]] = deque()
    threads = ThreadPoolExecutor(window)
    try:
        for item in items:
            under_way.append(threads.submit(work, item))
            if len(under_way) == window:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)
