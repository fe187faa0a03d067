"""Fixtures of the tests of `gateway.front`."""

from __future__ import annotations

import pytest
import trio.testing


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Return a clock that jumps only after real sockets had time to answer."""
    return trio.testing.MockClock(autojump_threshold=0.005)
