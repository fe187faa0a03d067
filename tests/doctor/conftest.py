"""Real brokers come from `tests.real.fixtures`; each test is bounded as those of `tests/real`."""

from tests.real.bounds import pytest_runtest_call  # noqa: F401  # a hook
