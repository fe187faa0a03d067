"""What tests of several folders share: brokers, gateways in front of them, and clients."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

pytest_plugins = [
    "tests.kubernetes.fixtures",
    "tests.real.fixtures",
    "tests.real.configurations",
    "tests.apache_tubemq.fixtures",  # behind what it imports, whose assertions pytest rewrites
    "tests.support.grouped",
    "tests.support.tiers",
]

# The same examples in each run. To search for others, take `derandomize` out for a while.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")


@pytest.fixture
def own_log() -> Iterator[None]:
    """Undo what a command in this process does to its logging."""
    yield
    structlog.reset_defaults()
