"""How property tests draw: the same examples in each run, and no deadline for a slow machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """This many examples. To search for longer, raise the number and drop `derandomize`."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
