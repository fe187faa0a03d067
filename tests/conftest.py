"""What tests of several folders share: brokers, gateways in front of them, and clients."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

# Whatever another one imports comes before that: pytest rewrites assertions of new modules alone.
pytest_plugins = [
    "tests.kubernetes.fixtures",
    "tests.real.fixtures",
    "tests.real.configurations",
    "tests.apache_kafka.fixtures",
    "tests.apache_tubemq.fixtures",
    "tests.support.grouped",
    "tests.support.tiers",
    "tests.support.spent",
    "tests.support.without_processes",
]

# The same examples in each run. To search for others, take `derandomize` out for a while.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")


@pytest.fixture
def own_log() -> Iterator[None]:
    """Undo what a command in this process does to its logging."""
    yield
    structlog.reset_defaults()
