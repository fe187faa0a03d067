"""Pods behind a Service, as the chart has them, under load: a roll, more pods, fewer, and one that
dies. `tests.kubelet` runs the gateway as the rendered manifests say."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import Program
from tests.helm.rendering import documents, rendered_with
from tests.kubelet.manifests import Template, replicas, template
from tests.kubelet.pods import Deployment, Service
from tests.real.artifacts import Artifacts
from tests.real.clients import fresh_topic, wait_until
from tests.real.fixtures import Connect, Tapped

from .brokers import REAL, Brokers
from .rolled import INTERVAL_MS
from .test_drain import Load

pytestmark = [
    pytest.mark.real,
    pytest.mark.deploy,
    pytest.mark.gateway_only,
    pytest.mark.bound(300),
    pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed"),
]

SEAL = {"secrets/seal/seal-1.key": bytes(range(32))}
PORT = 6650


class Release:
    """The chart's shaper in front of brokers, as a Deployment behind a Service."""

    def __init__(self, brokers: Brokers, folder: Path, haproxy: str) -> None:
        self._brokers = brokers
        self._folder = folder
        self._service = Service(haproxy, folder, PORT)
        text = self._rendered()
        self.url = self._service.untapped_url
        self.pods = Deployment(
            self._service, folder / "pods", self._template(text), replicas(documents(text))
        )

    def upgrade(self, **config: Any) -> None:
        """Roll to another configuration."""
        self.pods.roll(self._template(self._rendered(**config)))

    def close(self) -> None:
        self.pods.close()
        self._service.close()

    def ends(self) -> set[str]:
        """Return the end reasons of all connections."""
        lines = (line for it in self.pods.all for line in it.log.read_text().splitlines())
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return {it["reason"] for it in events if it["event"] == "connection_ended"}

    def _rendered(self, **config: Any) -> str:
        hosts, _, port = self._brokers.service_url.rpartition("://")[2].rpartition(":")
        targets = {"networks": [f"{hosts}/32"], "ports": [int(port)]}
        listener = {"name": "shared", "bind": f":{PORT}", "cluster": "main"}
        values = {
            "config": {
                "listeners": [{**listener, "connection_age": "10s"}],
                "clusters": {"main": {"brokers": self._brokers.service_url, "targets": targets}},
                **config,
            },
            "networkPolicy": {"brokers": {"ports": [int(port)]}},
        }
        return rendered_with(values, self._folder)

    def _template(self, text: str) -> Template:
        return template(documents(text), SEAL)


@pytest.fixture
def release(brokers: Brokers, artifacts: Artifacts) -> Iterator[Release]:
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if haproxy is None:
        pytest.skip("HAProxy is not installed (Debian's package: haproxy)")
    folder = artifacts.directory("release")
    folder.mkdir(parents=True, exist_ok=True)
    made = Release(brokers, folder, haproxy)
    yield made
    made.close()


@REAL
def test_rolls_and_scaling_lose_and_double_nothing(
    release: Release, brokers: Brokers, tapped: Tapped, connect: Connect
) -> None:
    url = tapped(release.url, brokers.traces).url
    loads = [Load(connect(url), fresh_topic()) for _ in range(3)]
    first = release.pods.pods
    release.upgrade(limits={"connections": 500})
    assert not {*first} & {*release.pods.pods}
    release.pods.scale(5)
    young, count = release.pods.pods[3:], "gateway_connections_accepted_total"
    wait_until(lambda: all(it.metric(count) for it in young))
    release.pods.scale(2)
    ended = release.pods.wait_for_ends()
    time.sleep(1)
    for load in loads:
        load.finish()
        load.assert_exact()
        assert list(dict.fromkeys(load.received)) == list(range(load.sent))
    print(f"longest send {max(load.longest for load in loads):.3f} s")
    assert len(ended) == 6
    assert not any(it.killed for it in release.pods.all)
    assert release.ends() <= {"client_closed", "broker_closed", "drained"}


@REAL
def test_go_and_java_clients_outlive_a_roll(
    program: Program, release: Release, brokers: Brokers, tapped: Tapped, logs: Path
) -> None:
    topic, url = fresh_topic("r"), tapped(release.url, brokers.traces).url
    with (
        program.consuming(url, topic, "s", 0, logs / "consumer.log") as consumer,
        program.producing(
            url, topic, 0, logs / "producer.log", interval_ms=INTERVAL_MS, key=True
        ) as producer,
    ):
        consumer.await_ready()
        producer.await_ready()
        release.upgrade(limits={"connections": 500})
        release.pods.wait_for_ends()
        producer.tell_to_stop()
        sent = producer.sent()
        time.sleep(1)
        consumer.tell_to_stop()
        received = consumer.received()
    print(f"{len(sent.acknowledged)} sent, longest {sent.longest_send_ms / 1000:.3f} s")
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == received.received == set(range(len(sent.acknowledged)))
    assert (received.stored_twice, received.out_of_order) == (0, 0)


@REAL
def test_a_pod_that_dies_loses_nothing(
    release: Release, brokers: Brokers, tapped: Tapped, connect: Connect
) -> None:
    """Messages without a receipt are sent again, as after the death of a broker."""
    url = tapped(release.url, brokers.traces).url
    loads = [Load(connect(url), fresh_topic()) for _ in range(3)]
    time.sleep(1)
    for pod in release.pods.pods[:2]:
        pod.fail()
    wait_until(lambda: len(release.pods.pods) == 1)
    time.sleep(3)
    for load in loads:
        load.finish()
        assert load.failed == []
        assert sorted(load.acknowledged) == sorted(load.ids) == list(range(load.sent))
    print(f"longest send {max(load.longest for load in loads):.3f} s")
