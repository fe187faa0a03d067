"""A pytest plugin: a run of a tier ends with the seconds that each folder took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.tiers import FOLDERS, TEST


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one line for each folder, the slowest first."""
    tier = config.getoption("--tier")
    spent, tests = defaultdict[str, float](float), defaultdict[str, int](int)
    for report in _reports(terminalreporter):
        folder = report.nodeid.split("/")[1]
        spent[folder] += report.duration
        tests[folder] += report.when == "call"
    if tier is None or not spent:
        return
    terminalreporter.section("seconds of all tests, by folder")
    for folder, seconds in sorted(spent.items(), key=lambda it: -it[1]):
        beside = _beside(seconds, FOLDERS[folder].budget) if tier == TEST else ""
        line = f"{seconds:8.1f}  tests/{folder}, {tests[folder]} tests{beside}"
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{sum(spent.values()):8.1f}  in sum")


def _reports(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    """Yield the reports of each test: of its setup, call and teardown."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.nodeid.startswith("tests/"):
                yield report


def _beside(seconds: float, budget: int) -> str:
    return f", {seconds - budget:.1f} above its budget" if seconds > budget else f" of {budget}"
