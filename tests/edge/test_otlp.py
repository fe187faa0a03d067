"""What an OpenTelemetry collector learns of real clients: openings, lookups and the drain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.telemetry.spans import CONNECTION
from tests.real.clients import RECEIVE_MS, fresh_topic, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import PASS_THROUGH, Plan, Plans
from tests.support.collector import Collector, collector, values
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""A W3C trace context."""


@pytest.fixture
def reached() -> Iterator[Collector]:
    with collector() as found:
        yield found


def plan_of(plan: Plan, reached: Collector, **settings: object) -> Plan:
    return replace(plan, more={"otlp": {"url": reached.url, **settings}})


def test_openings_lookups_and_the_drain_are_told(
    sandbox: Sandbox,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    reached: Collector,
) -> None:
    started = gateway(sandbox, plan_of(PASS_THROUGH, reached))
    client = connect(reach(sandbox, through=started).url)
    topic = fresh_topic()
    producer = client.create_producer(topic)
    consumer = client.subscribe(topic, "sub")
    for _ in range(100):
        producer.send(b"x", properties={"traceparent": PARENT})
    assert consumer.receive(RECEIVE_MS).properties() == {"traceparent": PARENT}
    client.close()
    started.stop()
    opened = reached.named("connect")
    assert opened
    for it in opened:
        assert reached.parts(it) == ["authenticate", "dial"]
        assert values(it.attributes)["gateway.listener"] == "clients"
    lookup = reached.named("lookup")[0]
    found = values(lookup.attributes)
    assert found["messaging.destination.name"] == topic
    assert found["messaging.system"] == "pulsar"
    assert found[CONNECTION] in {values(it.attributes)[CONNECTION] for it in opened}
    (drain,) = reached.named("drain")
    assert values(drain.attributes)["gateway.connections_left"] == 0
    assert {it.name for it in reached.spans} == {
        *("connect", "authenticate", "dial", "lookup", "drain"),
    }
    assert len(reached.spans) < 20, "no message has a span"


def test_a_client_that_is_refused_has_a_span_that_says_why(
    sandbox_auth: Sandbox,
    plans: Plans,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    reached: Collector,
) -> None:
    started = gateway(sandbox_auth, plan_of(plans.of("verify"), reached))
    client = connect(reach(sandbox_auth, through=started).url, "wrong")
    with pytest.raises(client_library.PulsarException):
        client.create_producer(fresh_topic())
    started.stop()
    refused = reached.named("connect")
    assert refused
    assert {it.status.message for it in refused} == {"authentication_failed"}
    assert reached.parts(refused[0]) == ["authenticate"]


def test_log_lines_are_sent_too(
    sandbox: Sandbox,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    reached: Collector,
) -> None:
    started = gateway(sandbox, plan_of(PASS_THROUGH, reached, logs=True))
    client = connect(reach(sandbox, through=started).url)
    client.create_producer(fresh_topic())
    client.close()
    wait_until(lambda: any(it.event_name == "connection_ended" for it in reached.lines))
    started.stop()
    ended = next(it for it in reached.lines if it.event_name == "connection_ended")
    assert values(ended.attributes)["listener"] == "clients"
    assert {"listening", "stopped"} <= {it.event_name for it in reached.lines}


def test_a_collector_that_refuses_hinders_no_client(
    sandbox: Sandbox,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    reached: Collector,
) -> None:
    reached.status = 503
    started = gateway(sandbox, plan_of(PASS_THROUGH, reached, logs=True))
    client = connect(reach(sandbox, through=started).url)
    producer = client.create_producer(fresh_topic())
    for _ in range(100):
        producer.send(b"x")
    client.close()
    started.stop()
    assert reached.spans == reached.lines == []
    assert "otlp_failed" in started.log.read_text()


def test_workers_send_under_their_own_names(
    sandbox: Sandbox,
    gateway: StartGateway,
    reach: Reach,
    connect: Connect,
    reached: Collector,
) -> None:
    started = gateway(sandbox, replace(plan_of(PASS_THROUGH, reached), workers=2))
    # It is ready with the first of them.
    wait_until(lambda: started.log.read_text().count('"event": "listening"') == 2)
    client = connect(reach(sandbox, through=started).url)
    client.create_producer(fresh_topic())
    client.close()
    started.stop()
    assert str(reached.resource["service.instance.id"]).rpartition("-")[2] in ("w0", "w1", "w2")
    assert len(reached.named("drain")) == 2
