"""Marks the tests of this folder: all need Java and the brokers' jars."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.real.brokers.jars import PULSAR_VERSION, Say
from tests.real.fixtures import or_skip

from .oracle import Oracles


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/oracle/"):
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def oracles(say: Say) -> Iterator[Oracles]:
    """Yield the decoders of all versions. Skips the tests without Java."""
    with or_skip(Oracles, say) as all_of_them:
        yield all_of_them


@pytest.fixture(scope="session")
def oracle(say: Say) -> Iterator[Oracles]:
    """Yield the decoder of the version whose brokers quick tests start. Skips them without Java."""
    with or_skip(partial(Oracles, versions=(PULSAR_VERSION,)), say) as one:
        yield one
