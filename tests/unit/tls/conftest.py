"""Fixtures of the tests of `gateway.tls`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tls.samples import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Return an authority with a folder of its own."""
    return House(tmp_path)
