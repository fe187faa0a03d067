"""Checks what the machine offers to the process: compiled loops, file descriptors and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gateway._pure import IMPLEMENTATION, WHY_PURE
from gateway.config import model
from gateway.doctor.finding import Finding, ok, warn
from gateway.system import machine
from gateway.system.machine import (
    CONTROL_GROUPS,
    OWN_GROUP,
    control_groups,
    descriptors_for,
    processes,
)

MIB = 1024 * 1024

OWN_MEMORY = 64 * MIB
"""Bytes of a process without connections, measured."""

IDLE_CONNECTION = 5632
"""Bytes of one idle connection, measured."""


def examine(configuration: model.Configuration) -> Iterator[Finding]:
    """Compare the resources that a configuration may need with those that are available; yield the
    findings."""
    yield ok("hot loops", f"pure: {WHY_PURE}" if WHY_PURE else IMPLEMENTATION)
    connections = configuration.limits.connections * len(configuration.listeners)
    yield descriptors(connections, machine.descriptors())
    each = OWN_MEMORY + configuration.limits.buffered + connections * IDLE_CONNECTION
    workers = processes(configuration.workers)
    yield memory(
        each * workers + OWN_MEMORY * (workers > 1),
        *available(CONTROL_GROUPS, OWN_GROUP, _physical()),
    )


def descriptors(connections: int, allowed: int | None) -> Finding:
    """Return the finding about file descriptors. `connections`: the most client connections that
    may be open at a time. `allowed`: the process's limit of descriptors; None: no limit."""
    check, needed = "descriptors", descriptors_for(connections)
    if allowed is None or allowed >= needed:
        return ok(check, f"{allowed or 'endless'}, {needed} at the most")
    return warn(
        check,
        f"{allowed} in this shell; limits.connections ({connections} in all) may need {needed}",
        "Beyond them new connections wait. Raise the limit (in systemd LimitNOFILE=), or set "
        "limits.connections lower:",
        f"ulimit -n {needed}",
    )


def memory(needed: int, allowed: int, limited_by: str) -> Finding:
    """Return the finding about memory. `needed`, `allowed`: bytes. `limited_by`: what sets the
    limit, as the finding names it."""
    check, detail = "memory", f"{allowed // MIB} MiB by {limited_by}"
    if allowed >= needed:
        return ok(check, f"{detail}, {needed // MIB} MiB at the most")
    return warn(
        check,
        f"{detail}; limits.buffered and limits.connections may need {needed // MIB} MiB",
        "With slow clients the process would be killed. Allow more memory, or set "
        "limits.buffered or limits.connections lower.",
    )


def available(groups: Path, own: Path, physical: int) -> tuple[int, str]:
    """Return the memory in bytes that control groups (`groups`, `own`) and the machine (`physical`)
    allow, and what limits it."""
    limits = [limit for limit in map(_limit, control_groups(groups, own)) if limit is not None]
    if limits and min(limits) < physical:
        return min(limits), "the container's limit"
    return physical, "the machine"


def _limit(group: Path) -> int | None:
    try:
        text = (group / "memory.max").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
