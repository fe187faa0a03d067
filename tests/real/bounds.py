"""Ends hanging tests. A conftest that imports the hook bounds the tests of its folder."""

import signal
from collections.abc import Generator
from types import FrameType

import pytest

# A test that takes this long hangs, unless its marker `bound` says more. Brokers start in fixtures,
# which have bounds of their own.
TEST_SECONDS = 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Bound each test. The client's blocking calls let signals through, so this ends those too."""

    marker = item.get_closest_marker("bound")
    seconds = marker.args[0] if marker else TEST_SECONDS

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{item.name} did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
