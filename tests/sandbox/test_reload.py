"""Rules change under a running gateway while a real client sends."""

import json
import os
import secrets
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.policy.expiry import written
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
from tests.real.gateways import Gateway, Plan, Settings, Upstream
from tests.real.probes import figure
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

SLOW, FAST = "1/m", "100000/s"
EXPIRES = 5
"""Seconds until a rule expires, in which a gateway reads it and a client waits for it."""

COUNT = 200
"""Messages; under the slow rule they would take hours, longer than any client waits."""


@dataclass(frozen=True)
class Ruled(Plan):
    """A configuration with rule files."""

    rules: Path = Path("rules")

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        return super().settings(broker, port, admin_port) | {"rules": str(self.rules)}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Return a file with one rule that hardly limits."""
    folder = tmp_path / "rules"
    folder.mkdir()
    write(folder / "all.yaml", FAST)
    return folder / "all.yaml"


def write(file: Path, rate: str, **more: str) -> None:
    rule = {"id": "all", "limit": {"publish": {"messages": rate}}, "per": ["topic"]} | more
    file.write_text(json.dumps({"version": 1, "rules": [rule]}))


@pytest.fixture
def limiting(sandbox: Sandbox, rules: Path, gateway: StartGateway) -> Gateway:
    return gateway(sandbox, Ruled(rules=rules.parent))


def logged(gateway: Gateway, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


def hang_up(gateway: Gateway) -> None:
    assert gateway._process is not None
    os.kill(gateway._process.pid, signal.SIGHUP)


def await_generation(gateway: Gateway, number: int) -> None:
    """Wait until the gateway has loaded these rules, and has logged it."""
    loaded = number - 1
    wait_until(lambda: figure(gateway, "gateway_rules_reloads_total", outcome="loaded") == loaded)
    assert figure(gateway, "gateway_rules_generation") == number


class Sending:
    """Messages in flight, and their outcomes."""

    def __init__(self, producer: Producer, messages: list[bytes]) -> None:
        self.results: list[Any] = []
        for message in messages:
            producer.send_async(message, lambda result, _: self.results.append(result))

    def await_all(self) -> None:
        wait_until(lambda: len(self.results) == COUNT)
        assert set(self.results) == {client_library.Result.Ok}


def test_an_open_producer_follows_changed_rules(
    sandbox: Sandbox, rules: Path, limiting: Gateway, reach: Reach, connect: Connect
) -> None:
    """No message is lost, repeated or reordered."""
    client, topic = connect(reach(sandbox, through=limiting).url), fresh_topic()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic, batching_enabled=False)
    messages = numbered(3 * COUNT)
    first, second, third = (messages[at : at + COUNT] for at in range(0, 3 * COUNT, COUNT))
    send_all(producer, first)

    write(rules, SLOW)
    hang_up(limiting)
    await_generation(limiting, 2)
    held = Sending(producer, second)
    wait_until(lambda: figure(limiting, "gateway_buffered_bytes") > 0)
    assert len(held.results) < COUNT / 2

    write(rules, FAST)  # no signal: the gateway polls
    await_generation(limiting, 3)
    held.await_all()
    Sending(producer, third).await_all()
    assert payloads(receive(consumer, 3 * COUNT)) == messages
    assert [it["changed"] for it in logged(limiting, "rules_loaded")] == [1, 1]


def test_a_removed_rule_releases_held_producers(
    sandbox: Sandbox, rules: Path, limiting: Gateway, reach: Reach, connect: Connect
) -> None:
    write(rules, SLOW)
    hang_up(limiting)
    await_generation(limiting, 2)
    client, topic = connect(reach(sandbox, through=limiting).url), fresh_topic()
    producer = client.create_producer(topic, batching_enabled=False)
    held = Sending(producer, numbered(COUNT))
    wait_until(lambda: figure(limiting, "gateway_buffered_bytes") > 0)
    other = {"id": "other", "match": {"tenant": "nobody"}, "limit": {"publish": {"bytes": "1KB/s"}}}
    rules.write_text(json.dumps({"version": 1, "rules": [other]}))
    hang_up(limiting)
    held.await_all()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT)


def test_a_rule_that_expires_releases_held_producers(
    sandbox: Sandbox, rules: Path, limiting: Gateway, reach: Reach, connect: Connect
) -> None:
    """Nobody touches a file when it does."""
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=EXPIRES)
    write(rules, SLOW, expires=written(ends))
    hang_up(limiting)
    await_generation(limiting, 2)
    client, topic = connect(reach(sandbox, through=limiting).url), fresh_topic()
    producer = client.create_producer(topic, batching_enabled=False)
    held = Sending(producer, numbered(COUNT))
    wait_until(lambda: figure(limiting, "gateway_buffered_bytes") > 0)
    assert figure(limiting, "gateway_rules_expired") == 0
    held.await_all()
    assert datetime.now(UTC) >= ends
    (line,) = logged(limiting, "rules_expired")
    assert (line["level"], line["rules"]) == ("info", ["all"])
    assert figure(limiting, "gateway_rules_expired") == 1
    assert figure(limiting, "gateway_rules_generation") == 3
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT)


def test_an_invalid_file_changes_nothing_and_is_reported(
    sandbox: Sandbox, rules: Path, limiting: Gateway, reach: Reach, connect: Connect
) -> None:
    client, topic = connect(reach(sandbox, through=limiting).url), fresh_topic()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic)
    before = rules.read_text()
    rules.write_text(before.replace(FAST, "fast").replace("topic", "topics"))
    wait_until(lambda: figure(limiting, "gateway_rules_reloads_total", outcome="refused") == 1)
    (line,) = logged(limiting, "rules_refused")
    assert (line["level"], line["mistakes"]) == ("error", checked(rules.parent))
    assert len(line["mistakes"]) == 2
    assert figure(limiting, "gateway_rules_generation") == 1
    send_all(producer, numbered(COUNT))
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT)
    write(rules, SLOW)
    await_generation(limiting, 2)


def checked(folder: Path) -> list[str]:
    """Return the errors that the command prints."""
    command = [sys.executable, "-m", "gateway", "rules", "check", str(folder)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    return ended.stderr.splitlines()


def test_a_swapped_symlink_is_a_change(
    sandbox: Sandbox, tmp_path: Path, gateway: StartGateway
) -> None:
    """Kubernetes updates a ConfigMap this way: it swaps a link to the folder of the files."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    swap(folder, FAST)
    (folder / "all.yaml").symlink_to("..data/all.yaml")
    limiting = gateway(sandbox, Ruled(rules=folder))
    swap(folder, SLOW)
    await_generation(limiting, 2)
    (line,) = logged(limiting, "rules_loaded")
    assert (line["added"], line["removed"], line["changed"]) == (0, 0, 1)


def swap(folder: Path, rate: str) -> None:
    version = folder / f"..{secrets.token_hex(4)}"
    version.mkdir()
    write(version / "all.yaml", rate)
    (folder / "..new").symlink_to(version.name)
    (folder / "..new").rename(folder / "..data")


def test_a_signal_rereads_the_files(limiting: Gateway) -> None:
    hang_up(limiting)
    wait_until(lambda: figure(limiting, "gateway_rules_reloads_total", outcome="loaded") == 1)
    assert figure(limiting, "gateway_rules_generation") == 1


def test_without_rules_sighup_ends_the_process(sandbox: Sandbox, tmp_path: Path) -> None:
    plain = Gateway(sandbox, Plan(), tmp_path)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would make all children ignore it
    plain.start()
    signal.signal(signal.SIGHUP, before)
    process, plain._process = plain._process, None
    assert process is not None
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=10) == -signal.SIGHUP
