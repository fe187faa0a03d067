"""Fixtures of the tests with brokers and real clients, a plugin of `tests/conftest.py`.

    pytest tests/real             clients use a gateway, a process of its own
    pytest tests/real --direct    no gateway: shows that the tests themselves are right

(`GATEWAY_TEST_DIRECT=1` does what `--direct` does.) Real brokers need java, clients in other
languages go and javac, and both need mvn in the first run on a machine. Without these tools the
tests are skipped, or fail if `GATEWAY_REQUIRE` names the tool. Fetched and built files are kept in
`$GATEWAY_TEST_CACHE`, by default `~/.cache/broker-gateway`.

Behind a gateway, each test's connections also run through a tap, which fails the test if a client
sees the broker's address anywhere but in a message's payload. `tests/shared/test_taps.py` checks
that no test bypasses the tap, and `test_leaks.py` beside it that a tap detects leaks.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import pytest

from tests.clients.builders import BUILDERS
from tests.clients.programs import Program
from tests.support.sandbox import Sandbox

from .artifacts import Artifacts
from .brokers.admin import AdminError
from .brokers.cluster import Cluster, LoadManager
from .brokers.jars import PULSAR_VERSION, MissingToolError, Say, pulsar_jars
from .brokers.standalone import Standalone
from .brokers.tokens import Authority
from .clients import OPERATION_SECONDS, Client, Token, close_client, open_client, wait_until
from .gateways import PASS_THROUGH, Gateway, Plan, Plans, Upstream
from .probes import healthy
from .tap import Tap, traces_found

T = TypeVar("T")

GATEWAY, DIRECT = "gateway", "direct"
COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"

ARTIFACTS = pytest.StashKey[Artifacts]()
KEPT = pytest.StashKey[list[Path]]()


# --- how the tests run ---------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--direct", action="store_true", help="real-client tests: leave out the gateway"
    )


def _is_direct(config: pytest.Config) -> bool:
    asked: bool = config.getoption("--direct", default=False)
    return asked or os.environ.get("GATEWAY_TEST_DIRECT") == "1"


@pytest.fixture(scope="session")
def way(pytestconfig: pytest.Config) -> str:
    """Return `gateway` or `direct`: the way of clients in this run."""
    return DIRECT if _is_direct(pytestconfig) else GATEWAY


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _is_direct(item.config) and item.get_closest_marker("gateway_only"):
        pytest.skip("is about the gateway alone")


def pytest_sessionfinish(session: pytest.Session) -> None:
    artifacts = session.config.stash.get(ARTIFACTS, None)
    if artifacts is None:
        return
    if session.testsfailed:
        place = artifacts.keep()
        session.config.stash[KEPT] = [place]
        if hasattr(
            session.config, "workeroutput"
        ):  # one of several processes: the first one reports
            session.config.workeroutput["kept"] = str(place)
    artifacts.discard()


@pytest.hookimpl(optionalhook=True)  # an xdist hook
def pytest_testnodedown(node: Any) -> None:
    if place := getattr(node, "workeroutput", {}).get("kept"):
        node.config.stash.setdefault(KEPT, []).append(Path(place))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    places: list[Path] = config.stash.get(KEPT, [])
    for place in sorted(set(places)):
        terminalreporter.write_line(f"logs of brokers and gateways: {place}")


# --- brokers -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def say(pytestconfig: pytest.Config) -> Say:
    """Return a function that prints past pytest's capture for the waiting user; worker processes
    print nothing."""
    reporter: Any = pytestconfig.pluginmanager.getplugin("terminalreporter")
    capture: Any = pytestconfig.pluginmanager.getplugin("capturemanager")

    def write(text: str) -> None:
        if reporter is None:
            return
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(text)

    return write


def or_skip(make: Callable[[Say], T], say: Say) -> T:
    """Return the value of `make`. Without its tool the test is skipped or fails, as described
    above."""
    try:
        return make(say)
    except MissingToolError as missing:
        if missing.tool in os.environ.get("GATEWAY_REQUIRE", "").split():
            pytest.fail(f"{missing}, and GATEWAY_REQUIRE names it", pytrace=False)
        say(f"skipping tests with real brokers or clients: {missing}")
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def jars(say: Say) -> Path:
    return or_skip(pulsar_jars, say)


@pytest.fixture(scope="session")
def artifacts(pytestconfig: pytest.Config) -> Artifacts:
    return pytestconfig.stash.setdefault(ARTIFACTS, Artifacts())


class StartBroker(Protocol):
    def __call__(self, name: str, **options: Any) -> Standalone: ...


def _broker_starter(jars: Path, artifacts: Artifacts) -> Iterator[StartBroker]:
    with ExitStack() as running:

        def start(name: str, **options: Any) -> Standalone:
            broker = Standalone(jars, artifacts.directory(f"broker-{name}"), **options)
            broker.start()
            running.callback(broker.stop)
            return broker

        yield start


@pytest.fixture(scope="session")
def start_session_broker(jars: Path, artifacts: Artifacts) -> Iterator[StartBroker]:
    yield from _broker_starter(jars, artifacts)


@pytest.fixture(scope="module")
def start_broker(jars: Path, artifacts: Artifacts) -> Iterator[StartBroker]:
    """Yield a function that starts brokers (keywords as of Standalone) for the test file."""
    yield from _broker_starter(jars, artifacts)


@pytest.fixture(scope="session")
def pulsar(start_session_broker: StartBroker) -> Standalone:
    """A broker without authentication."""
    return start_session_broker("plain")


@pytest.fixture(scope="session")
def transactional(start_session_broker: StartBroker) -> Standalone:
    """A broker without authentication, with a transaction coordinator."""
    broker = start_session_broker("transactions", extra={"transactionCoordinatorEnabled": "true"})
    wait_until(lambda: has_coordinators(broker))
    return broker


def has_coordinators(broker: Standalone) -> bool:
    """Return True once the broker has created its coordinators' namespace and topic, some time
    after it serves."""
    try:
        return broker.admin.partitions(COORDINATORS) > 0
    except AdminError:
        return False


class BrokerOf(Protocol):
    def __call__(self, version: str) -> Standalone: ...


@pytest.fixture(scope="session")
def broker_of(request: pytest.FixtureRequest, say: Say, artifacts: Artifacts) -> Iterator[BrokerOf]:
    """Yield a function that returns a broker without authentication for a version of `POMS`,
    started at its first use."""
    started: dict[str, Standalone] = {}
    with ExitStack() as running:

        def start(version: str) -> Standalone:
            if version == PULSAR_VERSION:
                return cast(Standalone, request.getfixturevalue("pulsar"))
            if version not in started:
                jars = or_skip(lambda say: pulsar_jars(say, version), say)
                broker = Standalone(jars, artifacts.directory(f"broker-{version}"))
                broker.start()
                running.callback(broker.stop)
                started[version] = broker
            return started[version]

        yield start


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def pulsar_auth(start_session_broker: StartBroker, authority: Authority) -> Standalone:
    """A broker that requires tokens of `authority`, looks for expired ones every second, and knows
    the role `proxy` as a proxy."""
    extra = {"authenticationRefreshCheckSeconds": 1}
    return start_session_broker("auth", authority=authority, extra=extra)


@pytest.fixture(scope="session")
def sandbox(artifacts: Artifacts) -> Iterator[Sandbox]:
    """Yield two brokers in memory without authentication. They must exit in good order."""
    started = Sandbox(artifacts.directory("sandbox"))
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def sandbox_auth(artifacts: Artifacts, authority: Authority, plans: Plans) -> Iterator[Sandbox]:
    """Yield two brokers in memory that require tokens of `authority` and know the role `proxy` as a
    proxy."""
    options = ("--token-secret", str(plans.secret), "--proxy-role", "proxy")
    started = Sandbox(artifacts.directory("sandbox-auth"), *options)
    started.start()
    yield started
    started.stop()


def _running_cluster(
    jars: Path, artifacts: Artifacts, load_manager: LoadManager
) -> Iterator[Cluster]:
    directory = artifacts.directory(f"cluster-{load_manager.name.lower()}")
    cluster = Cluster(jars, directory, load_manager)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def modular(jars: Path, artifacts: Artifacts) -> Iterator[Cluster]:
    """Two brokers that redirect lookups to each other."""
    yield from _running_cluster(jars, artifacts, LoadManager.MODULAR)


@pytest.fixture(scope="session")
def extensible(jars: Path, artifacts: Artifacts) -> Iterator[Cluster]:
    """Two brokers that tell clients where a topic has moved."""
    yield from _running_cluster(jars, artifacts, LoadManager.EXTENSIBLE)


# --- routes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """How a test's clients reach `broker` (or a cluster): through `tap` and `gateway`, or through
    neither in a direct run. `token`: presented by the clients, if any."""

    url: str
    broker: Any
    gateway: Gateway | None = None
    tap: Tap | None = None
    token: str | None = None


class StartGateway(Protocol):
    def __call__(
        self, broker: Upstream, plan: Plan = PASS_THROUGH, until: str = "readyz"
    ) -> Gateway: ...


class Tapped(Protocol):
    def __call__(self, url: str, traces: tuple[str, ...]) -> Tap: ...


class Exposed(Protocol):
    def __call__(
        self, broker: Upstream, play: Callable[[str], None], *leak: str, payloads: bool = False
    ) -> set[str]: ...


GatewayOfMode = Callable[[Upstream, str], Gateway]


class Reach(Protocol):
    def __call__(
        self, broker: Upstream, plan: Plan = PASS_THROUGH, *, through: Gateway | None = None
    ) -> Route: ...


class Connect(Protocol):
    def __call__(
        self, url: str, token: Token = None, patience: int = OPERATION_SECONDS
    ) -> Client: ...


@pytest.fixture
def gateway(artifacts: Artifacts, request: pytest.FixtureRequest) -> Iterator[StartGateway]:
    """Yield a function that starts gateways; at the end of the test each must stop in good order
    without a logged traceback."""
    with ExitStack() as running:

        def start(broker: Upstream, plan: Plan = PASS_THROUGH, until: str = "readyz") -> Gateway:
            started = Gateway(broker, plan, artifacts.directory(f"gateway-{request.node.name}"))
            started.start(until)
            running.callback(started.stop)
            return started

        yield start


@pytest.fixture(scope="session")
def plain_gateway(pulsar: Standalone, artifacts: Artifacts) -> Iterator[Gateway]:
    """A pass-through gateway in front of `pulsar`, shared by all tests that need nothing else."""
    shared = Gateway(pulsar, PASS_THROUGH, artifacts.directory("gateway-plain"))
    shared.start()
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def plans(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """Settings of gateways that trust `authority` and may act as `proxy`."""
    directory = tmp_path_factory.mktemp("keys")
    plans = Plans(directory / "secret.key", directory / "proxy.token")
    plans.secret.write_bytes(authority.secret)
    plans.credential.write_text(authority.token("proxy"))
    return plans


@pytest.fixture(scope="session")
def gateway_of_mode(plans: Plans, artifacts: Artifacts) -> Iterator[GatewayOfMode]:
    """Yield a function that returns one gateway for each broker and identity mode, started at its
    first use."""
    started: dict[tuple[str, str], Gateway] = {}
    with ExitStack() as running:

        def gateway(broker: Upstream, mode: str) -> Gateway:
            which = (broker.service_url, mode)
            if which not in started:
                found = Gateway(broker, plans.of(mode), artifacts.directory(f"gateway-{mode}"))
                found.start()
                running.callback(found.stop)
                started[which] = found
            return started[which]

        yield gateway


def _assert_hidden(tap: Tap, traces: tuple[str, ...]) -> None:
    tap.close()
    found = [str(leak) for leak in tap.leaks(traces)]
    assert not found, "a client saw its broker:\n" + "\n".join(found)


@pytest.fixture
def tapped() -> Iterator[Tapped]:
    """Yield a function that puts taps in front of the clients' URLs; at the end of the test none
    may have leaked."""
    with ExitStack() as opened:

        def tap(url: str, traces: tuple[str, ...]) -> Tap:
            put = Tap(url)
            opened.callback(_assert_hidden, put, traces)
            return put

        yield tap


@pytest.fixture
def exposed(artifacts: Artifacts) -> Iterator[Exposed]:
    """Yield a function that returns what a tap finds of brokers while a scene is played at its URL,
    in front of a new gateway with the named leak of `tests.support.leaky`, if any."""
    with ExitStack() as running:

        def found(
            broker: Upstream, play: Callable[[str], None], *leak: str, payloads: bool = False
        ) -> set[str]:
            program = ("tests.support.leaky", *leak) if leak else ("gateway",)
            started = Gateway(broker, PASS_THROUGH, artifacts.directory("exposed"), program)
            started.start()
            running.callback(started.stop)
            wait_until(lambda: healthy(started) == broker.service_url.count(",") + 1)
            return traces_found(started.untapped_url, broker.traces, play, payloads=payloads)

        yield found


@pytest.fixture
def reach(way: str, gateway: StartGateway, tapped: Tapped) -> Iterator[Reach]:
    """Yield a function that opens routes to brokers: by a new gateway of the given plan, or
    `through` a running one."""
    with ExitStack() as opened:

        def open_route(
            broker: Upstream, plan: Plan = PASS_THROUGH, *, through: Gateway | None = None
        ) -> Route:
            if way == DIRECT:
                return Route(broker.service_url, broker)
            used = through or gateway(broker, plan)
            opened.callback(used.assert_no_new_traceback)
            tap = tapped(used.untapped_url, broker.traces)
            return Route(tap.url, broker, used, tap)

        yield open_route


@pytest.fixture
def connect(reach: Reach) -> Iterator[Connect]:
    """Yield a function that opens Python clients, and close them before `reach` (required only for
    this order) ends their routes."""
    with ExitStack() as opened:

        def open_one(url: str, token: Token = None, patience: int = OPERATION_SECONDS) -> Client:
            client = open_client(url, token, patience)
            opened.callback(close_client, client)
            return client

        yield open_one


@pytest.fixture
def route(way: str, pulsar: Standalone, reach: Reach, request: pytest.FixtureRequest) -> Route:
    """Return the route to the broker without authentication."""
    return reach(
        pulsar, through=request.getfixturevalue("plain_gateway") if way == GATEWAY else None
    )


@pytest.fixture
def client(route: Route, connect: Connect) -> Client:
    return connect(route.url, route.token)


@pytest.fixture(scope="session", params=sorted(BUILDERS))
def built_program(request: pytest.FixtureRequest, say: Say) -> Program:
    return or_skip(BUILDERS[request.param], say)


@pytest.fixture
def program(built_program: Program) -> Program:
    """Return a client in another language."""
    return built_program


@pytest.fixture
def logs(artifacts: Artifacts, request: pytest.FixtureRequest) -> Path:
    """Return a directory for the logs of the test's programs."""
    return artifacts.directory(f"programs-{request.node.name}")
