"""The loop of the product: traffic, records, a recommendation, a shadow, a limit, its effect."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.pipeline.backtest import backtest
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.limits.buckets import Bucket, buckets
from gateway.pipeline.limits.deciding import Policy, What
from gateway.pipeline.limits.texts import write
from gateway.pipeline.limits.writing import document, good_until, identifier
from gateway.pipeline.recommend import recommend
from gateway.policy.limits import LEASE_SECONDS
from gateway.policy.rules import Rule
from gateway.rules import files
from gateway.usage import reading
from gateway.usage.records import Usage
from tests.real.clients import (
    EARLIEST,
    Producer,
    fresh_topic,
    numbered,
    payloads,
    receive,
    send_all,
    wait_until,
)
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import Gateway, Plan
from tests.real.probes import figure
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

ID = identifier("acme", What.PUBLISH_MESSAGES)
PROMOTED = ID.replace("recommended", "promoted")

CALM, SECONDS, TICK = 100, 5, 0.1
"""Messages per second of a client that behaves, for so long, in parts."""

FLOOD = 800
"""Messages at once: far above what suits the calm, and below what a client has pending at most."""

BASE = """\
version: 1
rules: [{id: %s, match: {tenant: nobody}, limit: {publish: {messages: 1/s}}, mode: shadow}]
"""

POLICY = Policy(least_days=1, floors=(10.0, 1e6))
"""One day is enough for a test, and its limit in bytes holds nothing."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with folders of rules, as a gateway needs them at its start."""
    for path, id in (("rules/base.yaml", "base"), ("rules/recommended/tenants.yaml", "none")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(BASE % id)
    return tmp_path


@pytest.fixture
def observed(sandbox: Sandbox, gateway: StartGateway, folder: Path) -> Gateway:
    """Return a gateway that writes records each second, and reads the rules that jobs write."""
    usage = {"folder": str(folder / "usage"), "interval": "1s", "close_after": "1s"}
    rules = [str(folder / "rules"), str(folder / "rules" / "recommended")]
    return gateway(sandbox, Plan(more={"usage": usage, "rules": rules}))


class Loop:
    """One producer, and what the gateway writes down of it."""

    def __init__(self, folder: Path, gateway: Gateway, producer: Producer) -> None:
        self.folder, self.gateway, self.producer = folder, gateway, producer
        self.payloads: list[bytes] = []

    def sends(self, number: int) -> None:
        """Send messages at once, and wait for their receipts."""
        these = numbered(number, len(self.payloads))
        self.payloads += these
        send_all(self.producer, these)

    def behaves(self) -> None:
        """Send evenly for some seconds."""
        for _ in range(round(SECONDS / TICK)):
            self.sends(round(CALM * TICK))
            time.sleep(TICK)

    def records(self) -> list[Usage]:
        """Return the records of all that was sent, once files with all of them are closed."""
        found: list[Usage] = []

        def are_all() -> bool:
            found[:] = [it for it in reading.usage(self.folder / "usage") if it.op == "send"]
            return sum(it.sent_msgs for it in found) == len(self.payloads)

        wait_until(are_all)
        return found

    def rules_become(self, generation: int) -> None:
        """Wait until the gateway has seen by itself that files have changed."""
        wait_until(lambda: figure(self.gateway, "gateway_rules_generation") == generation)


def seconds_of(records: list[Usage]) -> float:
    """Return the seconds between the first and the last moment of records."""
    end = max(it.start_ms + it.dur_ms for it in records)
    return (end - min(it.start_ms for it in records)) / 1000


def recommended(lake: Lake, path: Path) -> Rule:
    """Write recommendations as the command does; return the limit of messages."""
    limits, _ = recommend(lake.read("usage"), POLICY, {})
    today = datetime.now(UTC).date()
    write(path, document(limits, good_until(today, POLICY.valid_days, None)))
    return next(it for it in files.rules_of(files.load([path])) if it.id == ID)


def test_a_recommended_limit_is_tried_promoted_and_holds(
    lake: Lake, folder: Path, observed: Gateway, sandbox: Sandbox, reach: Reach, connect: Connect
) -> None:
    client = connect(reach(sandbox, through=observed).url)
    topic = fresh_topic(namespace="acme/web")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    loop = Loop(folder, observed, client.create_producer(topic, batching_enabled=False))

    # Traffic, records, a recommendation.
    loop.behaves()
    loop.records()
    ingest(lake, str(folder / "usage"), "usage", time.time_ns() // 1_000_000)
    rule = recommended(lake, folder / "rules" / "recommended" / "tenants.yaml")
    ((dimension, rate),) = rule.limits
    burst = rule.burst_of(dimension, rate)
    assert (rule.mode, rule.expires is None) == ("shadow", False)
    assert CALM <= rate <= 4 * CALM

    # A shadow holds nothing, and counts what it would have held.
    loop.rules_become(2)
    before = len(loop.records())
    loop.sends(FLOOD)
    seconds = seconds_of(loop.records()[before:])
    would = figure(observed, "gateway_rule_shadow_held_total", rule=ID, limit="publish.messages")
    # Besides, the producer may have leased some of the rate before its first message.
    passed = burst + 1 + rate * (seconds + LEASE_SECONDS)
    assert 0 < FLOOD - passed <= would <= FLOOD
    assert figure(observed, "gateway_rule_waits_total", limit="publish.messages") == 0

    # What was tried is enforced, and holds what is above it.
    asked = ["rules", "promote", ID, "--from", f"{folder}/rules/recommended/tenants.yaml"]
    assert main([*asked, "--to", f"{folder}/rules/promoted.yaml"]) == 0
    loop.rules_become(3)
    before = len(loop.records())
    loop.sends(FLOOD)
    held = loop.records()[before:]
    assert sum(it.sent_msgs for it in held) == FLOOD <= burst + 1 + rate * seconds_of(held)
    assert {wait.rule for it in held for wait in it.throttles} == {PROMOTED}
    assert figure(observed, "gateway_rule_waits_total", rule=PROMOTED) >= 1
    assert payloads(receive(consumer, len(loop.payloads))) == loop.payloads

    # The backtest knows of the flood that passed.
    ingest(lake, str(folder / "usage"), "usage", time.time_ns() // 1_000_000)
    tried = [it for it in buckets([rule]) if isinstance(it, Bucket)]
    (estimate,) = backtest(lake.read("usage"), tried)
    assert estimate.waited >= 1
    assert estimate.beyond > 0
