"""The policy adds the sidecar of the kustomize component to pods that ask for it, once."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.deploy.policies import Policy, patched
from tests.deploy.rendering import (
    KUBERNETES,
    VERSION,
    Manifest,
    containers,
    gateway_of,
    only,
    rendered,
    template,
)

INJECTION = KUBERNETES / "injection"
SIDECAR = KUBERNETES / "overlays" / "sidecar"

LABEL = {"broker-gateway/inject": "true"}

PLAIN: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "orders-", "labels": {"app": "orders", **LABEL}},
    "spec": {"containers": [{"name": "orders", "image": "orders:1"}]},
}

OWN: Manifest = {
    **PLAIN,
    "spec": {
        "initContainers": [{"name": "first", "image": "first:1"}],
        "containers": [
            {
                "name": "orders",
                "image": "orders:1",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


@pytest.fixture(scope="module")
def policy() -> Policy:
    manifests = rendered(INJECTION)
    parts = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    return Policy(*(only(manifests, kind) for kind in parts))


def _changed(pod: Manifest, **fields: object) -> Manifest:
    found = deepcopy(pod)
    found["spec"] |= fields
    return found


OTHERS: dict[str, tuple[Manifest, dict[str, str]]] = {
    "other labels": ({**PLAIN, "metadata": {"name": "orders", "labels": {"app": "orders"}}}, LABEL),
    "no labels": ({**PLAIN, "metadata": {"name": "orders"}}, LABEL),
    "another namespace": (PLAIN, {}),
    "a namespace that opted out": (PLAIN, {"broker-gateway/inject": "false"}),
    "the host's network": (_changed(PLAIN, hostNetwork=True), LABEL),
    "has one": (
        _changed(OWN, initContainers=[{"name": "broker-gateway", "image": "own:1"}]),
        LABEL,
    ),
}
"""Pods with the labels of their namespace that get no sidecar."""


def test_a_pod_gets_the_sidecar_of_the_component(policy: Policy) -> None:
    spec = policy.mutated(PLAIN, LABEL)["spec"]
    wanted = template(only(rendered(SIDECAR), "Deployment"))["spec"]
    assert spec["initContainers"] == [gateway_of(wanted)]
    assert spec["containers"] == PLAIN["spec"]["containers"]
    names = {it["name"]: it for it in wanted["volumes"]}
    # In the component the name of the ConfigMap has a digest of its content.
    names["broker-gateway-config"]["configMap"]["name"] = "broker-gateway-sidecar"
    assert {it["name"]: it for it in spec["volumes"]} == names


def test_a_pod_keeps_its_own_init_containers_and_volumes(policy: Policy) -> None:
    spec = policy.mutated(OWN, LABEL)["spec"]
    assert [it["name"] for it in spec["initContainers"]] == ["broker-gateway", "first"]
    assert spec["initContainers"][1:] == OWN["spec"]["initContainers"]
    assert spec["containers"] == OWN["spec"]["containers"]
    assert spec["volumes"][:1] == OWN["spec"]["volumes"]
    assert len(spec["volumes"]) == 4


@pytest.mark.parametrize("pod", [PLAIN, OWN], ids=["plain", "own"])
def test_the_credential_is_mounted_in_the_sidecar_alone(policy: Policy, pod: Manifest) -> None:
    spec = policy.mutated(pod, LABEL)["spec"]
    (volume,) = (it["name"] for it in spec["volumes"] if "secret" in it)
    having = [
        container["name"]
        for container in containers(spec)
        if volume in {it["name"] for it in container.get("volumeMounts", ())}
    ]
    assert having == ["broker-gateway"]


@pytest.mark.parametrize("pod", [PLAIN, OWN], ids=["plain", "own"])
def test_kubernetes_takes_the_pod_that_comes_out(policy: Policy, pod: Manifest) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    validate.validate(policy.mutated(pod, LABEL), "1.36", strict=True)


@pytest.mark.parametrize("pod", [PLAIN, OWN], ids=["plain", "own"])
def test_a_pod_gets_one_sidecar_however_often_it_is_looked_at(
    policy: Policy, pod: Manifest
) -> None:
    once = policy.mutated(pod, LABEL)
    assert once != pod
    assert policy.mutated(once, LABEL) == once


@pytest.mark.parametrize(("pod", "namespace"), OTHERS.values(), ids=OTHERS)
def test_other_pods_stay_as_they_are(
    policy: Policy, pod: Manifest, namespace: dict[str, str]
) -> None:
    assert policy.mutated(pod, namespace) == pod


def test_the_policy_names_the_image_of_this_version() -> None:
    spec = only(rendered(INJECTION), "MutatingAdmissionPolicy")["spec"]
    (image,) = (it["expression"] for it in spec["variables"] if it["name"] == "image")
    assert image == f'"broker-gateway:{VERSION}"'


def test_a_patch_adds_to_lists_and_mappings() -> None:
    operations: list[Manifest] = [
        {"op": "add", "path": "/a/0", "value": 1},
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "add", "path": "/b", "value": []},
    ]
    assert patched({"a": [2]}, operations) == {"a": [1, 2, 3], "b": []}
