"""The packages, built once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packages.building import Builder, Packages


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("builder") / "environment")


@pytest.fixture(scope="session")
def packages(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return builder.build(tmp_path_factory.mktemp("packages") / "dist")


@pytest.fixture(scope="session")
def wheel(packages: Packages) -> Path:
    return packages.wheel
