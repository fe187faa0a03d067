"""What the machine, or the container, allows this process: control groups, CPUs, descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gateway.config.model import MOST_WORKERS

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")

_UNIFIED = "0::"
"""How the line of version 2 begins in a list of a process's control groups."""


def around(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> Iterator[Path]:
    """The control group of the process and those around it; each bounds what is inside."""
    lines = _text(own).splitlines()
    path = next((line.removeprefix(_UNIFIED) for line in lines if line.startswith(_UNIFIED)), "/")
    group = groups / path.lstrip("/")
    yield group
    yield from (outer for outer in group.parents if outer.is_relative_to(groups))


def processes(workers: int | Literal["auto"]) -> int:
    """How many `workers` are meant: `auto` is one for each CPU."""
    return min(MOST_WORKERS, cpus()) if workers == "auto" else workers


def cpus(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> int:
    """CPUs that the process may use, as whole ones, at least one: by its affinity, and by control
    groups of version 2 where there are any.
    """
    quotas = (quota(_text(group / "cpu.max")) for group in around(groups, own))
    allowed = [it for it in quotas if it is not None]
    return max(1, int(min([len(os.sched_getaffinity(0)), *allowed])))


OWN_DESCRIPTORS = 100
"""Listeners, the log, epoll and so on take some twenty; the rest is for chased lookups, which have
side connections for some seconds."""


def descriptors() -> int | None:
    """How many the process may have; None: endless."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def descriptors_for(connections: int) -> int:
    """What a process needs for so many connections of clients, each with one to a broker."""
    return 2 * connections + OWN_DESCRIPTORS


def quota(text: str) -> float | None:
    """CPUs that `cpu.max` allows (microseconds of a period: `200000 100000`); None: all."""
    most, _, period = text.strip().partition(" ")
    return int(most) / int(period) if most.isdigit() and period.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
