"""Reads the bounds that the machine or container sets for the process: control groups, CPUs, file
descriptors."""

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
    """Yield the folders of the process's control group and of its ancestors, innermost first. Each
    group limits the groups inside it."""
    lines = _text(own).splitlines()
    path = next((line.removeprefix(_UNIFIED) for line in lines if line.startswith(_UNIFIED)), "/")
    group = groups / path.lstrip("/")
    yield group
    yield from (outer for outer in group.parents if outer.is_relative_to(groups))


def processes(workers: int | Literal["auto"]) -> int:
    """Return how many worker processes the setting `workers` means; `auto` means one for each
    CPU."""
    return min(MOST_WORKERS, cpus()) if workers == "auto" else workers


def cpus(groups: Path = CONTROL_GROUPS, own: Path = OWN_GROUP) -> int:
    """Return the number of whole CPUs, at least one, that the process may use by its affinity and
    by control groups of version 2."""
    quotas = (quota(_text(group / "cpu.max")) for group in control_groups(groups, own))
    allowed = [limit for limit in quotas if limit is not None]
    return max(1, int(min([len(os.sched_getaffinity(0)), *allowed])))


def host_name() -> str:
    """Return the machine's name, with only characters that the name of a file may have."""
    return re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:63].strip("-") or "gateway"


OWN_DESCRIPTORS = 100
"""Listeners, the log, epoll and others take some twenty; the rest is for chased lookups, whose side
connections last some seconds."""


def descriptors() -> int | None:
    """Return how many file descriptors the process may open; None: there is no limit."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def open_descriptors() -> int | None:
    """Return how many file descriptors are open; None if the system does not show this."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one of several thousand names
    except OSError:
        return None


def descriptors_for(connections: int) -> int:
    """Return how many file descriptors are needed for a number of client connections, each of which
    has a connection to a broker."""
    return 2 * connections + OWN_DESCRIPTORS


def quota(text: str) -> float | None:
    """Return how many CPUs the text of a `cpu.max` file allows; None: no limit. The text has
    microseconds per period, such as `200000 100000`."""
    most, _, period = text.strip().partition(" ")
    return int(most) / int(period) if most.isdigit() and period.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
