"""Usage records in a topic of a real broker: all that files hold, whatever dies meanwhile."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import uuid
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.__main__ import main
from gateway.usage import reading, topics
from gateway.usage.client import AT_ONCE, Client, Service
from gateway.usage.outbox import Outbox
from gateway.usage.reading import Ledger
from gateway.usage.records import Usage
from gateway.usage.sending import Row, Sending, UnavailableError
from tests.real.brokers.standalone import AUTHENTICATION, Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import fresh_topic, numbered, send_all, wait_until
from tests.real.fixtures import Connect, Reach, StartBroker, StartGateway
from tests.real.gateways import PASS_THROUGH, Gateway, Plan
from tests.real.probes import figure
from tests.support.balancer import Balancer
from tests.support.boxes import close, usage

from .conftest import Files, Secured

pytestmark = pytest.mark.gateway_only

COUNT = 300
DIGEST = "$apr1$abcdefgh$M2T3erDstkD7SsE2QQnfH0"
"""Of the password s3cret: `openssl passwd -apr1`."""


def plan_of(folder: Path, topic: dict[str, str], **others: Any) -> Plan:
    settings = {"folder": str(folder), "interval": "1s", "close_after": "1s", "gateway": "edge"}
    return replace(PASS_THROUGH, more={"usage": settings | {"topic": topic}}, **others)


def identities(records: list[Any]) -> Counter[tuple[str, str, int]]:
    return Counter((it.gw, it.boot, it.seq) for it in records)


def in_topic(broker: Standalone, topic: str) -> tuple[list[Usage], Ledger]:
    ledger = Ledger()
    return list(topics.usage(broker.service_url, topic, ledger)), ledger


def in_files(folder: Path) -> list[Usage]:
    return list(reading.usage(folder))


def assert_same(folder: Path, broker: Standalone, topic: str) -> Ledger:
    """Assert that a topic has the records of all files, in their order, and no others."""
    found, ledger = in_topic(broker, topic)
    assert ledger.missing() == {}
    assert ledger.unreadable == 0
    kept = in_files(folder)
    assert identities(found) == identities(kept)
    assert sum(it.msgs for it in found) == sum(it.msgs for it in kept)
    assert sum(it.bytes_wire for it in found) == sum(it.bytes_wire for it in kept)
    for boot in {it.boot for it in kept}:
        numbers = [it.seq for it in found if it.boot == boot]
        assert numbers == sorted(numbers)
    return ledger


def produce(url: str, connect: Connect, count: int = COUNT) -> str:
    topic = fresh_topic()
    send_all(connect(url).create_producer(topic), numbered(count))
    return topic


def backlog(folder: Path, files: int, each: int) -> None:
    """Write closed files of an earlier run of the gateway."""
    for first in range(1, files * each, each):
        numbers = range(first, first + each)
        close(folder, [usage(it, tenant=f"t{it % 7}", msgs=1, bytes_wire=it) for it in numbers])


def unsent(folder: Path) -> int:
    return len(Outbox(folder, "edge", ["usage"]).waiting(0.0))


def started(gateway: Gateway) -> list[int]:
    """Return the process ids of the shippers that the gateway has started so far."""
    lines = (json.loads(it) for it in gateway.log.read_text().splitlines() if it[:1] == "{")
    return [it["process"] for it in lines if it["event"] == "usage_shipper_started"]


def test_a_topic_has_the_records_of_the_files(
    pulsar: Standalone, gateway: StartGateway, reach: Reach, connect: Connect, tmp_path: Path
) -> None:
    records, events = fresh_topic("usage"), fresh_topic("events")
    sent = {"cluster": "main", "records": records, "events": events}
    running = gateway(pulsar, plan_of(tmp_path, sent))
    used = produce(reach(pulsar, through=running).url, connect)
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total", stream="usage") > 0)
    running.stop()
    ledger = assert_same(tmp_path, pulsar, records)
    assert ledger.repeated == 0
    found, _ = in_topic(pulsar, records)
    assert sum(it.msgs for it in found if it.op == "send" and it.topic == used) == COUNT
    told = list(topics.events(pulsar.service_url, events))
    assert identities(told) == identities(list(reading.events(tmp_path)))
    assert {"connected", "ended"} <= {it.event for it in told}


def summed(*arguments: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        assert main(["usage", *arguments, "--by", "tenant,op", "--format", "csv"]) == 0
    return out.getvalue()


def test_the_command_sums_a_topic_up_as_it_does_a_folder(
    pulsar_auth: Standalone, tmp_path: Path
) -> None:
    backlog(tmp_path, files=2, each=50)
    token, topic = tmp_path / "own.token", fresh_topic("usage")
    token.write_text(pulsar_auth.token("admin") or "")
    access = topics.Access(token)
    client = Client(Service(pulsar_auth.service_url), access.proof)
    outbox = Outbox(tmp_path, "edge", ["usage"])
    sending = Sending(outbox, {"usage": topic}, lambda: client, lambda _: None)
    assert sending.send_all(0.0)
    sending.close()
    url = f"{pulsar_auth.service_url}/{topic.removeprefix('persistent://')}"
    assert summed(url, "--token-file", str(token)) == summed(str(tmp_path))


def test_the_client_library_is_in_the_shipper_alone(
    pulsar: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    running = gateway(pulsar, plan_of(tmp_path, {"cluster": "main", "records": fresh_topic()}))
    wait_until(lambda: bool(started(running)))
    (shipper,) = started(running)
    wait_until(lambda: "_pulsar" in Path(f"/proc/{shipper}/maps").read_text())
    status = Path(f"/proc/{shipper}/status").read_text()
    (parent,) = re.findall(r"^PPid:\t(\d+)$", status, re.MULTILINE)
    assert "_pulsar" not in Path(f"/proc/{parent}/maps").read_text()


def test_workers_have_one_shipper(
    pulsar: Standalone, gateway: StartGateway, reach: Reach, connect: Connect, tmp_path: Path
) -> None:
    records = fresh_topic("usage")
    sent = {"cluster": "main", "records": records}
    running = gateway(pulsar, plan_of(tmp_path, sent, workers=2))
    for _ in range(4):
        produce(reach(pulsar, through=running).url, connect, 50)
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total", stream="usage") > 0)
    assert len(started(running)) == 1
    running.stop()
    assert_same(tmp_path, pulsar, records)
    found, _ = in_topic(pulsar, records)
    assert {it.gw for it in found} <= {"edge-w1", "edge-w2"}
    assert sum(it.msgs for it in found if it.op == "send") == 200


def test_a_killed_shipper_loses_nothing(
    pulsar: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    backlog(tmp_path, files=60, each=1200)
    records = fresh_topic("usage")
    running = gateway(pulsar, plan_of(tmp_path, {"cluster": "main", "records": records}))

    def shipped() -> float:
        return figure(running, "gateway_usage_shipped_records_total", stream="usage")

    for part in (5, 20, 40):
        wait_until(lambda part=part: shipped() >= part * 1200)  # type: ignore[misc]
        before = len(started(running))
        os.kill(started(running)[-1], signal.SIGKILL)
        wait_until(lambda before=before: len(started(running)) > before)  # type: ignore[misc]
    wait_until(lambda: unsent(tmp_path) == 0)
    assert figure(running, "gateway_usage_shipper_restarts_total") == 3
    running.stop()
    assert_same(tmp_path, pulsar, records)


def test_a_killed_gateway_takes_its_shipper_along_and_loses_nothing(
    pulsar: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    backlog(tmp_path, files=30, each=1200)
    records = fresh_topic("usage")
    plan = plan_of(tmp_path, {"cluster": "main", "records": records})
    running = gateway(pulsar, plan)
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total", stream="usage") > 0)
    (shipper,) = started(running)
    running.kill()
    wait_until(lambda: not Path(f"/proc/{shipper}/exe").exists())
    again = gateway(pulsar, plan)
    wait_until(lambda: unsent(tmp_path) == 0)
    again.stop()
    assert_same(tmp_path, pulsar, records)


def test_a_killed_broker_has_everything_in_the_end(
    start_broker: StartBroker, gateway: StartGateway, tmp_path: Path
) -> None:
    broker = start_broker("killed", keeps=True)
    backlog(tmp_path, files=60, each=1200)
    records = fresh_topic("usage")
    running = gateway(broker, plan_of(tmp_path, {"cluster": "main", "records": records}))

    def shipped() -> float:
        return figure(running, "gateway_usage_shipped_records_total", stream="usage")

    wait_until(lambda: shipped() >= 10 * 1200)
    broker.kill()
    assert shipped() < 60 * 1200
    broker.start()
    wait_until(lambda: unsent(tmp_path) == 0, 90)
    running.stop()
    assert_same(tmp_path, broker, records)


def test_a_broker_that_is_away_first_gets_everything(
    pulsar: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    backlog(tmp_path, files=3, each=100)
    records = fresh_topic("usage")
    door = Balancer([], host=pulsar.host)
    plan = plan_of(tmp_path, {"cluster": "elsewhere", "records": records})
    clusters = {
        "main": {"brokers": pulsar.service_url},
        "elsewhere": {"brokers": door.untapped_url},
    }
    running = gateway(pulsar, replace(plan, more={**plan.more, "clusters": clusters}))
    wait_until(lambda: figure(running, "gateway_usage_shipping_failures_total") > 0)
    assert figure(running, "gateway_usage_unshipped_files", stream="usage") >= 3
    door.ports = (pulsar.port,)
    wait_until(lambda: "usage_topic_back" in running.log.read_text())
    running.stop()
    door.close()
    told = [json.loads(it)["event"] for it in running.log.read_text().splitlines()]
    assert (told.count("usage_topic_away"), told.count("usage_topic_back")) == (1, 1)
    assert_same(tmp_path, pulsar, records)


def test_a_token_is_shown_to_brokers_and_to_nobody_else(
    pulsar_auth: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    backlog(tmp_path / "usage", files=2, each=10)
    token = tmp_path / "own.token"
    token.write_text(pulsar_auth.token("admin") or "")
    records = fresh_topic("usage")
    plan = plan_of(tmp_path / "usage", {"cluster": "main", "records": records})
    running = gateway(pulsar_auth, replace(plan, credential={"token_file": str(token)}))
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total") >= 20)
    (shipper,) = started(running)
    for file in ("cmdline", "environ"):
        assert token.read_text() not in Path(f"/proc/{shipper}/{file}").read_text()
    running.stop()
    assert token.read_text() not in running.log.read_text()
    access = topics.Access(token)
    found = list(topics.usage(pulsar_auth.service_url, records, access=access))
    assert identities(found) == identities(in_files(tmp_path / "usage"))


def test_a_broker_that_refuses_is_told_and_tried_again(
    pulsar_auth: Standalone, gateway: StartGateway, tmp_path: Path
) -> None:
    backlog(tmp_path / "usage", files=2, each=10)
    token = tmp_path / "own.token"
    token.write_text("no.such.token")
    records = fresh_topic("usage")
    plan = plan_of(tmp_path / "usage", {"cluster": "main", "records": records})
    running = gateway(pulsar_auth, replace(plan, credential={"token_file": str(token)}))
    wait_until(lambda: "usage_topic_away" in running.log.read_text())
    token.write_text(pulsar_auth.token("admin") or "")
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total") >= 20)
    told = running.log.read_text()
    assert "Connection disconnected" in told
    assert "no.such.token" not in told


@pytest.mark.parametrize("credential", [None, {"tls": True}], ids=["none", "certificate"])
def test_a_certificate_is_shown_to_brokers_with_tls(
    pulsar_tls: Secured,
    files: Files,
    gateway: StartGateway,
    tmp_path: Path,
    credential: dict[str, Any] | None,
) -> None:
    backlog(tmp_path, files=2, each=10)
    records = fresh_topic("usage")
    plan = plan_of(tmp_path, {"cluster": "main", "records": records}, brokers_tls=files.cluster)
    running = gateway(pulsar_tls, replace(plan, credential=credential))
    wait_until(lambda: figure(running, "gateway_usage_shipped_records_total") >= 20)
    running.stop()
    assert_same(tmp_path, pulsar_tls.broker, records)


def test_a_password_is_shown_to_brokers(
    start_broker: StartBroker, authority: Authority, gateway: StartGateway, tmp_path: Path
) -> None:
    users, password = tmp_path / "htpasswd", tmp_path / "own.password"
    users.write_text(f"records:{DIGEST}\n")
    password.write_text("wrong")
    providers = [f"{AUTHENTICATION}.AuthenticationProvider{it}" for it in ("Token", "Basic")]
    extra = {
        "authenticationProviders": ",".join(providers),
        "basicAuthConf": users.as_uri(),
        "superUserRoles": "admin,records",
    }
    broker = start_broker("basic", authority=authority, extra=extra)
    backlog(tmp_path / "usage", files=2, each=10)
    sent = {"cluster": "main", "records": fresh_topic("usage")}
    own = {"basic": {"username": "records", "password_file": str(password)}}
    running = gateway(broker, plan_of(tmp_path / "usage", sent, credential=own))
    wait_until(lambda: "usage_topic_away" in running.log.read_text())
    password.write_text("s3cret")
    wait_until(lambda: unsent(tmp_path / "usage") == 0)
    assert "s3cret" not in running.log.read_text()


# -- what brokers do with what is sent ---------------------------------------------------------


def client_of(broker: Standalone) -> Client:
    return Client(Service(broker.service_url), lambda: ("none", b""))


def rows(first: int, last: int) -> list[Row]:
    return [
        Row(seq, f"t{seq % 7}", 1, msgspec.json.encode({"seq": seq}))
        for seq in range(first, last + 1)
    ]


def numbers(client: Client, topic: str) -> list[int]:
    return [msgspec.json.decode(it)["seq"] for it in client.read(topic)]


@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize("had", [AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 99])
def test_a_broker_that_drops_repeats_has_each_record_once(
    pulsar: Standalone, partitions: int, had: int
) -> None:
    namespace = f"public/repeats-{uuid.uuid4().hex[:12]}"
    pulsar.admin.create_namespace(namespace)
    pulsar.admin.drop_repeats(namespace)
    topic = fresh_topic("usage", namespace)
    if partitions:
        pulsar.admin.create_partitioned_topic(topic, partitions)
    client, last = client_of(pulsar), 2 * AT_ONCE + 99
    client.send(topic, Usage, "edge-b", rows(1, had))  # as far as a killed shipper came
    client.send(topic, Usage, "edge-b", rows(1, last))
    client.send(topic, Usage, "edge-b", rows(1, last))
    assert sorted(numbers(client, topic)) == list(range(1, last + 1))
    client.close()


def test_fields_may_be_added_and_older_gateways_go_on(pulsar: Standalone) -> None:
    class Newer(Usage, omit_defaults=True, kw_only=True):
        novelty: int | None = None

    class Broken(Usage, omit_defaults=True, kw_only=True):
        required: int

    topic, client = fresh_topic("usage"), client_of(pulsar)
    for number, kind in enumerate((Usage, Newer, Usage), 1):
        client.send(topic, kind, f"edge-{number}", rows(number, number))
    with pytest.raises(UnavailableError, match="IncompatibleSchema"):
        client.send(topic, Broken, "edge-4", rows(4, 4))
    assert numbers(client, topic) == [1, 2, 3]
    client.close()


def test_the_doctor_asks_for_the_topics(
    pulsar: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.yaml"

    def asked(records: str) -> tuple[int, str]:
        settings = {
            "version": 1,
            "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
            "clusters": {"main": {"brokers": pulsar.service_url}},
            "usage": {
                "folder": str(tmp_path / "usage"),
                "topic": {"cluster": "main", "records": records},
            },
        }
        path.write_text(json.dumps(settings))
        return main(["doctor", str(path)]), " ".join(capsys.readouterr().out.split())

    status, told = asked("persistent://public/default/records")
    assert status == 0, told
    assert "brokers answer for it: no partitions" in told
    status, told = asked("persistent://nobody/made/records")
    assert status == 1, told
    assert "FAIL topic persistent://nobody/made/records" in told
