"""Plays the kubelets of all nodes."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.kubernetes.api import Api, Document, MissingError
from tests.kubernetes.images import Image
from tests.kubernetes.logs import Logs
from tests.kubernetes.pods import Pod

TICK_S = 0.2
HOST = "127.0.0.1"
NODES = ("node-1", "node-2")
HOSTS = [f"127.0.7.{number}" for number in range(1, 200)]
"""Addresses of pods, each of which is used once."""
SERVICES = [f"127.0.8.{number}" for number in range(1, 200)]
"""Those of Services."""

MUCH = {"cpu": "64", "memory": "256Gi", "pods": "100", "ephemeral-storage": "256Gi"}


class Kubelet:
    """Runs the pods of all nodes, in a thread. `images`: by their name, also later.
    `names`: hosts, by namespace ("" for all) and name, and their addresses here."""

    def __init__(
        self, api: Api, folder: Path, images: dict[str, Image], certificates: Path
    ) -> None:
        self.api = api
        self.images = images
        self.names: dict[tuple[str, str], str] = {}
        self._folder = folder
        self._hosts: Iterator[str] = iter(HOSTS)
        self._services: Iterator[str] = iter(SERVICES)
        self._numbers = itertools.count(1)
        self._pods: dict[str, Pod] = {}
        self._ended: list[Pod] = []
        self._closing = threading.Event()
        self._logs = Logs(HOST, certificates, self._written)
        for name in NODES:
            self._register(name)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def pods(self) -> list[Pod]:
        """Return all pods that there were, the oldest first."""
        return [*self._ended, *self._pods.values()]

    def local(self, namespace: str, text: str) -> str:
        """Return a text in which hosts, as a namespace names them, are their addresses here."""
        for (place, name), address in self.names.items():
            if place in ("", namespace):
                host = rf"{re.escape(name)}(\.[\w.-]+)?"
                text = re.sub(rf"(?:(?<=//)|(?<=\d,)){host}(?=[:/])", address, text)
        return text

    def close(self) -> None:
        """End all pods at once."""
        self._closing.set()
        self._thread.join()
        for pod in self._pods.values():
            pod.delete(0)
        for pod in self._pods.values():
            pod.join()
        self._logs.close()

    def _register(self, name: str) -> None:
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{name}"}
        self.api.create(
            "/api/v1/nodes",
            {"kind": "Node", "metadata": {"name": name, "labels": labels}},
        )
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {
            "capacity": MUCH,
            "allocatable": MUCH,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": HOST}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.port}},
        }
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})

    def _live(self) -> None:
        while not self._closing.wait(TICK_S):
            with suppress(OSError, MissingError):
                self._look()

    def _look(self) -> None:
        for it in self.api.list("/api/v1/services"):
            name = it["metadata"]["namespace"], it["metadata"]["name"]
            if name not in self.names:
                self.names[name] = next(self._services)
        found = {it["metadata"]["uid"]: it for it in self.api.list("/api/v1/pods")}
        for uid, manifest in found.items():
            if manifest["spec"].get("nodeName") not in NODES:
                continue
            if uid not in self._pods and not _is_over(manifest):
                self._start(uid, manifest)
            if uid in self._pods and "deletionTimestamp" in manifest["metadata"]:
                self._pods[uid].delete(manifest["metadata"]["deletionGracePeriodSeconds"])
        for uid in [*self._pods]:
            if uid not in found:
                self._pods[uid].delete(0)
                self._ended.append(self._pods.pop(uid))

    def _written(self, pod: str, container: str) -> bytes | None:
        logs = [it.log for found in self.pods if found.name == pod for it in found.containers
                if it.name == container]  # fmt: skip
        return logs[-1].read_bytes() if logs else None

    def _start(self, uid: str, manifest: Document) -> None:
        number = next(self._numbers)
        folder = self._folder / f"{number}-{manifest['metadata']['name']}"
        folder.mkdir(parents=True)
        self._pods[uid] = Pod(self, manifest, next(self._hosts), folder)


def _is_over(manifest: Mapping[str, Document]) -> bool:
    return manifest["status"].get("phase") in {"Succeeded", "Failed"}
