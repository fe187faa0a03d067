"""Real clients and the gateway in front of sandbox brokers, which report their state and fail on
request.

`tests/shared` has the tests that real brokers can run as well.
"""

import json
import threading
import time
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.wire.contract import EndReason
from tests.real.brokers.tokens import Authority
from tests.real.clients import EARLIEST, fresh_topic, receive_all_of
from tests.real.fixtures import Connect, GatewayOfMode, Reach, StartGateway
from tests.real.frames import Connection, Kind, ServerError
from tests.real.gateways import MODES, Gateway, Plan
from tests.real.probes import FAILED, TOKEN, lookup, lookups
from tests.real.traffic import Traffic, disturbed
from tests.shared.clusters import SandboxBroker
from tests.support.sandbox import Sandbox

SECONDS = 0.5


@pytest.mark.gateway_only
def test_a_redirect_to_a_forbidden_target_is_refused(sandbox: Sandbox, reach: Reach) -> None:
    """The gateway may dial one of two brokers, which redirects to the other."""
    first, second = sandbox.urls
    topic = topic_of(sandbox, second)
    route = reach(SandboxBroker(first, sandbox.traces))
    answer = lookup(route.url, topic)
    assert (answer.fields[3], answer.fields[6]) == (FAILED, ServerError.NOT_ALLOWED)
    assert answer.text(7) == "the gateway may not connect to this broker"
    assert lookups(route.gateway, "refused") == 1


def topic_of(sandbox: Sandbox, url: str) -> str:
    """Return a new topic that this broker owns."""
    topics = [fresh_topic() for _ in range(50)]
    for topic in topics:
        sandbox.create_partitioned(topic, 0)
    return next(topic for topic in topics if sandbox.topics()[topic]["owner"] == url)


@pytest.mark.gateway_only
@pytest.mark.parametrize(
    ("mode", "believed"),
    [
        ("pass-through", ("alice", None)),
        ("verify", ("proxy", "alice")),
        ("verify-and-forward", ("proxy", "alice")),
    ],
    ids=MODES,
)
def test_the_broker_learns_the_original_principal(
    sandbox_auth: Sandbox,
    gateway_of_mode: GatewayOfMode,
    reach: Reach,
    connect: Connect,
    authority: Authority,
    mode: str,
    believed: tuple[str, str | None],
) -> None:
    route = reach(sandbox_auth, through=gateway_of_mode(sandbox_auth, mode))
    client, topic = connect(route.url, authority.token("alice")), fresh_topic()
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    seen = sandbox_auth.topics()[topic]
    assert [who(it) for kind in ("producers", "consumers") for it in seen[kind]] == [believed] * 2
    producer.close()
    consumer.close()


def who(shown: dict[str, Any]) -> tuple[str, str | None]:
    return shown["principal"], shown["original_principal"]


def test_nothing_is_lost_when_connections_are_cut(
    sandbox: Sandbox, reach: Reach, connect: Connect
) -> None:
    client, topic = connect(reach(sandbox).url), fresh_topic()

    def cut() -> None:
        for broker in range(2):
            sandbox.fault(broker, "cut")

    traffic = Traffic(client.create_producer(topic), SECONDS)
    with disturbed(cut, SECONDS):
        traffic.run()
    assert set(traffic.results) == {client_library.Result.Ok}
    receive_all_of(client.subscribe(topic, "s", initial_position=EARLIEST), traffic.sent)


@pytest.mark.gateway_only
def test_clients_of_a_frozen_broker_come_back(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    """The broker neither closes nor answers; without the gateway, clients would wait a minute or
    for ever."""
    impatient = gateway(sandbox, Plan(deadlines={"silent": "1s"}))
    client = connect(reach(sandbox, through=impatient).url)
    topic = topic_of(sandbox, sandbox.urls[1])
    traffic = Traffic(client.create_producer(topic), SECONDS)
    with disturbed(lambda: sandbox.fault(1, "freeze", 2.5), SECONDS):
        traffic.run()
    assert set(traffic.results) == {client_library.Result.Ok}
    assert ended(impatient) >= {EndReason.BROKER_SILENT}
    receive_all_of(client.subscribe(topic, "s", initial_position=EARLIEST), traffic.sent)


def ended(gateway: Gateway) -> set[EndReason]:
    """Return the end reasons of connections."""
    events = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    return {EndReason(it["reason"]) for it in events if it["event"] == "connection_ended"}


@pytest.mark.gateway_only
def test_a_client_that_sends_late_is_not_reset_by_a_gateway_that_stops(
    sandbox: Sandbox, gateway: StartGateway
) -> None:
    """It hears of the close of its producer, and of the end, although the gateway is done."""
    url = sandbox.urls[0]
    started = gateway(SandboxBroker(url, sandbox.traces))
    with Connection(started.untapped_url) as client:
        client.connect(TOKEN)
        client.send(Kind.PRODUCER, {1: topic_of(sandbox, url), 2: 1, 3: 2})
        client.receive()
        stopping = threading.Thread(target=started.stop)
        stopping.start()
        time.sleep(SECONDS)
        for _ in range(3):
            client.send(Kind.PONG, {})
            time.sleep(0.05)
        heard = [command.kind for command in iter(client.receive, None)]
    stopping.join()
    assert heard == [Kind.CLOSE_PRODUCER]
