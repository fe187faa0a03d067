"""The API server's own code takes the policy, and adds what the evaluation by CEL alone adds.

`admission/main.go` runs the plugin of Kubernetes that evaluates such policies, on a client with a
namespace, the policy and its binding, and no cluster behind it. It checks types, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.policies import Policy
from tests.deploy.rendering import Manifest, gateway_of, only, rendered
from tests.deploy.test_injection import INJECTION, LABEL, OTHERS, OWN, PLAIN

SOURCE = Path(__file__).with_name("admission")
BUILD_S = 900
"""The first build fetches and compiles the API server's libraries, some two minutes."""
PATIENCE = 120

pytestmark = [pytest.mark.long, pytest.mark.deploy]


class Server:
    """The admission of an API server. `program`: admission/main.go, built."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def admit(
        self,
        pods: list[Manifest],
        namespace: Mapping[str, str],
        change: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Return what becomes of pods; `change` replaces parts of the policy's specification."""
        manifests = rendered(INJECTION)
        policy = deepcopy(only(manifests, "MutatingAdmissionPolicy"))
        policy["spec"] |= change or {}
        asked = {
            "policy": policy,
            "binding": only(manifests, "MutatingAdmissionPolicyBinding"),
            "namespace": namespace,
            "pods": pods,
        }
        done = subprocess.run(
            [self._program],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    program = tmp_path_factory.mktemp("admission") / "admission"
    # The first fetches what the second compiles.
    for command in (["list", "-deps", "."], ["build", "-o", str(program), "."]):
        done = subprocess.run(
            [go, *command], cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        if done.returncode and command[0] == "list":
            pytest.skip(f"the modules of Kubernetes cannot be had: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
    return Server(program)


def _seen(pod: Manifest) -> Manifest:
    """Return a pod without what Go writes for fields that are not set."""
    found = deepcopy(pod)
    found["metadata"].pop("namespace", None)
    found.pop("status", None)
    for container in (*found["spec"].get("initContainers", ()), *found["spec"]["containers"]):
        if container.get("resources") == {}:
            del container["resources"]
    return found


@pytest.mark.parametrize("pod", [PLAIN, OWN], ids=["plain", "own"])
def test_the_server_adds_what_the_expressions_say(server: Server, pod: Manifest) -> None:
    manifests = rendered(INJECTION)
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    policy = Policy(*(only(manifests, kind) for kind in kinds))
    (answer,) = server.admit([pod], LABEL)
    assert "error" not in answer
    assert _seen(answer["pod"]) == policy.mutated(pod, LABEL)
    assert gateway_of(answer["pod"]["spec"])["restartPolicy"] == "Always"


@pytest.mark.parametrize(("pod", "namespace"), OTHERS.values(), ids=OTHERS)
def test_the_server_leaves_other_pods_as_they_are(
    server: Server, pod: Manifest, namespace: dict[str, str]
) -> None:
    (answer,) = server.admit([pod], namespace)
    assert _seen(answer["pod"]) == pod


def test_the_server_takes_what_it_has_changed_as_it_is(server: Server) -> None:
    once = [it["pod"] for it in server.admit([PLAIN, OWN], LABEL)]
    assert [it["pod"] for it in server.admit(once, LABEL)] == once


def test_an_apply_configuration_could_not_say_it(server: Server) -> None:
    """Why the policy is a JSON patch."""
    expression = """Object{spec: Object.spec{initContainers: [Object.spec.initContainers{
        name: "broker-gateway", image: variables.image, command: ["gateway", "run"]}]}}"""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    (answer,) = server.admit([PLAIN], LABEL, {"mutations": [mutation]})
    assert "may not mutate atomic arrays" in answer["error"]


def test_a_field_that_pods_do_not_have_refuses_the_pod(server: Server) -> None:
    """So that a mistake in the policy cannot be overlooked here."""
    expression = """[JSONPatch{op: "add", path: "/spec/volumes", value: [Object.spec.volumes{
        name: "broker-gateway-tmp", emptyDirectory: Object.spec.volumes.emptyDirectory{}}]}]"""
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    (answer,) = server.admit([PLAIN], LABEL, {"mutations": [mutation]})
    assert "emptyDirectory" in answer["error"]
