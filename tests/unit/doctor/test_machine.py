"""Enough descriptors and memory for the configured limits."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from gateway.config.load import build
from gateway.doctor.finding import Status
from gateway.doctor.machine import (
    IDLE_CONNECTION,
    OWN_MEMORY,
    available,
    descriptors,
    examine,
    memory,
)
from gateway.system.machine import OWN_DESCRIPTORS

GIB = 1 << 30


def test_two_descriptors_for_each_connection_and_some_more() -> None:
    assert descriptors(1000, 2000 + OWN_DESCRIPTORS).status is Status.OK
    few = descriptors(1000, 1999 + OWN_DESCRIPTORS)
    assert few.status is Status.WARN
    assert few.example == f"ulimit -n {2000 + OWN_DESCRIPTORS}"


def test_descriptors_without_a_limit_are_enough() -> None:
    assert descriptors(1_000_000, None).detail.startswith("endless")


def test_insufficient_memory_is_a_warning() -> None:
    assert memory(GIB, GIB, "the machine").status is Status.OK
    little = memory(GIB, GIB - 1, "the container's limit")
    assert little.status is Status.WARN
    assert "1023 MiB by the container's limit" in little.detail


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Return control groups `outer/inner`, each of which may get a limit."""
    (tmp_path / "groups/outer/inner").mkdir(parents=True)
    (tmp_path / "own").write_text("3:cpu:/elsewhere\n0::/outer/inner\n")
    return tmp_path / "groups"


def test_the_smallest_limit_around_the_process_counts(groups: Path) -> None:
    (groups / "outer/inner/memory.max").write_text("max\n")
    (groups / "outer/memory.max").write_text(f"{GIB}\n")
    assert available(groups, groups.parent / "own", 8 * GIB) == (GIB, "the container's limit")


def test_without_a_limit_the_machines_memory_counts(groups: Path) -> None:
    (groups / "outer/inner/memory.max").write_text("max\n")
    assert available(groups, groups.parent / "own", GIB) == (GIB, "the machine")
    assert available(groups / "missing", groups / "missing", GIB) == (GIB, "the machine")


def test_a_limit_above_the_machines_memory_is_ignored(groups: Path) -> None:
    (groups / "memory.max").write_text(str(99 * GIB))
    assert available(groups, groups.parent / "own", GIB) == (GIB, "the machine")


def test_the_connections_of_all_listeners_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1024, resource.RLIM_INFINITY))
    listeners = [
        {"name": name, "bind": "127.0.0.1:0", "cluster": "main"} for name in ("one", "two")
    ]
    data = {
        "version": 1,
        "listeners": listeners,
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}},
        "limits": {"connections": 500, "buffered": "32MiB"},
    }
    configuration, _ = build(data, Path())
    assert configuration is not None
    found = {it.check: it for it in examine(configuration)}
    assert found["descriptors"].example == f"ulimit -n {2 * 1000 + OWN_DESCRIPTORS}"
    needed = OWN_MEMORY + 32 * 2**20 + 1000 * IDLE_CONNECTION
    assert f"{needed >> 20} MiB" in found["memory"].detail
    # Three workers need three times the memory, plus a parent.
    of_three = configuration.model_copy(update={"workers": 3})
    found = {it.check: it for it in examine(of_three)}
    assert f"{(3 * needed + OWN_MEMORY) >> 20} MiB" in found["memory"].detail
    assert found["descriptors"].example == f"ulimit -n {2 * 1000 + OWN_DESCRIPTORS}"
