"""Marks the tests of this folder: all need a real broker. `fixtures.py` says how to run them."""

from pathlib import Path

import pytest

from .bounds import pytest_runtest_call  # noqa: F401  # a hook


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
