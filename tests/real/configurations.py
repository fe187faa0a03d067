"""The gateway configurations under which the clients' scenes run: a pytest plugin.

    pytest                              each scene runs in one configuration on a real broker, every
                                        third in `plain`; on the sandbox in another one than `plain`
    pytest --configuration mask+near    each scene runs in this configuration only
    pytest --repeat 50 -m timing        scenes that depend on timing run this many times

A configuration is `plain`, or some of FEATURES joined by `+`. A scene is a test that uses the
fixture `configuration`, mostly by way of its route; it is marked `scene`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from zlib import crc32

import pytest

from .artifacts import Artifacts
from .brokers.tokens import Authority
from .fixtures import DIRECT, Reach, Route
from .gateways import PASS_THROUGH, Gateway, Plan, Plans, Upstream

RULES = Path(__file__).with_name("rules")
PLAIN, ANOTHER = "plain", "another"

Feature = Callable[[Plan, Plans | None], Plan]


def _verifying(plan: Plan, plans: Plans | None) -> Plan:
    """Verify tokens in front of a broker that requires none and ignores the gateway's
    credential."""
    if plans is None:
        raise ValueError("verify is for clients that show tokens")
    verifying = plans.of("verify")
    return replace(plan, identity=verifying.identity, credential=verifying.credential)


FEATURES: Mapping[str, Feature] = {
    "mask": lambda plan, _: replace(plan, unknown="mask"),
    "far": lambda plan, _: replace(plan, rules=RULES / "far.yaml"),
    "near": lambda plan, _: replace(plan, rules=RULES / "near.yaml"),
    "workers": lambda plan, _: replace(plan, workers=2),
    "verify": _verifying,
    "checksums": lambda plan, _: replace(plan, checksums="verify"),
}
ALL_BUT_RULES = "mask+workers+verify+checksums"
ROTATION = (*FEATURES, f"near+{ALL_BUT_RULES}", f"far+{ALL_BUT_RULES}")
"""A scene runs in `plain` or in one of these configurations."""


@dataclass(frozen=True)
class Configuration:
    """A configuration. `token`: presented by its clients."""

    name: str
    plan: Plan
    token: str | None


def features(name: str) -> list[str]:
    """Return the features of a name. Raises ValueError for a malformed name."""
    found = [] if name == PLAIN else name.split("+")
    if unknown := set(found) - set(FEATURES):
        raise ValueError(f"no feature of a configuration: {', '.join(sorted(unknown))}")
    if len(set(found)) < len(found) or {"far", "near"} <= set(found):
        raise ValueError(f"{name} has a feature twice, or rules both far and near")
    return found


def configured(name: str, plans: Plans | None, plan: Plan = PASS_THROUGH) -> Plan:
    """Return the plan of a configuration, made from another; without `plans` there are no tokens to
    verify. Raises ValueError."""
    for feature in features(name):
        plan = FEATURES[feature](plan, plans)
    return plan


def rotated(scene: str) -> str:
    """Return the other configuration of a scene, the same in each run."""
    return ROTATION[crc32(scene.encode()) % len(ROTATION)]


# -- options -----------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--configuration", metavar="NAME", help="run scenes in this one alone")
    parser.addoption(
        "--repeat", type=int, default=1, metavar="N", help="run tests marked `timing` N times"
    )


def pytest_configure(config: pytest.Config) -> None:
    try:
        features(config.getoption("--configuration") or PLAIN)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    config = metafunc.config
    runs = config.getoption("--repeat")
    if runs > 1 and any(metafunc.definition.iter_markers("timing")):
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(runs), ids=[f"run{n}" for n in range(runs)])
    is_given = config.getoption("--configuration") or config.getoption("--direct")
    if "configuration" in metafunc.fixturenames and not is_given:
        metafunc.parametrize("configuration", [PLAIN, ANOTHER], indirect=True)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "configuration" in getattr(item, "fixturenames", ()):
            item.add_marker("scene")
    if left_out := {item for item in items if _is_left_out(item)}:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item) -> bool:
    """Return True if a scene does not run in this one of its two configurations."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    if "configuration" not in params:
        return False
    chosen = ANOTHER
    if "sandbox" not in params.values():
        scene = item.name.replace(ANOTHER, "").replace(PLAIN, "")
        chosen = PLAIN if crc32(scene.encode()) % 3 == 0 else ANOTHER
    return bool(params["configuration"] != chosen)


# -- fixtures ----------------------------------------------------------------------------------


@pytest.fixture
def configuration(
    request: pytest.FixtureRequest, plans: Plans, authority: Authority
) -> Configuration:
    name = request.config.getoption("--configuration") or getattr(request, "param", PLAIN)
    if name == ANOTHER:
        name = rotated(request.node.name)
    print(f"configuration: {name}")
    token = authority.token("alice") if "verify" in features(name) else None
    return Configuration(name, configured(name, plans), token)


class GatewayOf(Protocol):
    def __call__(self, broker: Upstream, configuration: Configuration) -> Gateway: ...


@pytest.fixture(scope="session")
def gateway_of(artifacts: Artifacts) -> Iterator[GatewayOf]:
    """Yield a function that returns one gateway for each broker and configuration, started at its
    first use."""
    started: dict[tuple[str, str], Gateway] = {}
    with ExitStack() as running:

        def gateway(broker: Upstream, configuration: Configuration) -> Gateway:
            which = (broker.service_url, configuration.name)
            if which not in started:
                directory = artifacts.directory(f"gateway-{configuration.name}")
                found = Gateway(broker, configuration.plan, directory)
                found.start()
                running.callback(found.stop)
                started[which] = found
            return started[which]

        yield gateway


class ReachConfigured(Protocol):
    def __call__(self, broker: Upstream) -> Route: ...


@pytest.fixture
def reach_configured(
    way: str, configuration: Configuration, gateway_of: GatewayOf, reach: Reach
) -> ReachConfigured:
    """Yield a function that opens routes by the shared gateway of the scene's configuration."""

    def open_route(broker: Upstream) -> Route:
        through = None if way == DIRECT else gateway_of(broker, configuration)
        return replace(reach(broker, through=through), token=configuration.token)

    return open_route
