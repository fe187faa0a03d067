"""Marks the tests of this folder: all need a real broker. `fixtures.py` says how to run them."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/real/"):
            item.add_marker(pytest.mark.real)
