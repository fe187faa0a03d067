"""Each test runs on both kinds of brokers; runs on a real one are marked `real`, and are of the
tier `all`."""

from typing import Any, cast

import pytest

from tests.real.configurations import ReachConfigured
from tests.real.fixtures import Route
from tests.real.traffic import SECONDS

from .brokers import Brokers, Pulsar, Secured, SecuredPulsar, SecuredSandbox
from .clusters import Assigning, Pair, Redirecting, SandboxPair

SANDBOX, PULSAR = "sandbox", "pulsar"


@pytest.hookimpl(tryfirst=True)  # before `--tier` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/shared/") and item.get_closest_marker("real"):
            item.add_marker(pytest.mark.tier("all"))


def _kinds(real: str) -> list[Any]:
    return [SANDBOX, pytest.param(real, marks=pytest.mark.real)]


@pytest.fixture(scope="session", params=_kinds(PULSAR))
def brokers(request: pytest.FixtureRequest) -> Brokers:
    found = request.getfixturevalue(request.param)
    return cast(Brokers, found) if request.param == SANDBOX else Pulsar(found)


@pytest.fixture
def route(brokers: Brokers, reach_configured: ReachConfigured) -> Route:
    """Return the route to the brokers, through a gateway that all these tests share."""
    return reach_configured(brokers)


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """Return for how long to send: a real broker takes some time to unload, the sandbox none."""
    return SECONDS if request.node.get_closest_marker("real") else SECONDS / 6


@pytest.fixture(scope="session", params=_kinds("modular"))
def redirecting(request: pytest.FixtureRequest) -> Pair:
    """Return brokers that redirect lookups and tell no client where a topic moves."""
    found = request.getfixturevalue(request.param)
    return SandboxPair(found, assigned=False) if request.param == SANDBOX else Redirecting(found)


@pytest.fixture(scope="session", params=_kinds("extensible"))
def assigning(request: pytest.FixtureRequest) -> Pair:
    """Return brokers that tell clients where a topic moves."""
    found = request.getfixturevalue(request.param)
    return SandboxPair(found, assigned=True) if request.param == SANDBOX else Assigning(found)


@pytest.fixture(scope="session", params=_kinds("pulsar_auth"))
def secured(request: pytest.FixtureRequest) -> Secured:
    if request.param == SANDBOX:
        return SecuredSandbox(request.getfixturevalue("sandbox_auth"))
    return SecuredPulsar(request.getfixturevalue(request.param))
