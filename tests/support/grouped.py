"""A pytest plugin that distributes tests over pytest-xdist processes by their brokers.

    pytest -n 2 --dist loadgroup

One process starts a broker and runs all tests of its group; the plain broker has two groups. One
process has the session of Spark, for all tests that are marked `spark`, and one has Kubernetes.
What a group has started ends with the group: idle brokers and gateways would use up a core
together. Tests without a group are grouped by their file. Groups come first, since they take
longest: what is small fills up the rest. (xdist's own groups change the ids of tests in transit,
which has no effect since pytest 9.2, see its issue 1386.)
"""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.real.brokers.jars import POMS, PULSAR_VERSION

SHARED = (
    "pulsar",
    "transactional",
    "pulsar_auth",
    "modular",
    "extensible",
    "oracles",
    "kafka",
    "tubemq",
)
"""Fixtures with session scope: each takes a core ten seconds to start."""

OF_FILES = ("start_broker", "real_loop")
"""Fixtures whose brokers live as long as the tests of a file."""

PROGRAMS = "pulsar, for programs"
"""Half of all tests use the plain broker: two processes each start one unless they get the same
group."""

FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
"""Where the worker processes write the groups for the scheduling process."""


# -- in worker processes -----------------------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Write the groups, and put their tests before all others."""
    groups = {it.nodeid: group for it in items if (group := _group(it))}
    told: dict[str, Any] = getattr(config, "workerinput", {})
    if "groups" in told:
        Path(told["groups"], told["workerid"]).write_text(json.dumps(groups))
        items.sort(key=lambda it: it.nodeid not in groups)


def _group(item: pytest.Item) -> str | None:
    """Return the group of a test: the session of Spark, or its brokers; None if no other test
    shares them."""
    if item.get_closest_marker("spark"):
        return "spark"
    if "cluster" in getattr(item, "fixturenames", ()):
        return "kubernetes"
    if not item.get_closest_marker("real") or "sandbox" in _parameters(item):
        return None
    asked = {*getattr(item, "fixturenames", ()), *_parameters(item)}
    if asked.intersection(OF_FILES):
        return item.path.stem
    if "broker_of" in asked:
        version = next(it for it in POMS if it in asked)
        return PROGRAMS if version == PULSAR_VERSION else f"pulsar {version}"
    if {"pulsar", "built_program"} <= asked:
        return PROGRAMS
    return next((it for it in SHARED if it in asked), None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the fixtures of the session with the last test of a group."""
    group = _group(item) if "groups" in getattr(item.config, "workerinput", {}) else None
    if group and nextitem is not None and _group(nextitem) != group:
        item.session._setupstate.teardown_exact(None)


def _parameters(item: pytest.Item) -> set[str]:
    """Return the test's parameters that are texts."""
    callspec = getattr(item, "callspec", None)
    return {it for it in callspec.params.values() if isinstance(it, str)} if callspec else set()


# -- in the scheduling process -----------------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Prepare a starting process (an xdist hook)."""
    stash = node.config.stash
    if FOLDER not in stash:
        stash[FOLDER] = tempfile.TemporaryDirectory(prefix="broker-gateway-groups-")
    node.workerinput["groups"] = stash[FOLDER].name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Return the scheduler (an xdist hook)."""
    return Grouping(config, log) if config.getoption("dist") == "loadgroup" else None


class Grouping(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """Schedules groups in the order in which their first tests were collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # which would put the largest files first

    @cached_property
    def _groups(self) -> dict[str, str]:
        """Return the groups. xdist calls this once all processes have collected the same tests."""
        told = next(Path(self.config.stash[FOLDER].name).iterdir())
        groups: dict[str, str] = json.loads(told.read_text())
        return groups

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid) or nodeid.partition("::")[0]
