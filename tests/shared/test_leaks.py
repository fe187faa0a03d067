"""The tap detects each kind of leak: with one way of hiding switched off it finds brokers, and with
all of them on it finds none in the same scene.

`tests/real/test_leaks.py` has the scenes that real brokers can play cheaply.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.wire.contract import Direction
from gateway.wire.pulsar.frames import Kind
from tests.real.artifacts import Artifacts
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway
from tests.real.gateways import Gateway, Plan
from tests.real.probes import healthy
from tests.real.tap import traces_found
from tests.support.commands import ADDRESSES, STOPS, TEXTS
from tests.support.leaky import LEAKS
from tests.support.sandbox import HOSTS, Sandbox

from .clusters import SandboxBroker
from .scenes import ENDS, FIELDS, IN_PAYLOADS, PLAYS, UNDER_MASK, Scene, said

pytestmark = pytest.mark.gateway_only

WIRE = Path(__file__).resolve().parents[2] / "gateway" / "wire" / "pulsar"
MASKED = Plan(unknown="mask")


@pytest.fixture(scope="module")
def talkative(artifacts: Artifacts) -> Iterator[Sandbox]:
    """Start a sandbox for these tests alone, since it sends what other tests would not expect."""
    sandbox = Sandbox(artifacts.directory("talkative"))
    sandbox.start()
    yield sandbox
    sandbox.stop()


Start = Callable[..., Gateway]
Sound = Callable[[Plan], Gateway]


@pytest.fixture(scope="module")
def start(talkative: Sandbox, artifacts: Artifacts) -> Iterator[Start]:
    """Return a function that starts gateways, with a leak or without."""
    with ExitStack() as running:

        def start_one(plan: Plan, *program: str) -> Gateway:
            gateway = Gateway(talkative, plan, artifacts.directory("leaky"), program)
            gateway.start()
            running.callback(gateway.stop)
            wait_until(lambda: healthy(gateway) == len(HOSTS))
            return gateway

        yield start_one


@pytest.fixture(scope="module")
def sound(start: Start) -> Sound:
    """Return a function for gateways without a leak, which reuses a running one."""
    running: dict[str, Gateway] = {}

    def get(plan: Plan) -> Gateway:
        if plan.unknown not in running:
            running[plan.unknown] = start(plan, "gateway")
        return running[plan.unknown]

    return get


def found(leak: str, gateway: Gateway, brokers: Sandbox) -> set[str]:
    """Return what a tap in front of this gateway finds of brokers while the scene of a leak is
    played."""

    def play(url: str) -> None:
        PLAYS[leak](Scene(url, gateway, brokers))

    payloads = leak in IN_PAYLOADS
    return traces_found(gateway.untapped_url, brokers.traces, play, payloads=payloads)


SAID = [it for it in PLAYS if it.startswith(("fields of ", "text of "))]
"""Leaks in a field or a text of a command. One table hides all of them, so `make test` plays the
first leak alone."""

each_leak = pytest.mark.parametrize(
    "leak",
    [pytest.param(it, marks=pytest.mark.tier("all" if it in SAID[1:] else "test")) for it in PLAYS],
)


@each_leak
def test_a_leak_is_found_and_a_sound_gateway_has_none(
    start: Start, sound: Sound, talkative: Sandbox, leak: str
) -> None:
    plan = MASKED if leak in UNDER_MASK else Plan()
    leaky = start(plan, "tests.support.leaky", leak)
    assert found(leak, leaky, talkative) & set(HOSTS)
    leaky.stop()
    serving = start(plan, "gateway") if leak in ENDS else sound(plan)
    assert found(leak, serving, talkative) == set()


def test_a_broker_that_no_client_has_used_yet_is_hidden_too(
    gateway: StartGateway, talkative: Sandbox
) -> None:
    """The list of allowed targets hides it: the gateway has learned of the first broker only."""
    first, second = talkative.urls
    ports = sorted(int(url.rpartition(":")[2]) for url in (first, second))
    plan = Plan(targets={"networks": [f"{host}/32" for host in HOSTS], "ports": ports})
    started = gateway(SandboxBroker(first, talkative.traces), plan)

    def play(url: str) -> None:
        scene = Scene(url, started, talkative)
        scene.say(said(Kind.ERROR, message=f"it is at {second}, {HOSTS[1]}, /{HOSTS[1]}:8080"))

    assert traces_found(started.untapped_url, talkative.traces, play) == set()


# -- completeness ------------------------------------------------------------------------------

CALLS = {
    ("addresses", "_replace", "advertised_url"): "fields of CLOSE_PRODUCER",  # and others
    ("addresses", "_replace", "of_broker"): "fields of CLOSE_PRODUCER",  # likewise
    ("chase", "_reply", "cleaned"): "text of a chased lookup",
    ("closing", "close_for_client", "alias_url"): "alias",
    ("lookups", "_response", "rewrite"): "text of LOOKUP_RESPONSE",
    ("lookups", "_connect", "advertised_url"): "lookup that connects",
    ("lookups", "_connect", "of_broker"): "lookup that connects",
    ("opening", "_broker_no", "rewrite"): "text of a refused connection",
    ("incarnations", "_closed", "forwarded"): "fields of CLOSE_PRODUCER",
    ("incarnations", "error", "forwarded"): "text of ERROR",
    ("incarnations", "error", "rewrite"): "text of ERROR",
    ("incarnations", "_unawaited", "rewrite"): "text of ERROR",
    ("incarnations", "send_error", "forwarded"): "text of SEND_ERROR",
    (
        "incarnations",
        "producer_closed",
        "frame_for_client",
    ): "fields of CLOSE_PRODUCER",  # clients are told later
    ("session", "_filtered", "frame_for_client"): "text of WATCH_SCALABLE_TOPICS_UPDATE",
    ("session", "_decide", "forwarded"): "text of PARTITIONED_METADATA_RESPONSE",  # and others
    ("session", "transaction_began", "forwarded"): "text of NEW_TXN_RESPONSE",
    ("session", "transaction_ended", "forwarded"): "text of END_TXN_RESPONSE",
    ("session", "migrated", "lead_to_other_cluster"): "migration",
}
"""The code that hides brokers (module, function, member of `AddressRewriter`), and the leak without
it."""

WITHOUT_ADDRESSES = {
    Kind.CONNECTED: "a second one ends the pair",
    Kind.SEND: "one from a broker ends the pair",
    Kind.PRODUCER_SUCCESS: "it stops to open a producer",
    Kind.SUCCESS: "it stops to open a consumer",
    Kind.AUTH_CHALLENGE: "what it says is for a mechanism of authentication, not for a person",
}
"""Commands to clients that stop for another reason than hiding."""


def rewriting_places() -> set[tuple[str, str, str]]:
    """Return all places in the code that use an `AddressRewriter`."""
    found = set()
    for path in WIRE.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                uses = (it for it in ast.walk(function) if isinstance(it, ast.Attribute))
                places = {
                    (path.stem, function.name, it.attr) for it in uses if _is_rewriter(it.value)
                }
                found |= places
    return found


def _is_rewriter(of: ast.expr) -> bool:
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return name.strip("_") == "rewriter"


def test_every_way_of_hiding_has_its_leak() -> None:
    assert rewriting_places() == set(CALLS)
    assert set(CALLS.values()) <= set(PLAYS)
    assert set(PLAYS) == set(LEAKS)


def test_every_table_of_hidden_fields_has_its_leaks() -> None:
    assert set(FIELDS) == set(ADDRESSES)
    lookups = {Kind.LOOKUP_RESPONSE, Kind.TOPIC_MIGRATED}
    stopped = STOPS[Direction.TO_CLIENT] - lookups - set(WITHOUT_ADDRESSES)
    leaks = {leak for leak in LEAKS if leak.startswith(("fields of ", "text of "))}
    assert {f"fields of {Kind(it).name}" for it in ADDRESSES} <= leaks
    assert {f"text of {Kind(it).name}" for it in TEXTS} <= leaks
    assert stopped <= set(ADDRESSES) | set(TEXTS)
