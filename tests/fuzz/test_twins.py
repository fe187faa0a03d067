"""Pure and compiled scanners do the same on some thousand frames; `tests.fuzz.twins` has more."""

from __future__ import annotations

import pytest

from gateway.compiled import COMPILED, WHY_PURE
from tests.fuzz import kafka_twins, tubemq_twins

pytestmark = pytest.mark.skipif(not COMPILED, reason=f"pure: {WHY_PURE}")


@pytest.mark.parametrize("seed", range(8))
def test_sessions_of_kafka_are_twins(seed: int) -> None:
    assert kafka_twins.run(3_000, seed=seed) >= 3_000


@pytest.mark.parametrize("seed", range(4))
def test_sessions_of_tubemq_are_twins(seed: int) -> None:
    assert tubemq_twins.run(2_000, seed=seed) >= 2_000
