"""What Helm makes of the chart: it is as was read, Kubernetes and the gateway accept it, and its
objects fit each other."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.app import check
from tests.helm.custom import KINDS
from tests.helm.rendering import (
    CHART,
    FILES,
    GOLDEN,
    MINORS,
    Document,
    documents,
    golden,
    helm,
    of_kind,
    rendered,
    rendered_parent,
    rendered_with,
)
from tests.support.named_files import contents, named

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")

NAMES = [*(file.name for file in FILES), "parent.yaml"]
CONTAINERS = ("gateway", "broker-gateway")
"""What the gateway's container is called, in a pod of its own and in those of others."""

DEPLOYED = [name for name in NAMES if name not in ("parent.yaml", "sidecar.yaml")]


@cache
def _rendered(name: str, minor: str = MINORS[0]) -> str:
    if name == "parent.yaml":
        return rendered_parent(minor)
    return rendered(CHART.parents[1] / "tests" / "helm" / "values" / name, minor)


def _one(name: str, kind: str) -> Document:
    (found,) = of_kind(_rendered(name), kind)
    return found


def _pods(name: str) -> list[Document]:
    """The specs of all pods that run the gateway."""
    owners = [*of_kind(_rendered(name), "Deployment"), *of_kind(_rendered(name), "Job")]
    return [it["spec"]["template"]["spec"] for it in owners]


def _gateway(pod: Document) -> Document:
    containers = [*pod["containers"], *pod.get("initContainers", ())]
    found: list[Document] = [it for it in containers if it["name"] in CONTAINERS]
    assert len(found) == 1
    return found[0]


# -- renderings ------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda it: it.name)
def test_lint_finds_nothing(file: Path) -> None:
    helm("lint", "--strict", CHART, "--values", file, "--kube-version", f"{MINORS[0]}.0")


@pytest.mark.parametrize("name", NAMES)
def test_a_rendering_is_as_it_was_read(name: str) -> None:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    assert golden(_rendered(name)) == text, "python -m tests.helm.rendering"


def test_each_golden_file_has_its_values() -> None:
    assert sorted(it.name for it in GOLDEN.glob("*")) == sorted(NAMES)


@cache
def _mistake(minor: str, text: str) -> str:
    """What is wrong with an object, given as JSON; empty: nothing."""
    validating = pytest.importorskip("kubernetes_validate", reason="it is not installed")
    jsonschema = pytest.importorskip("jsonschema", reason="kubernetes-validate brings it along")
    found = json.loads(text)
    own = KINDS.get((found["apiVersion"], found["kind"]))
    try:
        if own is not None:
            jsonschema.Draft7Validator(own).validate(found)
        else:
            validating.validate(found, minor, strict=True)
    except jsonschema.ValidationError as error:
        return f"{found['kind']}: {error.message}"
    return ""


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_accepts_every_object(name: str, minor: str) -> None:
    texts = [json.dumps(it, sort_keys=True) for it in documents(_rendered(name, minor))]
    assert texts
    assert [found for found in (_mistake(minor, text) for text in texts) if found] == []


def test_what_kubernetes_does_not_know_is_found() -> None:
    found = _one("default.yaml", "Deployment")
    found["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"] = {"rest": 1}
    assert "rest" in _mistake(MINORS[0], json.dumps(found))
    monitor = _one("monitoring-service.yaml", "ServiceMonitor")
    monitor["spec"]["endpoint"] = []
    assert "endpoint" in _mistake(MINORS[0], json.dumps(monitor))


# -- the gateway's own files -----------------------------------------------------------------


@pytest.fixture(scope="module")
def held() -> Mapping[str, bytes]:
    return contents()


def _maps(name: str) -> Iterator[Mapping[str, str]]:
    """The data of the gateway's ConfigMaps: the configuration, and the rules."""
    for found in of_kind(_rendered(name), "ConfigMap"):
        if not found["metadata"]["name"].endswith("-dashboard"):
            yield found["data"]


def _configuration(name: str) -> dict[str, Any]:
    (text,) = (it["gateway.yaml"] for it in _maps(name) if "gateway.yaml" in it)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def _rules(name: str) -> dict[str, str]:
    return {
        file: text for it in _maps(name) if "gateway.yaml" not in it for file, text in it.items()
    }


