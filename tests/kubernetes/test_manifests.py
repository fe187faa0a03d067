"""A real API server takes what deploy/ and the chart make, under the profile `restricted`; and an
overlay of one's own, and a Job with a sidecar, run in it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.deploy.rendering import DEPLOY, KUBERNETES, Manifest, rendered
from tests.helm.rendering import documents, renderings
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.images import Image
from tests.real.brokers.ports import free_ports
from tests.real.brokers.tokens import Authority
from tests.real.clients import assert_works, fresh_topic, wait_until
from tests.real.fixtures import Connect
from tests.support.sandbox import Sandbox

HOST = "127.0.0.1"
FOLDERS = [
    *(KUBERNETES / it for it in ("base", "overlays/edge", "overlays/shaper", "overlays/sidecar")),
    KUBERNETES / "injection",
    DEPLOY / "pipeline",
]

OTHERS = ("monitoring.coreos.com", "cert-manager.io", "sparkoperator.k8s.io")
"""Groups whose kinds a cluster has once their operators are installed."""


def _take(cluster: Cluster, namespace: str, manifests: Iterable[Manifest], folder: Path) -> None:
    """Have the server judge manifests, without storing them. Raises `CalledProcessError`."""
    own = [it for it in manifests if not it["apiVersion"].startswith(OTHERS)]
    for it in own:
        it["metadata"].pop("namespace", None)
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(own))
    options = ("--namespace", namespace, "--dry-run=server", "--warnings-as-errors")
    said = cluster.run("kubectl", "apply", "--filename", file, *options)
    assert said.count("(server dry run)") == len(own)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda it: it.relative_to(DEPLOY).as_posix())
def test_the_server_takes_each_manifest(
    cluster: Cluster, namespace: str, folder: Path, tmp_path: Path
) -> None:
    _take(cluster, namespace, rendered(folder), tmp_path)


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_the_server_takes_what_the_chart_makes_of_all_values(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    for _, text in renderings():
        _take(cluster, namespace, documents(text), tmp_path)


def _configuration(folder: Path, brokers: str, **changes: str) -> str:
    """Return a folder's gateway.yaml for these brokers."""
    settings = yaml.safe_load((folder / "config" / "gateway.yaml").read_text())
    settings["clusters"]["main"] |= {
        "brokers": brokers,
        "targets": {"networks": ["127.0.0.0/8"], "ports": [int(brokers.rpartition(":")[2])]},
    }
    settings["listeners"][0] |= changes
    text: str = yaml.safe_dump(settings)
    return text


