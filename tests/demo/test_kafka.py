"""`gateway demo --protocol kafka` as users run it."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import confluent_kafka

from gateway.lab.demo.plan import KAFKA_FLOWS
from gateway.lab.demo.ports import HOST

from .running import Demo, any_ports, assert_all_equal, running, until

KAFKA = ("--protocol", "kafka")
ASK_SECONDS = 10.0


def test_clients_and_gateway_count_the_same(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    arguments = (*KAFKA, "--seconds", "2", "--picture", str(picture))
    with running(tmp_path, *arguments, flows=KAFKA_FLOWS) as demo:
        ended = demo.ended()
    assert (ended.status, ended.err) == (0, "")
    assert_all_equal(ended)
    assert "None was lost." in ended.out
    assert ended.out.count("Try next") == 1
    assert "readings" in picture.read_text()


def test_a_rule_holds_one_topic_and_a_signal_ends_in_order(tmp_path: Path) -> None:
    with running(tmp_path, *KAFKA, flows=KAFKA_FLOWS) as demo:
        until(lambda: demo.has_traffic() and _held(demo) != set(), demo)
        assert _held(demo) == {flow.topic for flow in KAFKA_FLOWS if flow.limit}
        demo.process.send_signal(signal.SIGINT)
        ended = demo.ended()
    assert (ended.status, ended.err) == (0, "")
    assert_all_equal(ended)


def _held(demo: Demo) -> set[str]:
    """Return the rules for which producers had to wait; each has the name of its topic."""
    metrics = demo.request("GET", demo.ports.admin, "metrics")
    return set(re.findall(r'gateway_rule_waits_total\{.*rule="(\S+?)".* [1-9]', metrics))


def test_a_client_learns_of_no_broker_s_address(tmp_path: Path) -> None:
    with running(tmp_path, *KAFKA, flows=KAFKA_FLOWS) as demo:
        until(demo.has_traffic, demo)
        where = {"bootstrap.servers": f"{HOST}:{demo.ports.clients}"}
        found = confluent_kafka.Producer(where).list_topics(timeout=ASK_SECONDS)
        brokers = {(it.host, it.port) for it in found.brokers.values()}
        assert brokers == {(HOST, port) for port in demo.ports.kafka_brokers}
        assert found.topics.keys() >= {flow.topic for flow in KAFKA_FLOWS}


def test_a_broker_s_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    ports = any_ports()
    taken = ports.kafka_brokers[-1]
    with socket.create_server((HOST, taken)):
        ended = Demo(tmp_path, *KAFKA, ports=ports).ended()
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"cannot listen on {HOST}:{taken}: address already in use")
    assert ended.err.count("\n") == 1


def test_brokers_of_one_s_own_are_pulsar_s(tmp_path: Path) -> None:
    ended = Demo(tmp_path, *KAFKA, "--brokers", "kafka://127.0.0.1:9092").ended()
    assert (ended.status, ended.err) == (2, "--brokers goes with --protocol pulsar\n")
