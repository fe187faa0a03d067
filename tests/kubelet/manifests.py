"""What a rendering says of its pods: read from the manifests, and written nowhere again."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

MOUNTED = "/etc/broker-gateway"
"""Where pods have their files; here each pod has a folder."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe by HTTP. `path`: of the request. `period`, `timeout`: seconds. `failures`: in a row,
    after which it has failed."""

    path: str
    port: int
    period: float
    timeout: float
    failures: int


@dataclass(frozen=True, slots=True)
class Template:
    """The pods of a Deployment. `files`: by their path below `MOUNTED`. `sleep`: seconds of the
    preStop hook. `grace`: seconds from the order to end until SIGKILL. `min_ready`: seconds for
    which a new pod must be ready before the next step."""

    command: tuple[str, ...]
    files: Mapping[str, bytes]
    startup: Probe
    liveness: Probe
    readiness: Probe
    sleep: float
    grace: float
    min_ready: float

    def written(self, folder: Path, host: str) -> list[str]:
        """Write the files of a pod with this address, and return its command."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_at(content, host) if name == "gateway.yaml" else content)
        return [it.replace(MOUNTED, str(folder)) for it in self.command]


def template(documents: Iterable[Document], given: Mapping[str, bytes]) -> Template:
    """Return the pods of the only Deployment. `given`: values of Secrets that are not rendered, by
    the path at which pods have them."""
    found = list(documents)
    (deployment,) = (it for it in found if it["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    ports = {it["name"]: it["containerPort"] for it in container["ports"]}
    strategy = deployment["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 1, "maxUnavailable": 0}, "what `Deployment` here does"
    return Template(
        command=tuple(container["command"]),
        files={**_files(found, spec, container), **given},
        startup=_probe(container["startupProbe"], ports),
        liveness=_probe(container["livenessProbe"], ports),
        readiness=_probe(container["readinessProbe"], ports),
        sleep=container["lifecycle"]["preStop"]["sleep"]["seconds"],
        grace=spec["terminationGracePeriodSeconds"],
        min_ready=deployment["spec"]["minReadySeconds"],
    )


def replicas(documents: Iterable[Document]) -> int:
    """Return how many pods the only Deployment has."""
    (found,) = (it["spec"]["replicas"] for it in documents if it["kind"] == "Deployment")
    return int(found)


def _files(documents: list[Document], spec: Document, container: Document) -> dict[str, bytes]:
    volumes = {it["name"]: it for it in spec["volumes"]}
    found = {}
    for mount in container["volumeMounts"]:
        place = mount["mountPath"]
        if not place.startswith(MOUNTED):
            continue
        inside = place.removeprefix(MOUNTED).strip("/")
        content = _content(documents, volumes[mount["name"]])
        if "subPath" in mount:
            found[inside] = content[mount["subPath"]]
        else:
            found |= {f"{inside}/{name}": value for name, value in content.items()}
    return found


def _content(documents: list[Document], volume: Document) -> dict[str, bytes]:
    """Return the files of a volume; none of a Secret that somebody else makes."""
    if "configMap" in volume:
        (found,) = _named(documents, "ConfigMap", volume["configMap"]["name"])
        return {name: text.encode() for name, text in found["data"].items()}
    secrets = _named(documents, "Secret", volume["secret"]["secretName"])
    return {
        name: base64.b64decode(text) for secret in secrets for name, text in secret["data"].items()
    }


def _named(documents: list[Document], kind: str, name: str) -> list[Document]:
    return [it for it in documents if it["kind"] == kind and it["metadata"]["name"] == name]


def _probe(found: Document, ports: Mapping[str, int]) -> Probe:
    asked = found["httpGet"]
    times = found["periodSeconds"], found["timeoutSeconds"], found["failureThreshold"]
    return Probe(asked["path"], ports[asked["port"]], *times)


def _at(content: bytes, host: str) -> bytes:
    """Return a configuration whose listeners have the address of one pod, as each has a network of
    its own in Kubernetes."""
    settings = yaml.safe_load(content)
    for part in (*settings["listeners"], settings["admin"]):
        assert part["bind"].startswith(":"), "all addresses of its pod"
        part["bind"] = f"{host}{part['bind']}"
    return yaml.safe_dump(settings, sort_keys=False).encode()