@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize("name", NAMES)
def test_the_gateway_accepts_its_configuration(
    name: str, held: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAMESPACE", "messaging")
    for variable in (it for pod in _pods(name) for it in _gateway(pod)["env"] if "value" in it):
        monkeypatch.setenv(variable["name"], variable["value"])
    files = dict(named(_configuration(name), held))
    files |= {f"rules/{file}": text.encode() for file, text in _rules(name).items()}
    for path, content in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (text,) = (it["gateway.yaml"] for it in _maps(name) if "gateway.yaml" in it)
    configuration = tmp_path / "gateway.yaml"
    configuration.write_text(text.replace("/var/lib/broker-gateway", str(tmp_path)))
    assert check(configuration).startswith(f"{configuration}: ok")


@pytest.mark.parametrize("name", [*DEPLOYED, "parent.yaml"])
def test_every_file_that_the_configuration_names_is_mounted(
    name: str, held: Mapping[str, bytes]
) -> None:
    for pod in _pods(name):
        volumes = {it["name"]: it for it in pod["volumes"]}
        mounts = {it["mountPath"]: it for it in _gateway(pod)["volumeMounts"]}
        for path, _ in named(_configuration(name), held):
            folder, _, key = f"/etc/broker-gateway/{path}".rpartition("/")
            secret = volumes[mounts[folder]["name"]]["secret"]
            assert "subPath" not in mounts[folder]
            assert key in [it["path"] for it in secret.get("items", [{"path": key}])]
        rules = mounts.get("/etc/broker-gateway/rules", {})
        assert bool(rules) == bool(_rules(name))
        assert "subPath" not in rules


@pytest.mark.parametrize("name", [*DEPLOYED, "parent.yaml"])
def test_secrets_are_mounted_in_the_gateway_alone(name: str) -> None:
    for pod in _pods(name):
        secrets = {it["name"] for it in pod["volumes"] if "secret" in it}
        others = [it for it in pod["containers"] if it != _gateway(pod)]
        mounted = {mount["name"] for it in others for mount in it.get("volumeMounts", ())}
        assert secrets
        assert not secrets & mounted


# -- objects that fit each other -------------------------------------------------------------


def _fits(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("name", DEPLOYED)
def test_selectors_are_for_the_gateways_pods_alone(name: str) -> None:
    spec = _one(name, "Deployment")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    tested = _one(name, "Pod")["metadata"]["labels"]
    selectors = [it["spec"]["selector"] for it in of_kind(_rendered(name), "Service")]
    selectors += [spec["selector"]["matchLabels"]]
    spread = spec["template"]["spec"].get("topologySpreadConstraints", ())
    selectors += [it["labelSelector"]["matchLabels"] for it in spread]
    for kind, field in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        selectors += [it["spec"][field]["matchLabels"] for it in of_kind(_rendered(name), kind)]
    assert all(_fits(it, labels) and not _fits(it, tested) for it in selectors)


@pytest.mark.parametrize("name", DEPLOYED)
def test_ports_of_services_probes_and_policies_exist(name: str) -> None:
    (pod,) = _pods(name)
    container = _gateway(pod)
    ports = {it["name"] for it in container["ports"]}
    services = of_kind(_rendered(name), "Service")
    used = {it["targetPort"] for service in services for it in service["spec"]["ports"]}
    used |= {container[f"{it}Probe"]["httpGet"]["port"] for it in ("startup", "liveness")}
    used |= {container["readinessProbe"]["httpGet"]["port"]}
    for policy in of_kind(_rendered(name), "NetworkPolicy"):
        used |= {it["port"] for rule in policy["spec"]["ingress"] for it in rule["ports"]}
    assert used == ports
    assert all(len(it) <= 15 for it in ports), "Kubernetes wants short names"


def test_listeners_on_loopback_have_no_port() -> None:
    (pod,) = _pods("shaper-tls.yaml")
    assert {it["containerPort"] for it in _gateway(pod)["ports"]} == {6650, 6651, 16650, 8080}


def test_rules_change_without_a_roll_and_the_configuration_with_one(tmp_path: Path) -> None:
    def template(rate: str, connections: int) -> Document:
        rule = {"id": "all", "limit": {"publish": {"messages": rate}}}
        values = {
            "config": {"limits": {"connections": connections}},
            "rules": {"all.yaml": {"version": 1, "rules": [rule]}},
        }
        (found,) = of_kind(rendered_with(values, tmp_path), "Deployment")
        template: Document = found["spec"]["template"]
        return template

    first = template("1/s", 100)
    assert template("2/s", 100) == first
    assert template("1/s", 200) != first


@pytest.mark.parametrize("minor", ["1.33"])
def test_the_test_pod_ends_well_only_if_the_gateway_is_ready(minor: str) -> None:
    *command, url, _ = _one("default.yaml", "Pod")["spec"]["containers"][0]["command"]
    services = {it["metadata"]["name"]: it for it in of_kind(_rendered("default.yaml"), "Service")}
    host, port = re.fullmatch(r"http://(.*):(\d+)/readyz", url).groups()  # type: ignore[union-attr]
    assert services[host]["spec"]["ports"][0]["port"] == int(port)
    for status, expected in ((200, 0), (503, 1)):
        with _answering(status) as address:
            asked = [sys.executable, *command[1:], f"{address}/readyz", "1"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr


class _answering:  # noqa: N801 - reads as a verb
    """A server on loopback that answers everything with one status."""

    def __init__(self, status: int) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
