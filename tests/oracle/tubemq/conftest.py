"""The decoder of a TubeMQ server, for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip

from .oracle import TubeOracle


@pytest.fixture(scope="module")
def tube_oracle(say: Say) -> Iterator[TubeOracle]:
    """Yield the decoder. Skips the tests without Java."""
    with or_skip(TubeOracle, say) as oracle:
        yield oracle
