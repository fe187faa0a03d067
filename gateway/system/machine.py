"""Reads what the machine or container allows the process: control groups, CPUs, descriptors."""

from __future__ import annotations

import os
import re
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gateway.config.model import MOST_WORKERS

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")

_UNIFIED = "0::"
"""Prefix of the line for cgroup version 2 in a process's list of control groups."""


def control_groups(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> Iterator[Path]:
    """Yield the folders of the process's control group and its ancestors, innermost first. Each
    limits those inside."""
    lines = _text(own).splitlines()
    path = next((line.removeprefix(_UNIFIED) for line in lines if line.startswith(_UNIFIED)), "/")
    group = groups / path.lstrip("/")
    yield group
    yield from (outer for outer in group.parents if outer.is_relative_to(groups))


def processes(workers: int | Literal["auto"]) -> int:
    """Return the number of worker processes that `workers` means; `auto` is one per CPU."""
    return min(MOST_WORKERS, cpus()) if workers == "auto" else workers


def cpus(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> int:
    """Return the number of whole CPUs, at least one, that affinity and control groups of version 2
    allow."""
    quotas = (quota(_text(group / "cpu.max")) for group in control_groups(groups, own))
    allowed = [limit for limit in quotas if limit is not None]
    return max(1, int(min([len(os.sched_getaffinity(0)), *allowed])))


def host_name() -> str:
    """Return the machine's name, in characters that the name of a file may have."""
    return re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:63].strip("-") or "gateway"


OWN_DESCRIPTORS = 100
"""Listeners, the log, epoll and others take some twenty; the rest is for chased lookups, whose side
connections last some seconds."""


def descriptors() -> int | None:
    """Return how many file descriptors the process may open; None if that is unlimited."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def open_descriptors() -> int | None:
    """Return the number of open file descriptors; None if the system does not show it."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one of several thousand names
    except OSError:
        return None


def descriptors_for(connections: int) -> int:
    """Return the number of file descriptors that a number of client connections needs, each with a
    connection to a broker."""
    return 2 * connections + OWN_DESCRIPTORS


def quota(text: str) -> float | None:
    """Return the number of CPUs that the text of `cpu.max` allows (microseconds per period, like
    `200000 100000`), or None for no limit."""
    most, _, period = text.strip().partition(" ")
    return int(most) / int(period) if most.isdigit() and period.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
