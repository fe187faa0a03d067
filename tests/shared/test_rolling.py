"""Pods behind a Service, as the chart has them, under load: rolls, more pods, fewer, one that dies,
a node that is drained. Kubernetes' own controllers do it (`tests.kubernetes`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.programs import Program
from tests.helm.rendering import CHART
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.images import gateway
from tests.kubernetes.pods import Pod
from tests.real.brokers.jars import Say
from tests.real.clients import fresh_topic, wait_until
from tests.real.fixtures import Connect, Tapped
from tests.real.gateways import CHECKOUT
from tests.support.certificates import self_signed

from .brokers import REAL, Brokers, Pulsar
from .rolled import INTERVAL_MS
from .test_drain import Load

pytestmark = [
    pytest.mark.real,
    pytest.mark.gateway_only,
    pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed"),
]

NAME = "broker-gateway"
PORT = 6650

FORMER = "cb0fb1a"
"""A commit from which clusters are upgraded: the first one with the chart, and all it needs."""

ADMIN_PORT = 8080


class Release:
    """The chart's shaper in front of brokers. `chart`: of this checkout, or of another one."""

    def __init__(self, cluster: Cluster, namespace: str, brokers: Brokers, folder: Path) -> None:
        self.namespace = namespace
        self._cluster = cluster
        self._brokers = brokers
        self._values = folder / "values.yaml"

    def install(self, chart: Path = CHART, **values: Any) -> None:
        """Install or upgrade it, and wait until all pods are new and ready."""
        self._values.write_text(yaml.safe_dump(self._merged(values)))
        self._run("helm", "upgrade", "--install", NAME, chart, "--values", self._values)
        self.await_rollout()

    def await_rollout(self) -> None:
        self._run("kubectl", "rollout", "status", f"deployment/{NAME}", "--timeout=180s")

    @property
    def url(self) -> str:
        return f"pulsar://{self._cluster.address(self.namespace, NAME)}:{PORT}"

    @property
    def pods(self) -> list[Pod]:
        return self._cluster.pods(self.namespace)

    def ended(self) -> list[Pod]:
        """Return the pods that were told to end, once all have."""
        return self._cluster.ended(self.namespace)

    def ends(self) -> set[str]:
        """Return the end reasons of all connections."""
        return {it["reason"] for it in self.events("connection_ended")}

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a kind, of all pods that there were."""
        pods = [it for it in self._cluster.kubelet.pods if it.namespace == self.namespace]
        logs = [found.log.read_text() for it in pods for found in it.containers]
        lines = [line for log in logs for line in log.splitlines() if line.startswith("{")]
        return [it for it in map(json.loads, lines) if it["event"] == name]

    def kubectl(self, *arguments: str) -> str:
        return self._run("kubectl", *arguments)

    def _run(self, *command: str | Path) -> str:
        return self._cluster.run(*command, "--namespace", self.namespace)

    def _merged(self, values: Mapping[str, Any]) -> dict[str, Any]:
        host, _, port = self._brokers.service_url.rpartition("://")[2].rpartition(":")
        targets = {"networks": [f"{host}/32"], "ports": [int(port)]}
        listener = {"name": "shared", "bind": f":{PORT}", "cluster": "main"}
        config = {
            "listeners": [{**listener, "connection_age": "10s"}],
            "clusters": {"main": {"brokers": self._brokers.service_url, "targets": targets}},
            **values.get("config", {}),
        }
        ports = {"ports": [int(port)]}
        return {**values, "config": config, "networkPolicy": {"brokers": ports}}


@pytest.fixture
def release(cluster: Cluster, namespace: str, brokers: Brokers, tmp_path: Path) -> Release:
    return Release(cluster, namespace, brokers, tmp_path)


def _accepted(pod: Pod) -> float:
    """Return how many connections a pod has accepted."""
    url = f"http://{pod.host}:{ADMIN_PORT}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    name = "gateway_connections_accepted_total{"
    return sum(float(it.rpartition(" ")[2]) for it in lines if it.startswith(name))


def _finish(loads: list[Load], say: Say) -> None:
    """End loads, and assert that no message was lost, stored twice or out of order."""
    for load in loads:
        load.finish()
        load.assert_exact()
        assert list(dict.fromkeys(load.received)) == list(range(load.sent))
    say(f"longest pause of a producer: {max(load.longest for load in loads):.3f} s")


@REAL
def test_rolls_and_scaling_lose_and_double_nothing(
    release: Release, brokers: Brokers, tapped: Tapped, connect: Connect, say: Say
) -> None:
    release.install()
    url = tapped(release.url, brokers.traces).url
    loads = [Load(connect(url), fresh_topic()) for _ in range(3)]
    first = release.pods
    release.install(config={"limits": {"connections": 500}})
    assert not {*first} & {*release.pods}
    release.install(config={"limits": {"connections": 500}}, replicas=5)
    young = [it for it in release.pods if it not in release.pods[:3]]
    wait_until(lambda: all(_accepted(it) for it in young))
    release.install(config={"limits": {"connections": 500}}, replicas=2)
    ended = release.ended()
    time.sleep(1)
    _finish(loads, say)
    assert len(ended) == 6
    assert not any(it.was_killed for it in ended)
    assert release.ends() <= {"client_closed", "broker_closed", "drained"}


@REAL
def test_go_and_java_clients_outlive_a_roll(
    program: Program, release: Release, brokers: Brokers, tapped: Tapped, logs: Path, say: Say
) -> None:
    release.install()
    topic, url = fresh_topic("r"), tapped(release.url, brokers.traces).url
    with (
        program.consuming(url, topic, "s", 0, logs / "consumer.log") as consumer,
        program.producing(
            url, topic, 0, logs / "producer.log", interval_ms=INTERVAL_MS, key=True
        ) as producer,
    ):
        consumer.await_ready()
        producer.await_ready()
        release.kubectl("rollout", "restart", f"deployment/{NAME}")
        release.await_rollout()
        assert len(release.ended()) == 3
        producer.tell_to_stop()
        sent = producer.sent()
        wait_until(lambda: brokers.backlog(topic, "s") == 0)
        consumer.tell_to_stop()
        received = consumer.received()
    say(f"longest pause of the producer: {sent.longest_send_ms / 1000:.3f} s")
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == received.received == set(range(len(sent.acknowledged)))
    assert (received.stored_twice, received.out_of_order) == (0, 0)


@REAL
def test_a_drained_node_moves_its_clients(
    release: Release, brokers: Brokers, tapped: Tapped, connect: Connect, say: Say
) -> None:
    """Pods are evicted one by one, as the budget says, each once another one is ready."""
    release.install()
    loads = [
        Load(connect(tapped(release.url, brokers.traces).url), fresh_topic()) for _ in range(3)
    ]
    release.kubectl("drain", "node-1", "--delete-emptydir-data", "--timeout=180s")
    try:
        release.await_rollout()
        ended = release.ended()
    finally:
        release.kubectl("uncordon", "node-1")
    time.sleep(1)
    _finish(loads, say)
    assert ended
    assert not any(it.was_killed for it in ended)
    assert release.ends() <= {"client_closed", "broker_closed", "drained"}


@REAL
def test_a_gateway_that_dies_loses_nothing_and_is_started_again(
    release: Release, brokers: Brokers, tapped: Tapped, connect: Connect, say: Say
) -> None:
    """Producers send again what has no receipt, as after the death of a broker. Brokers that look
    for repeats, which is their setting, store none twice."""
    release.install()
    assert isinstance(brokers, Pulsar)
    admin, once = brokers.standalone.admin, "public/once"
    admin.create_namespace(once)
    admin.drop_repeats(once)
    url = tapped(release.url, brokers.traces).url
    loads = [Load(connect(url), fresh_topic(namespace=once)) for _ in range(3)]
    time.sleep(1)
    died = [it.containers[0] for it in release.pods[:2]]
    for container in died:
        os.kill(container.process_id, signal.SIGKILL)
    wait_until(lambda: all(it.restarts == 1 and it.is_ready for it in died))
    time.sleep(3)
    _finish(loads, say)
    assert [it.restarts for it in died] == [1, 1]
    release.await_rollout()


@pytest.fixture
def former(cluster: Cluster, tmp_path: Path) -> Path:
    """The gateway and the chart of a former version, and its image under the tag `former`."""
    archive = subprocess.run(
        ["git", "archive", FORMER, "gateway", "helm"],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        pytest.skip(f"the history of this checkout does not reach back to {FORMER}")
    folder = tmp_path / "former"
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    cluster.kubelet.images[f"{NAME}:former"] = gateway(folder)
    return folder


@REAL
def test_a_former_version_is_upgraded_to_this_one_and_another_configuration(
    former: Path, release: Release, brokers: Brokers, tapped: Tapped, connect: Connect, say: Say
) -> None:
    release.install(former / "helm" / NAME, image={"tag": "former"})
    loads = [
        Load(connect(tapped(release.url, brokers.traces).url), fresh_topic()) for _ in range(3)
    ]
    release.install(config={"limits": {"connections": 500}, "deadlines": {"grace": "20s"}})
    assert len(release.ended()) == 3
    time.sleep(1)
    _finish(loads, say)
    assert release.ends() <= {"client_closed", "broker_closed", "drained"}


@REAL
def test_rules_and_certificates_change_without_a_restart(release: Release, tmp_path: Path) -> None:
    listener = {"name": "shared", "bind": f":{PORT}", "cluster": "main"}
    certificate = {"certificate_file": "secrets/tls/tls.crt", "key_file": "secrets/tls/tls.key"}
    listeners = [{**listener, "tls": {"certificates": [certificate]}}]
    config = {"listeners": listeners, "limits": {"connections": 1000, "buffered": "128MiB"}}
    rule = {"id": "tenants", "limit": {"publish": {"messages": "5000/s"}}, "per": "tenant"}

    def apply(certificate: bytes, key: bytes) -> None:
        (tmp_path / "tls.crt").write_bytes(certificate)
        (tmp_path / "tls.key").write_bytes(key)
        names = [
            f"--{name}={tmp_path}/tls.{end}" for name, end in (("cert", "crt"), ("key", "key"))
        ]
        made = release.kubectl(
            "create", "secret", "tls", "tls", *names, "--dry-run=client", "-oyaml"
        )
        (tmp_path / "secret.yaml").write_text(made)
        release.kubectl("apply", "-f", f"{tmp_path}/secret.yaml")

    def install(rate: str) -> None:
        limited = {**rule, "limit": {"publish": {"messages": rate}}}
        rules = {"tenants.yaml": {"version": 1, "rules": [limited]}}
        release.install(config=config, rules=rules, tls={"secretName": "tls"})

    old, new = (self_signed("gateway.example") for _ in range(2))
    apply(old.certificate, old.key)
    install("5000/s")
    pods = release.pods
    install("4000/s")
    wait_until(lambda: [it["changed"] for it in release.events("rules_loaded")].count(1) == 3)
    apply(new.certificate, new.key)
    expected = ssl.PEM_cert_to_DER_cert(new.certificate.decode())
    wait_until(lambda: all(_certificate(it) == expected for it in pods))
    assert release.pods == pods
    assert [found.restarts for it in pods for found in it.containers] == [0, 0, 0]


def _certificate(pod: Pod) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((pod.host, PORT)))
