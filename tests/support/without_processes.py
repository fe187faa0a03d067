"""A pytest plugin: a test of the tier `check` that starts a process fails, as does its fixture.

Python tells audit hooks of each process that it starts (PEP 578). A hook cannot be removed, so one
stays for the whole run, and is switched on for such tests.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.tiers import CHECK, tier_of

STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"})
"""Audit events that stand for a new process."""


class Guard:
    """Refuses new processes. `is_on`: whether a test runs that may start none. `refused`: what the
    last refusal said; empty if there was none."""

    def __init__(self) -> None:
        self._is_installed = False
        self.is_on = False
        self.refused = ""

    def install(self) -> None:
        """Have Python ask this guard from now on."""
        if not self._is_installed:
            sys.addaudithook(self._refuse)
            self._is_installed = True

    def _refuse(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if self.is_on and event in STARTS:
            self.refused = f"{event}: a test of the tier `check` starts no process"
            raise RuntimeError(self.refused)


GUARD = Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Switch the guard on for a test of the tier `check` and its fixtures."""
    GUARD.install()
    GUARD.is_on = item.nodeid.startswith("tests/") and tier_of(item) == CHECK
    try:
        return (yield)
    finally:
        GUARD.is_on = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail such a test even if the tested code has caught the error."""
    GUARD.refused = ""
    ended = yield
    if GUARD.refused:
        pytest.fail(GUARD.refused, pytrace=False)
    return ended
