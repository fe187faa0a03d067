"""Has the tests of this folder use its fixtures."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("tests.apache_tubemq.fixtures")
