"""How many workers `auto` means: the CPUs that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.config.model import MOST_WORKERS

_MEMBERSHIP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available(membership: Path = _MEMBERSHIP, groups: Path = _GROUPS) -> int:
    """CPUs by affinity and by the control group, as whole ones, at least one.

    The defaults are where Linux says so; without control groups of version 2 affinity alone counts.
    """
    allowed = [float(len(os.sched_getaffinity(0))), *_allowed(membership, groups)]
    return max(1, min(MOST_WORKERS, int(min(allowed))))


def _allowed(membership: Path, groups: Path) -> list[float]:
    """What our group and each above it allow."""
    group = groups / _group(_text(membership)).lstrip("/")
    within = [it for it in (group, *group.parents) if it.is_relative_to(groups)]
    found = (cpus(_text(it / "cpu.max")) for it in within)
    return [it for it in found if it is not None]


def _group(membership: str) -> str:
    """The group's path in the hierarchy of version 2, which has no number and no controllers."""
    lines = (line for line in membership.splitlines() if line.startswith("0::"))
    return next(lines, "0::/").removeprefix("0::")


def cpus(quota: str) -> float | None:
    """What `cpu.max` allows (microseconds of a period, `200000 100000`); None: all there are."""
    most, _, period = quota.strip().partition(" ")
    return int(most) / int(period) if most.isdigit() and period.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
