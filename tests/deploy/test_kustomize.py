"""The manifests are what Kubernetes takes, and fit the gateway that they run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.admin.routes import METRICS, routes
from gateway.app import check
from gateway.config.load import load
from gateway.config.model import ResourceLimits
from tests.deploy.rendering import (
    DEPLOY,
    KUBERNETES,
    ROOT,
    VERSION,
    Manifest,
    Mounted,
    all_containers,
    containers,
    gateway_of,
    mounted,
    of_kind,
    only,
    rendered,
    template,
)
from tests.support.certificates import self_signed

BASE = KUBERNETES / "base"
EDGE, SHAPER, SIDECAR = (KUBERNETES / "overlays" / name for name in ("edge", "shaper", "sidecar"))
INJECTION = KUBERNETES / "injection"
PIPELINE = DEPLOY / "pipeline"
CHART = ROOT / "helm" / "broker-gateway"

MEMORY: Mapping[str, Mapping[str, float]] = yaml.safe_load(
    (CHART / "files" / "memory.yaml").read_text()
)
"""What a process takes at most, by what takes it, without and with TLS."""

SERVERS = [BASE, EDGE, SHAPER]
"""Folders whose pods serve others."""

WITH_GATEWAY = [*SERVERS, SIDECAR]

MINORS = ["1.33", "1.34", "1.35", "1.36"]

INJECTION_MINORS = ["1.36"]
"""MutatingAdmissionPolicy is stable from here on."""

SHIPPING_S = 5
"""Seconds that the last usage records may take to their topic after the drain (docs/usage.md)."""

USER = 10001


def _named(folder: Path) -> str:
    return folder.relative_to(DEPLOY).as_posix()


@pytest.fixture(scope="module")
def secrets() -> Mapping[str, Mapping[str, bytes]]:
    """What the reader makes: all secrets of all overlays, by name and key."""
    pair, key = self_signed("gateway.example"), generate_private_key(65537, 2048).public_key()
    token = b"a.token.here\n"
    return {
        "broker-gateway-seal": {"seal.key": os.urandom(32)},
        "broker-gateway-tls": {"tls.crt": pair.certificate, "tls.key": pair.key},
        "broker-gateway-issuer": {
            "issuer.pem": key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        },
        "broker-gateway-credential": {"token": token},
        "broker-gateway-sidecar": {"token": token},
        "broker-gateway-store": {"password": b"secret\n"},
    }


def _pod(folder: Path) -> Manifest:
    spec: Manifest = template(only(rendered(folder), "Deployment"))["spec"]
    return spec


def _layout(folder: Path, secrets: Mapping[str, Mapping[str, bytes]], place: Path) -> Mounted:
    return mounted(rendered(folder), _pod(folder), secrets, place)


@pytest.mark.parametrize(
    ("folder", "minor"),
    [
        *((it, minor) for it in (*WITH_GATEWAY, PIPELINE) for minor in MINORS),
        *((INJECTION, minor) for minor in INJECTION_MINORS),
    ],
    ids=lambda it: _named(it) if isinstance(it, Path) else it,
)
def test_kubernetes_takes_each_manifest(folder: Path, minor: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    for manifest in rendered(folder):
        validate.validate(manifest, minor, strict=True)


@pytest.mark.parametrize("minor", MINORS)
def test_kubernetes_takes_what_a_driver_of_spark_needs(minor: str) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    for manifest in yaml.safe_load_all((PIPELINE / "spark" / "rbac.yaml").read_text()):
        validate.validate(manifest, minor, strict=True)


@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_the_gateway_finds_its_configuration_right(
    folder: Path, secrets: Mapping[str, Mapping[str, bytes]], tmp_path: Path
) -> None:
    made = _layout(folder, secrets, tmp_path)
    assert check(made.configuration).startswith(f"{made.configuration}: ok")


@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_the_gateway_listens_where_probes_and_services_look(
    folder: Path, secrets: Mapping[str, Mapping[str, bytes]], tmp_path: Path
) -> None:
    found = load(_layout(folder, secrets, tmp_path).configuration)
    container = gateway_of(_pod(folder))
    ports = {it["name"]: it["containerPort"] for it in container["ports"]}
    assert found.admin is not None
    served = {bind.port for listener in found.listeners for bind in listener.bind}
    probes = {
        ports.get(it["port"], it["port"])
        for name, probe in container.items()
        if name.endswith("Probe")
        for it in [probe["httpGet"]]
    }
    assert probes == {found.admin.bind.port}
    assert found.admin.bind.host == ""
    if folder == SIDECAR:
        assert [it.host for listener in found.listeners for it in listener.bind] == ["127.0.0.1"]
        return
    assert set(ports.values()) == {*served, found.admin.bind.port}
    service = only(rendered(folder), "Service")["spec"]
    assert {ports[it["targetPort"]] for it in service["ports"]} == served
    assert service["selector"].items() <= _labels(folder).items()


@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_probes_and_prometheus_ask_for_what_is_there(folder: Path) -> None:
    container = gateway_of(_pod(folder))
    asked = {
        name.removesuffix("Probe"): probe["httpGet"]["path"]
        for name, probe in container.items()
        if name.endswith("Probe")
    }
    known = routes({METRICS: tuple}, lambda: True, tuple)
    assert set(asked.values()) <= set(known)
    assert asked.pop("readiness", "/readyz") == "/readyz"
    assert asked == {"startup": "/startupz", "liveness": "/livez"}
    about = template(only(rendered(folder), "Deployment"))["metadata"].get("annotations", {})
    assert about.get("prometheus.io/path", METRICS) in known


def _labels(folder: Path) -> Mapping[str, str]:
    found: Mapping[str, str] = template(only(rendered(folder), "Deployment"))["metadata"]["labels"]
    return found


@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_draining_ends_before_kubernetes_kills(
    folder: Path, secrets: Mapping[str, Mapping[str, bytes]], tmp_path: Path
) -> None:
    found = load(_layout(folder, secrets, tmp_path).configuration)
    pod = _pod(folder)
    before = gateway_of(pod).get("lifecycle", {}).get("preStop", {"sleep": {"seconds": 0}})
    last = before["sleep"]["seconds"] + found.deadlines.grace
    assert last + SHIPPING_S < pod.get("terminationGracePeriodSeconds", 30)


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
def test_balancers_have_seconds_to_hear_that_a_pod_ends(folder: Path) -> None:
    before = gateway_of(_pod(folder))["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert 5 <= before <= 15


@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_memory_is_more_than_what_the_configuration_allows(
    folder: Path, secrets: Mapping[str, Mapping[str, bytes]], tmp_path: Path
) -> None:
    found = load(_layout(folder, secrets, tmp_path).configuration)
    doors = ["tls" if listener.tls else "plain" for listener in found.listeners]
    resources = gateway_of(_pod(folder))["resources"]
    _is_enough(resources, _most(found.limits, doors, "many_rules" if found.rules else ""))


@pytest.mark.parametrize("mode", ["edge", "shaper", "sidecar"])
def test_memory_of_the_chart_is_more_than_what_its_mode_allows(mode: str) -> None:
    found = yaml.safe_load((CHART / "modes" / f"{mode}.yaml").read_text())
    limits = ResourceLimits.model_validate(found["config"]["limits"])
    doors = ["tls" if "tls" in listener else "plain" for listener in found["config"]["listeners"]]
    rules = "few_rules" if mode == "sidecar" else "many_rules"
    _is_enough(found["resources"], _most(limits, doors, rules))


def _most(limits: ResourceLimits, doors: Sequence[str], rules: str) -> float:
    """Return the bytes that a process takes at most. `doors`: "tls" or "plain", by listener."""
    each = {name: row["tls" if "tls" in doors else "plain"] for name, row in MEMORY.items()}
    idle = sum(MEMORY["connection"][door] for door in doors) * limits.connections
    bounded = each["buffered"] * limits.buffered + each["remembered"] * limits.all_remembered
    return (each["process"] + each.get(rules, 0)) * 2**20 + idle * 2**10 + bounded


def _is_enough(resources: Mapping[str, Mapping[str, str]], most: float) -> None:
    """Claim that a container has this memory, and is never throttled."""
    limit = resources["limits"]["memory"]
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", limit).groups()  # type: ignore[union-attr]
    assert int(number) << (30 if unit == "Gi" else 20) > most
    assert resources["requests"]["memory"] == limit
    assert "cpu" not in resources["limits"]
    assert "cpu" in resources["requests"]


def test_the_page_shows_what_a_process_takes() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    part = page.partition("\n## What pods should ask for\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|[^|]*\| ([\d.]+) \| ([\d.]+) \|$", part, re.MULTILINE)
    shown = [(float(plain), float(tls)) for plain, tls in rows]
    assert shown == [(row["plain"], row["tls"]) for row in MEMORY.values()]


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
def test_a_roll_takes_no_pod_away_before_another_serves(folder: Path) -> None:
    spec = only(rendered(folder), "Deployment")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert (
        spec["replicas"] > only(rendered(folder), "PodDisruptionBudget")["spec"]["maxUnavailable"]
    )
    assert spec["selector"]["matchLabels"].items() <= _labels(folder).items()


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
def test_pods_spread_over_zones_and_nodes(folder: Path) -> None:
    spread = _pod(folder)["topologySpreadConstraints"]
    keys = [it["topologyKey"] for it in spread]
    assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    for it in spread:
        assert it["matchLabelKeys"] == ["pod-template-hash"]
        assert it["labelSelector"]["matchLabels"].items() <= _labels(folder).items()


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
def test_what_is_for_the_pods_selects_them(folder: Path, kind: str) -> None:
    spec = only(rendered(folder), kind)["spec"]
    selector = spec.get("selector") or spec["podSelector"]
    assert selector["matchLabels"].items() <= _labels(folder).items()


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
def test_the_network_policy_names_ports_that_exist(folder: Path) -> None:
    policy = only(rendered(folder), "NetworkPolicy")["spec"]
    names = {it["name"] for it in gateway_of(_pod(folder))["ports"]}
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == names
    open_to_all = [rule for rule in policy["ingress"] if "from" not in rule]
    assert [it["ports"][0]["port"] for it in open_to_all] == (
        ["pulsar-ssl"] if folder == EDGE else []
    )


@pytest.mark.parametrize("folder", [*WITH_GATEWAY, PIPELINE], ids=_named)
def test_ours_run_without_rights(folder: Path) -> None:
    """As the restricted profile of the Pod Security Standards wants it, and more."""
    ours = [it for it in all_containers(rendered(folder)) if "broker-gateway" in it[1]["image"]]
    assert ours
    for pod, container in ours:
        context = {**pod.get("securityContext", {}), **container["securityContext"]}
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] == context["runAsGroup"] == USER
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize("folder", [*WITH_GATEWAY, PIPELINE], ids=_named)
def test_images_and_labels_have_the_version_of_the_package(folder: Path) -> None:
    manifests = rendered(folder)
    ours = [it["image"] for _, it in all_containers(manifests) if "broker-gateway" in it["image"]]
    assert {it.rpartition(":")[2] for it in ours} == {VERSION}
    labels = [it["metadata"].get("labels", {}) for it in manifests if folder != SIDECAR]
    assert all(it["app.kubernetes.io/version"] == VERSION for it in labels)


@pytest.mark.parametrize("folder", SERVERS, ids=_named)
def test_a_changed_configuration_rolls_pods_and_changed_rules_do_not(folder: Path) -> None:
    names = {it["metadata"]["name"] for it in of_kind(rendered(folder), "ConfigMap")}
    rules, configuration = sorted(names, key=lambda it: "config" in it)
    assert rules == "broker-gateway-rules"
    assert re.fullmatch("broker-gateway-config-[a-z0-9]{10}", configuration)
    mounts = {it["mountPath"]: it for it in gateway_of(_pod(folder))["volumeMounts"]}
    assert "subPath" not in mounts["/etc/broker-gateway/rules"]


@pytest.mark.parametrize("folder", WITH_GATEWAY, ids=_named)
def test_the_page_names_each_secret_that_pods_wait_for(
    folder: Path, secrets: Mapping[str, Mapping[str, bytes]]
) -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    named = [it["secret"]["secretName"] for it in _pod(folder)["volumes"] if "secret" in it]
    assert named
    for name in named:
        assert f"`{name}`" in page
        assert all(f"`{key}`" in page for key in secrets[name])


# -- the sidecar -------------------------------------------------------------------------------


def test_a_sidecar_starts_before_all_other_containers_and_ends_after_them() -> None:
    first, *others = _pod(SIDECAR)["initContainers"]
    assert first == gateway_of(_pod(SIDECAR))
    assert first["restartPolicy"] == "Always"
    assert first["startupProbe"]["httpGet"]["path"] == "/startupz"
    assert [it["name"] for it in others] == ["topics"]


def test_the_sidecar_alone_has_the_credential() -> None:
    pod = _pod(SIDECAR)
    (volume,) = (it["name"] for it in pod["volumes"] if "secret" in it)
    having = [
        container["name"]
        for container in containers(pod)
        if volume in {it["name"] for it in container.get("volumeMounts", ())}
    ]
    assert having == ["broker-gateway"]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Job"])
def test_the_component_adds_a_sidecar_to_other_kinds_too(kind: str, tmp_path: Path) -> None:
    chosen, left = (_workload(kind, name, labels) for name, labels in _TWO)
    component = os.path.relpath(KUBERNETES / "components" / "sidecar", tmp_path)
    kustomization = {"resources": ["workloads.yaml"], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (tmp_path / "workloads.yaml").write_text(yaml.safe_dump_all([chosen, left]))
    found = {it["metadata"]["name"]: it for it in rendered(tmp_path)}
    assert gateway_of(template(found["chosen"])["spec"])["name"] == "broker-gateway"
    assert found["left"] == left


_TWO = (("chosen", {"broker-gateway/inject": "true"}), ("left", {"broker-gateway/inject": "no"}))


def _workload(kind: str, name: str, labels: Mapping[str, str]) -> Manifest:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    pod = {"containers": [{"name": "main", "image": "main:1"}]}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"template": {"spec": pod}},
    }
