"""Settings of property tests: the same examples in each run, and no deadline for slow machines."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """Return settings for this many examples. For a longer search, raise the number and drop
    `derandomize`."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
