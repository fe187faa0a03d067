"""The console, with a real client: what it shows is what the client did, and what it does holds."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.real.brokers.ports import free_ports
from tests.real.brokers.tokens import Authority
from tests.real.clients import RECEIVE_MS, fresh_topic, numbered, send_all, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import HOST, PASS_THROUGH, Plan, Plans
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

COUNT = 300

MOST = 200
"""Connections after which each of two workers has one, however uneven the distribution."""


class Console:
    """The API of a running gateway's console."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{HOST}:{port}"

    def read(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)

    def act(self, path: str, body: object = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"x-gateway-action": "1"}
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data, headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def seconds(self) -> Iterator[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v1/feed", timeout=10) as feed:
            for line in feed:
                if line.startswith(b'data: {"at"'):
                    yield json.loads(line.removeprefix(b"data: "))


def test_it_shows_what_clients_do_and_closes_what_it_is_told(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    (port,) = free_ports(HOST, 1)
    plan = replace(PASS_THROUGH, more={"console": {"bind": f"{HOST}:{port}"}})
    started = gateway(sandbox, plan)
    console = Console(port)
    client = connect(reach(sandbox, through=started).url)
    topic = fresh_topic()
    producer, consumer = client.create_producer(topic), client.subscribe(topic, "sub")
    for number in range(COUNT):
        producer.send(str(number).encode())
    (row,) = console.read(f"topics?search={topic.rpartition('/')[2]}")["rows"]
    assert (row["messages_in"], row["producers"], row["consumers"]) == (COUNT, 1, 1)
    assert console.read("status")["listeners"][0]["open"] > 0

    busy = [it for it in console.read("connections")["rows"] if it["producers"]]
    assert len(busy) == 1
    (account,) = [
        it
        for it in console.read(f"connections/{busy[0]['id']}")["accounts"]
        if it["action"] == "produce"
    ]
    assert (account["topic"], account["messages"]) == (topic, COUNT)

    assert console.act(f"connections/{busy[0]['id']}/close") == {"closed": busy[0]["id"]}
    for number in range(COUNT, 2 * COUNT):  # its client comes back
        producer.send(str(number).encode())
    received = {int(consumer.receive(RECEIVE_MS).data()) for _ in range(2 * COUNT)}
    assert received == set(range(2 * COUNT))
    assert console.read("status")["listeners"][0]["ended"]["operator_closed"] == 1
    with pytest.raises(urllib.error.HTTPError, match="404"):
        console.read(f"connections/{busy[0]['id']}")


def test_it_shows_several_workers_as_one_gateway(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    (port,) = free_ports(HOST, 1)
    started = gateway(sandbox, Plan(workers=2, more={"console": {"bind": f"{HOST}:{port}"}}))
    console = Console(port)
    wait_until(lambda: console.read("status")["process"]["processes"] == 2)
    url, topic = reach(sandbox, through=started).url, fresh_topic()
    producers = [connect(url).create_producer(topic)]
    while len(served(console)) < 2:
        assert len(producers) < MOST
        producers.append(connect(url).create_producer(topic))
    seconds = console.seconds()
    next(seconds)
    for producer in producers:
        send_all(producer, numbered(COUNT))
    told = (row for it in seconds for row in it["topics"] if row["topic"] == topic)
    row = next(it for it in told if it["to_broker"]["messages"])
    assert row["producers"] == len(producers)
    (row,) = console.read(f"topics?search={topic.rpartition('/')[2]}")["rows"]
    assert row["messages_in"] == COUNT * len(producers)

    found = console.read("connections?limit=1000")
    busy = [it["id"] for it in found["rows"] if it["producers"]]
    assert len(busy) == len(set(busy)) == len(producers)
    for id in busy[:2]:
        (account,) = console.read(f"connections/{id}")["accounts"]
        assert account["topic"] == topic
        assert console.act(f"connections/{id}/close") == {"closed": id}
    for producer in producers:  # those that were closed come back
        producer.send(b"x")
    ended = console.read("status")["listeners"][0]["ended"]
    assert ended["operator_closed"] == 2

    console.act("trace", {"client": HOST, "seconds": 60})
    connect(url).create_producer(fresh_topic())
    wait_until(lambda: '"event": "frame"' in started.log.read_text())
    console.act("drain")
    with suppress(OSError):
        list(seconds)  # ends with the process
    started.await_end()


def served(console: Console) -> set[int]:
    """Return which of two workers have producers: ids of one's connections are odd."""
    ids = {it["id"] for it in console.read("connections?limit=1000")["rows"] if it["producers"]}
    return {id % 2 for id in ids}


def test_a_principal_is_traced_when_it_connects(
    sandbox_auth: Sandbox,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
) -> None:
    (port,) = free_ports(HOST, 1)
    plan = replace(plans.of("verify"), more={"console": {"bind": f"{HOST}:{port}"}})
    started = gateway(sandbox_auth, plan)
    console = Console(port)
    console.act("trace", {"principal": "alice", "seconds": 60})
    url = reach(sandbox_auth, through=started).url
    for name in ("bob", "alice"):
        client = connect(url, authority.token(name))
        client.create_producer(fresh_topic())
        found = {it["id"] for it in console.read(f"connections?search={name}")["rows"]}
        client.close()
    started.stop()
    lines = [json.loads(line) for line in started.log.read_text().splitlines()]
    assert found
    assert {it["connection"] for it in lines if it["event"] == "frame"} == found


def test_its_rates_are_those_of_the_client_and_end_with_the_drain(
    sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    (port,) = free_ports(HOST, 1)
    plan = replace(PASS_THROUGH, more={"console": {"bind": f"{HOST}:{port}"}})
    started = gateway(sandbox, plan)
    console = Console(port)
    producer = connect(reach(sandbox, through=started).url).create_producer(fresh_topic())
    stopped = threading.Event()
    sent = 0

    def send() -> None:
        nonlocal sent
        while not stopped.is_set():
            producer.send(b"x")
            sent += 1
            time.sleep(0.002)

    seconds = console.seconds()
    first = next(seconds)
    sender = threading.Thread(target=send)
    sender.start()
    told = [next(seconds) for _ in range(3)]
    stopped.set()
    sender.join()
    told += [next(seconds), next(seconds)]
    times = [first["at"], *(it["at"] for it in told)]
    shown = sum(
        it["now"]["to_broker"]["messages"] * (it["at"] - before)
        for it, before in zip(told, times, strict=False)
    )
    assert shown == pytest.approx(sent, rel=0.02)

    console.act("trace", {"client": HOST, "seconds": 60})
    console.act("log", {"level": "error", "event": "connection_ended", "seconds": 60})
    console.act("drain")
    with suppress(OSError):
        list(seconds)  # ends with the process

    started.await_end()
    log = started.log.read_text()
    assert '"action": "drain"' in log
    assert '"event": "connection_ended"' not in log
