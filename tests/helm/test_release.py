"""Releases that are installed, upgraded and removed: seal keys are made once, kept, and changed
without a moment in which gateways cannot open each other's names."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from gateway.brokers.seal import SealKey
from tests.helm.cluster import Cluster
from tests.helm.rendering import CHART, NAMESPACE, helm

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/test-broker-gateway-seal"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/test-broker-gateway"
CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/test-broker-gateway"

Run = Callable[..., str]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        yield found


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command of Helm about the release `test`."""
    monkeypatch.setenv("HELM_KUBEAPISERVER", cluster.url)
    monkeypatch.setenv("HELM_NAMESPACE", NAMESPACE)

    def command(name: str, *arguments: str) -> str:
        if name == "uninstall":
            return helm(name, "test")
        return helm(name, "test", CHART, "--disable-openapi-validation", *arguments)

    return command


def _keys(cluster: Cluster) -> Mapping[str, str]:
    found: dict[str, str] = cluster.objects[SECRET]["data"]
    return found


def _gateway(cluster: Cluster) -> list[SealKey]:
    """The keys of a gateway that starts now, in its order."""
    text = cluster.objects[CONFIGURATION]["data"]["gateway.yaml"]
    names: dict[str, Any] = yaml.safe_load(text)["clusters"]["main"]["names"]
    files = [it["file"].rpartition("/")[2] for it in names["sealed"]["keys"]]
    return [SealKey(base64.b64decode(_keys(cluster)[it])) for it in files]


def _opens(one: list[SealKey], other: list[SealKey]) -> bool:
    """Whether a gateway opens the names that another one makes."""
    sealed = other[0].seal(b"broker-0.internal:6650")
    return any(key.open(sealed) for key in one)


def test_a_seal_key_is_random_and_long_enough(run: Run, cluster: Cluster) -> None:
    run("install")
    (key,) = _keys(cluster).values()
    assert len(base64.b64decode(key)) == 32
    run("uninstall")
    del cluster.objects[SECRET]
    run("install")
    assert _keys(cluster)["seal-1.key"] != key


def test_a_seal_key_is_kept_when_the_release_is_upgraded(run: Run, cluster: Cluster) -> None:
    run("install")
    before = dict(_keys(cluster))
    run("upgrade", "--set", "replicas=4")
    assert _keys(cluster) == before


def test_a_seal_key_outlives_the_release_and_comes_back(run: Run, cluster: Cluster) -> None:
    run("install")
    before = dict(_keys(cluster))
    run("uninstall")
    assert CONFIGURATION not in cluster.objects
    run("install")
    assert _keys(cluster) == before


def test_seal_keys_change_in_three_rounds_without_a_name_that_is_lost(
    run: Run, cluster: Cluster
) -> None:
    run("install")
    old = _gateway(cluster)
    first = old
    for names in ("{seal-1.key,seal-2.key}", "{seal-2.key,seal-1.key}", "{seal-2.key}"):
        run("upgrade", "--set", f"sealKeys.names={names}")
        new = _gateway(cluster)
        assert _opens(old, new)
        assert _opens(new, old)
        old = new
    assert not _opens(old, first)


def test_a_seal_key_that_is_out_of_use_can_be_deleted(run: Run, cluster: Cluster) -> None:
    run("install")
    run("upgrade", "--set", "sealKeys.names={seal-2.key}")
    assert sorted(_keys(cluster)) == ["seal-1.key", "seal-2.key"]
    del cluster.objects[SECRET]["data"]["seal-1.key"]
    run("upgrade", "--set", "sealKeys.names={seal-2.key}")
    assert sorted(_keys(cluster)) == ["seal-2.key"]


def test_an_upgrade_leaves_as_many_pods_as_the_load_asks_for(run: Run, cluster: Cluster) -> None:
    run("install")
    spec = cluster.objects[DEPLOYMENT]["spec"]
    assert spec["replicas"] == 3
    for pods in (3, 7):
        cluster.objects[DEPLOYMENT]["spec"]["replicas"] = pods
        run("upgrade", "--set", "autoscaling.enabled=true")
        assert cluster.objects[DEPLOYMENT]["spec"]["replicas"] == pods


def test_the_notes_say_where_clients_connect_and_what_is_unsafe(run: Run) -> None:
    notes = run("install")
    assert "pulsar://test-broker-gateway.messaging.svc:6650" in notes
    assert "kubectl --namespace messaging logs deployment/test-broker-gateway" in notes
    assert "has no TLS" not in notes
    outside = run("upgrade", "--set", "service.type=LoadBalancer")
    assert "Listener shared has no TLS and is reached from outside" in outside
    assert "kubectl --namespace messaging get service test-broker-gateway" in outside


def test_the_notes_of_a_sidecar_name_its_config_map(run: Run, cluster: Cluster) -> None:
    notes = run("install", "--set", "mode=sidecar")
    assert "The ConfigMap test-broker-gateway is for the sidecar of pods" in notes
    kinds = {it["kind"] for it in cluster.objects.values()} - {"Secret"}
    assert kinds == {"ConfigMap"}
