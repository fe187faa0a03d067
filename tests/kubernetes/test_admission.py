"""The API server takes the policy of the sidecar, and adds what its evaluation by CEL adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
import yaml

from tests.deploy.policies import Policy
from tests.deploy.rendering import Manifest, gateway_of, only, rendered
from tests.deploy.test_injection import INJECTION, LABEL, OTHERS, OWN, PLAIN
from tests.kubernetes.cluster import Cluster
from tests.real.clients import wait_until

Admit = Callable[..., Manifest]


@pytest.fixture(scope="module")
def injecting(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the policy."""
    cluster.run("kubectl", "apply", "--kustomize", INJECTION)
    yield cluster
    cluster.run("kubectl", "delete", "--kustomize", INJECTION)


@pytest.fixture
def admit(injecting: Cluster, namespace: str, tmp_path: Path) -> Admit:
    """Return a pod as the server would store it, in a namespace with these labels. Raises
    `CalledProcessError`."""
    wait_until(lambda: _is_in_force(injecting, namespace, tmp_path))

    def admitted(pod: Manifest, labels: Mapping[str, str] = LABEL) -> Manifest:
        _labelled(injecting, namespace, labels)
        return _stored(injecting, namespace, pod, tmp_path)

    return admitted


def _labelled(cluster: Cluster, namespace: str, labels: Mapping[str, str]) -> None:
    """Give a namespace these labels for the policy, and no other."""
    path = f"/api/v1/namespaces/{namespace}"
    cluster.api.patch(path, {"metadata": {"labels": {**dict.fromkeys(LABEL), **labels}}})


def _stored(cluster: Cluster, namespace: str, pod: Manifest, folder: Path) -> Manifest:
    file = folder / "pod.yaml"
    file.write_text(yaml.safe_dump(_permitted(pod)))
    options = ("--namespace", namespace, "--dry-run=server", "--output=json")
    found: Manifest = json.loads(cluster.run("kubectl", "create", "--filename", file, *options))
    return found


def _permitted(pod: Manifest) -> Manifest:
    """Return a pod that looks after nothing but the policy: its own containers may do as little as
    the namespace demands."""
    found = deepcopy(pod)
    found["spec"]["automountServiceAccountToken"] = False
    found["spec"]["securityContext"] = {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for it in (*found["spec"].get("initContainers", ()), *found["spec"]["containers"]):
        may_nothing = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        it.setdefault("securityContext", may_nothing)
    return found


def _is_in_force(cluster: Cluster, namespace: str, folder: Path) -> bool:
    """Whether the server, which watches its policies, has seen this one."""
    _labelled(cluster, namespace, LABEL)
    with suppress(CalledProcessError):
        return "initContainers" in _stored(cluster, namespace, PLAIN, folder)["spec"]
    return False


def _has(found: Any, wanted: Any) -> bool:
    """Whether an object has all that another one has. The server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_has(found.get(it), wanted[it]) for it in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_has, found, wanted))
    return bool(found == wanted)


@pytest.mark.parametrize("pod", [PLAIN, OWN], ids=["plain", "own"])
def test_the_server_adds_what_the_expressions_say(admit: Admit, pod: Manifest) -> None:
    manifests = rendered(INJECTION)
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    policy = Policy(*(only(manifests, kind) for kind in kinds))
    found = admit(pod)
    assert _has(found["spec"], policy.mutated(_permitted(pod), LABEL)["spec"])
    assert gateway_of(found["spec"])["restartPolicy"] == "Always"


FORBIDDEN = "the host's network"
"""The profile of the namespace refuses it."""


@pytest.mark.parametrize(
    ("pod", "labels"), [OTHERS[it] for it in OTHERS if it != FORBIDDEN],
    ids=[it for it in OTHERS if it != FORBIDDEN],
)  # fmt: skip
def test_the_server_leaves_other_pods_as_they_are(
    admit: Admit, pod: Manifest, labels: dict[str, str]
) -> None:
    assert _has(admit(pod, labels)["spec"], _permitted(pod)["spec"])


def test_the_server_takes_what_it_has_changed_as_it_is(admit: Admit) -> None:
    once = admit(OWN)
    assert _has(admit(once)["spec"]["initContainers"], once["spec"]["initContainers"])


def _refused(injecting: Cluster, namespace: str, folder: Path, mutation: Manifest) -> str:
    """Return with what words a policy is refused, or a pod for it."""
    manifests = [
        only(rendered(INJECTION), kind)
        for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    ]
    for it in deepcopy(manifests):
        it["metadata"]["name"] = "wrong"
        if it["kind"] == "MutatingAdmissionPolicy":
            it["spec"]["mutations"] = [mutation]
        else:
            it["spec"]["policyName"] = "wrong"
        (folder / f"{it['kind']}.yaml").write_text(yaml.safe_dump(it))
    _labelled(injecting, namespace, LABEL)
    said: list[str] = []

    def is_refused() -> bool:
        with suppress(CalledProcessError):
            _stored(injecting, namespace, PLAIN, folder)
            return False
        return True

    try:
        injecting.run("kubectl", "delete", "--kustomize", INJECTION)
        for it in manifests:
            injecting.run("kubectl", "create", "--filename", folder / f"{it['kind']}.yaml")
        wait_until(is_refused)
        _stored(injecting, namespace, PLAIN, folder)
    except CalledProcessError as error:
        said += error.__notes__
    finally:
        for it in manifests:
            command = ["kubectl", "delete", it["kind"].lower(), "wrong", "--ignore-not-found"]
            injecting.run(*command)
        injecting.run("kubectl", "apply", "--kustomize", INJECTION)
    return "".join(said)


def test_an_apply_configuration_could_not_say_it(
    injecting: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Why the policy is a JSON patch."""
    expression = """Object{spec: Object.spec{initContainers: [Object.spec.initContainers{
        name: "broker-gateway", image: variables.image, command: ["gateway", "run"]}]}}"""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    assert "may not mutate atomic arrays" in _refused(injecting, namespace, tmp_path, mutation)


def test_a_field_that_pods_do_not_have_refuses_the_pod(
    injecting: Cluster, namespace: str, tmp_path: Path
) -> None:
    """So that a mistake in the policy cannot be overlooked here."""
    expression = """[JSONPatch{op: "add", path: "/spec/volumes", value: []},
        JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{
        name: "broker-gateway-tmp", emptyDirectory: Object.spec.volumes.emptyDirectory{}}}]"""
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    assert "emptyDirectory" in _refused(injecting, namespace, tmp_path, mutation)
