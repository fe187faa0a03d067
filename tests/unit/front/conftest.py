"""What tests of the front share."""

from __future__ import annotations

import pytest
import trio.testing


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Jumps only after real sockets had a moment to answer."""
    return trio.testing.MockClock(autojump_threshold=0.005)
