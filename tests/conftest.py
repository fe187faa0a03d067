"""What tests of several folders share: brokers, gateways in front of them, and clients."""

import pytest
from hypothesis import settings

pytest_plugins = ["tests.real.fixtures", "tests.real.configurations"]

# The same examples in each run. To search for others, take `derandomize` out for a while.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs alone: a real broker keeps two cores busy."""
    for item in items:
        if item.get_closest_marker("real") and not _is_on_sandbox(item):
            item.add_marker(pytest.mark.alone)


def _is_on_sandbox(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "sandbox" in _parameters(item)


def _parameters(item: pytest.Function) -> tuple[object, ...]:
    callspec = getattr(item, "callspec", None)
    return () if callspec is None else tuple(callspec.params.values())
