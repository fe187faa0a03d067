"""The number of CPUs and descriptors that a process may use."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from gateway.assembly import LEAST_ADMIN_CONNECTIONS, admin_connections
from gateway.config.model import MOST_WORKERS
from gateway.system.machine import cpus, descriptors, processes, quota


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2.0),
        ("150000 100000\n", 1.5),
        ("50000 100000\n", 0.5),
        ("", None),
        ("nonsense", None),
    ],
)
def test_a_quota_is_a_number_of_cpus_or_none(text: str, allowed: float | None) -> None:
    assert quota(text) == allowed


class Machine:
    """A machine with CPUs by affinity, and control groups that allow a part of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.membership = folder / "cgroup"
        self.groups = folder / "groups"
        self.groups.mkdir()
        self._monkeypatch = monkeypatch
        self.has(8)

    def has(self, cpus: int) -> None:
        self._monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))

    def allows(self, group: str, quota: str) -> None:
        folder = self.groups / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.max").write_text(quota)

    def available(self) -> int:
        return cpus(self.groups, self.membership)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_affinity_counts_without_control_groups(machine: Machine) -> None:
    assert machine.available() == 8


def test_auto_means_one_process_per_cpu() -> None:
    assert processes(3) == 3
    assert processes("auto") == min(MOST_WORKERS, cpus())


def test_auto_does_not_exceed_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(1000)))
    assert processes("auto") <= MOST_WORKERS


@pytest.mark.parametrize(
    ("quota", "number"), [("300000 100000", 3), ("390000 100000", 3), ("50000 100000", 1)]
)
def test_a_quota_is_rounded_down_but_is_at_least_one(
    machine: Machine, quota: str, number: int
) -> None:
    machine.membership.write_text("1:cpu:/old\n0::/pod/container\n")
    machine.allows("pod/container", quota)
    assert machine.available() == number


def test_an_outer_group_limits_the_process_too(machine: Machine) -> None:
    machine.membership.write_text("0::/pod/container\n")
    machine.allows("pod/container", "max 100000")
    machine.allows("pod", "200000 100000")
    assert machine.available() == 2


def test_the_root_group_counts_in_a_container(machine: Machine) -> None:
    machine.membership.write_text("0::/\n")
    machine.allows("", "400000 100000")
    assert machine.available() == 4


def test_a_quota_above_the_affinity_has_no_effect(machine: Machine) -> None:
    machine.membership.write_text("0::/\n")
    machine.allows("", "1600000 100000")
    assert machine.available() == 8


@pytest.mark.parametrize(("soft", "there"), [(1024, 1024), (resource.RLIM_INFINITY, None)])
def test_the_descriptors_are_the_soft_limit(
    monkeypatch: pytest.MonkeyPatch, soft: int, there: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (soft, resource.RLIM_INFINITY))
    assert descriptors() == there


@pytest.mark.parametrize(
    ("there", "clients", "allowed"),
    [
        pytest.param(None, 1_000_000, 2048, id="endless"),
        pytest.param(100_000, 10_000, 2048, id="enough"),
        pytest.param(21_000, 10_000, 900, id="what-clients-leave"),
        pytest.param(1024, 10_000, LEAST_ADMIN_CONNECTIONS, id="nothing-left"),
    ],
)
def test_the_admin_listener_gets_the_descriptors_left_by_clients(
    monkeypatch: pytest.MonkeyPatch, there: int | None, clients: int, allowed: int
) -> None:
    monkeypatch.setattr("gateway.system.machine.descriptors", lambda: there)
    assert admin_connections(2048, clients) == allowed
