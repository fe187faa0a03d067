"""Several processes as one gateway, with real clients."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.policy.expiry import written
from tests.real.clients import (
    EARLIEST,
    fresh_topic,
    numbered,
    payloads,
    receive,
    receive_all_of,
    send_all,
    wait_until,
)
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.frames import Connection, Kind
from tests.real.gateways import Gateway, Plan
from tests.real.probes import TOKEN, figure, lookup, name_in
from tests.real.traffic import Traffic, disturbed
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

MOST = 200
"""Connections after which each of two workers has served one, however uneven the distribution."""


class Several:
    """A gateway with two workers, both listening."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.await_all()

    def await_all(self, starts: int = 2) -> None:
        """Wait until this many workers in total have started to listen."""
        wait_until(lambda: len(self.logged("listening")) == starts)

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.gateway.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def processes(self) -> dict[int, int]:
        """Return each worker's latest process."""
        return {it["worker"]: it["process"] for it in self.logged("worker_started")}

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the parent."""
        assert self.gateway._process is not None
        os.kill(self.gateway._process.pid, number)

    def have_served(self) -> set[int]:
        """Return the workers with ended connections."""
        return {it["worker"] for it in self.logged("connection_ended")}


StartSeveral = Callable[..., Several]


@pytest.fixture
def several(sandbox: Sandbox, gateway: StartGateway) -> StartSeveral:
    def start(**plan: Any) -> Several:
        return Several(gateway(sandbox, Plan(workers=2, **plan)))

    return start


def test_all_workers_serve_and_the_metrics_are_the_sum(
    sandbox: Sandbox, several: StartSeveral, reach: Reach, connect: Connect
) -> None:
    them = several()
    url = reach(sandbox, through=them.gateway).url
    sent = 0
    for number in count():
        client, topic = connect(url), fresh_topic()
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
        send_all(client.create_producer(topic), numbered(10))
        assert payloads(receive(consumer, 10)) == numbered(10)
        client.close()
        sent += 10
        if them.have_served() == {1, 2} and number >= 3:
            break
        assert number < MOST
    for direction in ("to_broker", "to_client"):
        labels = {"direction": direction}
        passed = figure(them.gateway, "gateway_topic_messages_total", **labels)
        assert passed == sent
    accepted = figure(them.gateway, "gateway_connections_accepted_total")
    wait_until(lambda: len(them.logged("connection_ended")) == accepted)
    assert figure(them.gateway, "gateway_workers") == 2
    wait_until(lambda: figure(them.gateway, "gateway_broker_healthy") == 2)


def test_a_name_sealed_by_one_worker_is_opened_by_all(
    sandbox: Sandbox, several: StartSeveral, reach: Reach
) -> None:
    """No key is configured."""
    them = several()
    url = reach(sandbox, through=them.gateway).url
    name = name_in(lookup(url, fresh_topic()))
    for number in count():
        with Connection(url) as connection:
            answer = connection.connect(TOKEN, proxy_to_broker_url=name)
        assert answer is not None
        assert answer.kind == Kind.CONNECTED
        if them.have_served() == {1, 2}:
            break
        assert number < MOST


def test_a_killed_worker_loses_only_its_connections(
    sandbox: Sandbox, several: StartSeveral, reach: Reach, connect: Connect
) -> None:
    them = several()
    url = reach(sandbox, through=them.gateway).url
    clients = [connect(url) for _ in range(4)]
    topics = [fresh_topic() for _ in clients]
    traffics = [
        Traffic(it.create_producer(topic), 1.0) for it, topic in zip(clients, topics, strict=True)
    ]
    before = them.processes()
    with disturbed(lambda: kill_first(them), 1.0):
        for traffic in traffics:
            traffic.run()
    for client, topic, traffic in zip(clients, topics, traffics, strict=True):
        assert set(traffic.results) == {client_library.Result.Ok}
        receive_all_of(client.subscribe(topic, "s", initial_position=EARLIEST), traffic.sent)
    wait_until(lambda: figure(them.gateway, "gateway_worker_restarts_total") == 3)
    ends = [(it["worker"], it["signal"]) for it in them.logged("worker_ended")]
    assert set(ends) == {(1, "SIGKILL")}
    assert them.processes()[2] == before[2]


def kill_first(them: Several) -> None:
    """Kill the first worker as soon as it listens again."""
    them.await_all(2 + int(figure(them.gateway, "gateway_worker_restarts_total")))
    restarts = figure(them.gateway, "gateway_worker_restarts_total")
    os.kill(them.processes()[1], signal.SIGKILL)
    wait_until(lambda: figure(them.gateway, "gateway_worker_restarts_total") == restarts + 1)


def test_counters_do_not_fall_with_a_worker(
    sandbox: Sandbox, several: StartSeveral, reach: Reach, connect: Connect
) -> None:
    them = several()
    url = reach(sandbox, through=them.gateway).url
    for _ in range(4):
        client = connect(url)
        send_all(client.create_producer(fresh_topic()), numbered(10))
        client.close()
    assert figure(them.gateway, "gateway_topic_messages_total") == 40
    for process in them.processes().values():
        os.kill(process, signal.SIGKILL)
    them.await_all(4)
    assert figure(them.gateway, "gateway_topic_messages_total") == 40
    assert figure(them.gateway, "gateway_connections") == 0


def test_workers_without_a_parent_drain_and_end(
    sandbox: Sandbox, several: StartSeveral, reach: Reach
) -> None:
    """A successor finds the address free."""
    them = several()
    route = reach(sandbox, through=them.gateway)
    with ExitStack() as opened:
        for _ in range(8):
            assert opened.enter_context(Connection(route.url)).connect(TOKEN) is not None
        them.gateway.kill()
        wait_until(lambda: not any(map(lives, them.processes().values())))
    assert {it["reason"] for it in them.logged("connection_ended")} == {"drained"}
    assert len(them.logged("stopped")) == 2
    them.gateway.log.write_text("")
    them.gateway.start()


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_sighup_reaches_all_workers(several: StartSeveral, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    rule = {"id": "all", "limit": {"publish": {"messages": "100/s"}}}
    file.write_text(json.dumps({"version": 1, "rules": [rule]}))
    them = several(rules=file)
    assert figure(them.gateway, "gateway_rules_generation") == 1
    rule = {"id": "all", "limit": {"publish": {"messages": "200/s"}}}
    file.write_text(json.dumps({"version": 1, "rules": [rule]}))
    them.signal(signal.SIGHUP)
    wait_until(lambda: {it["worker"] for it in them.logged("rules_loaded")} == {1, 2})
    assert figure(them.gateway, "gateway_rules_generation") == 2
    assert figure(them.gateway, "gateway_rules_reloads_total", outcome="loaded") == 2


def test_a_rule_expires_in_all_workers(several: StartSeveral, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    rule = {"id": "ends", "deny": "produce", "expires": "2020-01-01"}
    file.write_text(json.dumps({"version": 1, "rules": [rule]}))
    them = several(rules=file)
    assert figure(them.gateway, "gateway_rules_expired") == 1
    rule["expires"] = written(datetime.now(UTC) + timedelta(seconds=15))
    file.write_text(json.dumps({"version": 1, "rules": [rule]}))
    them.signal(signal.SIGHUP)
    # A busy machine needs some seconds to read it, in a process of low priority.
    wait_until(lambda: figure(them.gateway, "gateway_rules_generation") == 2)
    wait_until(lambda: figure(them.gateway, "gateway_rules_generation") == 3)
    assert figure(them.gateway, "gateway_rules_expired") == 1
    wait_until(lambda: [it["worker"] for it in them.logged("rules_expired")].count(1) == 2)


def test_a_worker_stopped_directly_is_replaced(several: StartSeveral) -> None:
    them = several()
    before = them.processes()
    os.kill(before[1], signal.SIGTERM)
    them.await_all(3)
    (end,) = them.logged("worker_ended")
    assert (end["worker"], end["status"]) == (1, 0)
    assert them.processes().keys() == before.keys()


def test_a_hung_worker_leaves_new_connections_to_the_others(
    sandbox: Sandbox, several: StartSeveral, reach: Reach
) -> None:
    them = several()
    url = reach(sandbox, through=them.gateway).url
    hanging = them.processes()[1]
    os.kill(hanging, signal.SIGSTOP)
    for _ in range(20):
        with Connection(url) as connection:
            assert connection.connect(TOKEN) is not None
    assert them.have_served() == {2}
    assert them.gateway.ask("readyz") == (200, "ready\n")
    os.kill(hanging, signal.SIGCONT)


def test_an_unresponsive_worker_keeps_its_last_counts(
    sandbox: Sandbox, several: StartSeveral, reach: Reach, connect: Connect
) -> None:
    them = several()
    client = connect(reach(sandbox, through=them.gateway).url)
    send_all(client.create_producer(fresh_topic()), numbered(10))
    client.close()
    assert figure(them.gateway, "gateway_topic_messages_total") == 10
    for process in them.processes().values():
        os.kill(process, signal.SIGSTOP)
    assert them.gateway.ask("readyz") == (503, "no worker is ready\n")
    assert figure(them.gateway, "gateway_topic_messages_total") == 10
    for process in them.processes().values():
        os.kill(process, signal.SIGCONT)
    wait_until(lambda: them.gateway.ask("readyz") == (200, "ready\n"))
    silent = {(it["worker"], it["subject"]) for it in them.logged("worker_silent")}
    assert silent == {
        (it, subject) for it in (1, 2) for subject in ("/metrics", "/metrics/topics", "unready")
    }
