"""What `kubectl kustomize` makes of a folder of deploy/, and what its pods would find mounted."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
PATIENCE = 60
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

Manifest = dict[str, Any]

WITH_PODS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")


@cache
def _text(folder: Path) -> str:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    command = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(folder: Path) -> list[Manifest]:
    """Return all manifests of a folder. Skips the test if kubectl is not installed."""
    return list(yaml.safe_load_all(_text(folder)))


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [it for it in manifests if it["kind"] == kind]


def only(manifests: Sequence[Manifest], kind: str) -> Manifest:
    (found,) = of_kind(manifests, kind)
    return found


def template(manifest: Manifest) -> Manifest:
    """Return the pod template of a workload."""
    spec = manifest["spec"]
    found: Manifest = (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]
    return found


def containers(pod: Manifest) -> list[Manifest]:
    """Return all containers of a pod's spec, init containers first."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def all_containers(manifests: Sequence[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield each container with the spec of its pod."""
    for manifest in manifests:
        if manifest["kind"] in WITH_PODS:
            pod = template(manifest)["spec"]
            yield from ((pod, container) for container in containers(pod))


def gateway_of(pod: Manifest) -> Manifest:
    """Return the container of a pod's spec that runs the gateway."""
    (found,) = (it for it in containers(pod) if it.get("command", [""])[:2] == ["gateway", "run"])
    return found


class Mounted(NamedTuple):
    """A pod's files below a folder. `configuration`: the file that its command names."""

    folder: Path
    configuration: Path


def mounted(
    manifests: Sequence[Manifest],
    pod: Manifest,
    secrets: Mapping[str, Mapping[str, bytes]],
    folder: Path,
) -> Mounted:
    """Write what the gateway's container of a pod would find, with secrets by name and key."""
    maps = {it["metadata"]["name"]: it["data"] for it in of_kind(manifests, "ConfigMap")}
    volumes = {it["name"]: it for it in pod["volumes"]}
    container = gateway_of(pod)
    for mount in container["volumeMounts"]:
        volume, place = volumes[mount["name"]], folder / mount["mountPath"].lstrip("/")
        files: Mapping[str, bytes] = {}
        if "configMap" in volume:
            data = maps[volume["configMap"]["name"]]
            files = {name: text.encode() for name, text in data.items()}
        elif "secret" in volume:
            files = secrets[volume["secret"]["secretName"]]
        _write(files, place, mount.get("subPath"))
    configuration = folder / container["command"][-1].lstrip("/")
    # Folders of the image stand elsewhere here; other paths are relative to the configuration's.
    text = configuration.read_text().replace("/var/lib/", f"{folder}/var/lib/")
    configuration.write_text(text)
    return Mounted(folder, configuration)


def _write(files: Mapping[str, bytes], place: Path, one: str | None) -> None:
    if one is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(files[one])
        return
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
