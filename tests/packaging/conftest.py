"""The packages, built once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.building import Packages, build


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return build(tmp_path_factory.mktemp("packages") / "dist")


@pytest.fixture(scope="session")
def wheel(packages: Packages) -> Path:
    return packages.wheel
