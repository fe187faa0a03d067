"""Usage records, as real clients cause them: to the message, over a drain and over a kill."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.usage import reading
from gateway.usage.reading import Ledger
from gateway.usage.records import Usage
from tests.real.clients import RECEIVE_MS, fresh_topic, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import PASS_THROUGH, Plan
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

COUNT = 500


def usage(folder: Path, ledger: Ledger | None = None) -> list[Usage]:
    return list(reading.usage(folder, ledger))


def billed(found: list[Usage], operation: str, topic: str) -> int:
    return sum(it.msgs for it in found if it.op == operation and it.topic == topic)


def confirmed(folder: Path) -> int:
    """Return the messages in files that are still open."""
    with suppress(EOFError):  # an append is under way
        return sum(
            json.loads(line).get("msgs", 0)
            for path in folder.glob(".*.tmp")
            for line in gzip.decompress(path.read_bytes()).splitlines()
        )
    return 0


def plan_of(folder: Path, **settings: object) -> Plan:
    usual = {"folder": str(folder), "interval": "1s", "close_after": "1s", "gateway": "edge"}
    return replace(PASS_THROUGH, more={"usage": {**usual, **settings}})


def produce(client: client_library.Client, topic: str, number: int) -> None:
    producer = client.create_producer(topic)
    for _ in range(number):
        producer.send_async(b"x" * 100, None)
    producer.flush()


def test_records_agree_with_what_clients_did_over_a_drain(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect, tmp_path: Path
) -> None:
    started = gateway(sandbox, plan_of(tmp_path))
    client = connect(reach(sandbox, through=started).url)
    topic = fresh_topic()
    consumer = client.subscribe(topic, "sub")
    produce(client, topic, COUNT)
    for _ in range(COUNT):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    started.stop()
    ledger = Ledger()
    found = usage(tmp_path, ledger)
    assert ledger.missing() == {}
    assert billed(found, "send", topic) == COUNT
    assert billed(found, "deliver", topic) == COUNT
    assert {it.subscription for it in found if it.op == "deliver"} == {"sub"}
    assert sum(it.open_ms for it in found if it.op == "connect") > 0
    assert {"connected", "ended"} <= {it.event for it in reading.events(tmp_path)}


def test_a_killed_gateway_loses_the_open_interval_alone(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, close_after="1h")
    started = gateway(sandbox, plan)
    client = connect(reach(sandbox, through=started).url)
    topic = fresh_topic()
    produce(client, topic, COUNT)
    wait_until(lambda: confirmed(tmp_path / "usage") == COUNT)
    started.kill()
    assert usage(tmp_path) == []
    gateway(sandbox, plan)
    wait_until(lambda: billed(usage(tmp_path), "send", topic) == COUNT)
