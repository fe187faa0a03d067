from tests.real.bounds import pytest_runtest_call  # noqa: F401  # a hook