def test_an_overlay_of_ones_own_rolls_by_its_configuration_alone(
    cluster: Cluster, namespace: str, sandbox: Sandbox, connect: Connect, tmp_path: Path
) -> None:
    base = os.path.relpath(KUBERNETES / "base", tmp_path)
    replaced = {"name": "broker-gateway-config", "behavior": "replace", "files": ["gateway.yaml"]}
    rules = {"name": "broker-gateway-rules", "behavior": "replace", "files": ["limits.yaml"]}
    overlay = {
        "namespace": namespace,
        "resources": [base],
        "configMapGenerator": [replaced, {**rules, "options": {"disableNameSuffixHash": True}}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    configuration = _configuration(KUBERNETES / "base", sandbox.service_url)
    (tmp_path / "gateway.yaml").write_text(configuration)
    (tmp_path / "seal.key").write_bytes(os.urandom(32))
    secret = ("secret", "generic", "broker-gateway-seal", f"--from-file={tmp_path}/seal.key")
    cluster.run("kubectl", "--namespace", namespace, "create", *secret)

    def applied(limit: str) -> list[str]:
        rule = {"id": "all", "limit": {"publish": {"messages": limit}}, "per": "tenant"}
        (tmp_path / "limits.yaml").write_text(yaml.safe_dump({"version": 1, "rules": [rule]}))
        cluster.run("kubectl", "apply", "--kustomize", tmp_path)
        status = ("rollout", "status", "deployment/broker-gateway", "--timeout=120s")
        cluster.run("kubectl", "--namespace", namespace, *status)
        return sorted(it.name for it in cluster.pods(namespace))

    first = applied("5000/s")
    assert applied("4000/s") == first
    address = cluster.address(namespace, "broker-gateway")
    assert_works(connect(f"pulsar://{address}:6650"), fresh_topic())
    (tmp_path / "gateway.yaml").write_text(configuration.replace("10000", "500"))
    assert not {*applied("4000/s")} & {*first}


SENDING = """
import sys, pulsar
client = pulsar.Client(sys.argv[1])
producer = client.create_producer(sys.argv[2])
for number in range(50):
    producer.send(b"%d" % number)
client.close()
"""


def test_a_job_with_an_injected_sidecar_sends_without_a_credential_and_completes(
    cluster: Cluster, namespace: str, sandbox_auth: Sandbox, authority: Authority, tmp_path: Path
) -> None:
    """The sidecar ends after the application, so that Kubernetes takes the Job for done."""
    (port,) = free_ports(HOST, 1)
    changes = {"bind": f"{HOST}:{port}"}  # pods have no loopback of their own here
    component = KUBERNETES / "components" / "sidecar"
    settings = _configuration(component, sandbox_auth.service_url, **changes)
    (tmp_path / "gateway.yaml").write_text(settings)
    (tmp_path / "token").write_text(authority.token("proxy"))
    cluster.kubelet.images["orders:1"] = Image({"orders": [sys.executable, "-c", SENDING]})
    cluster.run("kubectl", "apply", "--kustomize", KUBERNETES / "injection")
    make = ("kubectl", "--namespace", namespace, "create")
    name = "broker-gateway-sidecar"
    cluster.run(*make, "configmap", name, f"--from-file={tmp_path}/gateway.yaml")
    cluster.run(*make, "secret", "generic", name, f"--from-file={tmp_path}/token")
    cluster.run("kubectl", "label", "namespace", namespace, "broker-gateway/inject=true")
    (tmp_path / "job.yaml").write_text(_job(f"pulsar://{HOST}:{port}", fresh_topic()))
    wait_until(lambda: _is_injected(cluster, namespace, tmp_path / "job.yaml"))
    cluster.run(*make, "--filename", tmp_path / "job.yaml")
    status = ("wait", "--for=condition=complete", "job/orders", "--timeout=60s")
    cluster.run("kubectl", "--namespace", namespace, *status)
    (pod,) = [it for it in cluster.kubelet.pods if it.namespace == namespace]
    assert {it.name: it.exit_code for it in pod.containers} == {"broker-gateway": 0, "orders": 0}
    gateway = next(it for it in pod.containers if it.name == "broker-gateway")
    assert '"event": "stopped"' in gateway.log.read_text()
    cluster.run("kubectl", "delete", "--kustomize", KUBERNETES / "injection")


def _job(url: str, topic: str) -> str:
    may_nothing = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "orders",
        "image": "orders:1",
        "command": ["orders", url, topic],
        "securityContext": may_nothing,
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    template = {"metadata": {"labels": {"broker-gateway/inject": "true"}}, "spec": pod}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "orders"}}
    return yaml.safe_dump({**job, "spec": {"backoffLimit": 0, "template": template}})


def _is_injected(cluster: Cluster, namespace: str, job: Path) -> bool:
    """Whether the server, which watches its policies, has seen this one."""
    pod = {**yaml.safe_load(job.read_text())["spec"]["template"], "apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "orders"
    file = job.with_name("pod.yaml")
    file.write_text(yaml.safe_dump(pod))
    options = ("--namespace", namespace, "--dry-run=server", "--output=yaml")
    return "initContainers" in cluster.run("kubectl", "create", "--filename", file, *options)
