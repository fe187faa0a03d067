"""Has several processes of pytest-xdist share tests by their brokers: a plugin of pytest.

    pytest -n 3 --dist loadgroup -m broker

Each broker is started by the one process that runs all tests of its group; the plain one has two
groups. Tests of no group go wherever there is time. (xdist's own groups change the ids of tests on
their way, which does nothing since pytest 9.2, see its issue 1386.)
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

SHARED = ("pulsar", "transactional", "pulsar_auth", "modular", "extensible", "oracles")
"""Fixtures of a run: each takes a core ten seconds to start."""

PROGRAMS = "pulsar, for programs"
"""Half of all tests have this broker: two processes start one, if these are not the same."""

FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
"""Where the processes that run tests write the groups, for the one that shares them out."""


# -- in the processes that run tests -----------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what has a real broker, and tell the groups."""
    groups = {}
    for item in items:
        if item.get_closest_marker("real") and "sandbox" not in _parameters(item):
            item.add_marker(pytest.mark.broker)
            if group := _group(item):
                groups[item.nodeid] = group
    told: dict[str, Any] = getattr(config, "workerinput", {})
    if "groups" in told:
        Path(told["groups"], told["workerid"]).write_text(json.dumps(groups))


def _group(item: pytest.Item) -> str | None:
    """What brokers it has; None where they are its own."""
    asked = {*getattr(item, "fixturenames", ()), *_parameters(item)}
    if "start_broker" in asked:
        return item.path.stem  # they live as long as the file's tests
    if "broker_of" in asked:
        version = next(it for it in POMS if it in asked)
        return PROGRAMS if version == PULSAR_VERSION else f"pulsar {version}"
    if {"pulsar", "built_program"} <= asked:
        return PROGRAMS
    return next((it for it in SHARED if it in asked), None)


def _parameters(item: pytest.Item) -> set[str]:
    """Those that are texts."""
    callspec = getattr(item, "callspec", None)
    return {it for it in callspec.params.values() if isinstance(it, str)} if callspec else set()


# -- in the one that shares them out -----------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A process begins. A hook of xdist."""
    stash = node.config.stash
    if FOLDER not in stash:
        stash[FOLDER] = tempfile.TemporaryDirectory(prefix="broker-gateway-groups-")
    node.workerinput["groups"] = stash[FOLDER].name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """A hook of xdist."""
    return Grouping(config, log) if config.getoption("dist") == "loadgroup" else None


class Grouping(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """The largest groups come first, and what is in none fills the end."""

    @cached_property
    def _groups(self) -> dict[str, str]:
        """Asked for when all processes have collected the same tests."""
        told = next(Path(self.config.stash[FOLDER].name).iterdir())
        groups: dict[str, str] = json.loads(told.read_text())
        return groups

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)
