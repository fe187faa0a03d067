"""How the load of a tenant goes by the hour and the day of the week, without noise or events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.pipeline.demo.cast import Tenant

DAY_MS = 86_400_000

_THURSDAY = 3
"""Day of the week of 1970-01-01; Monday is 0."""

_SATURDAY = 5


def rhythm(tenant: Tenant, now_ms: int) -> float:
    """Return the factor of a time, whose mean over a weekday is 1."""
    hour = now_ms % DAY_MS / 3_600_000
    daily = 1.0 + tenant.swing * math.cos((hour - tenant.peak) * math.tau / 24)
    weekday = (now_ms // DAY_MS + _THURSDAY) % 7
    return daily * (tenant.weekend if weekday >= _SATURDAY else 1.0)


def highest(tenant: Tenant) -> float:
    """Return the messages a second at the peak of a weekday."""
    return tenant.rate * (1.0 + tenant.swing)
