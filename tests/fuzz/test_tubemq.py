"""TubeMQ's target, without a guide."""

from __future__ import annotations

from .kafka import storm
from .tubemq import TUBEMQ


def test_a_storm_finds_nothing() -> None:
    row = storm(TUBEMQ, 5000, 1, lambda _: None, name="tubemq")
    assert row.findings == ()
    assert row.frames >= 5000
