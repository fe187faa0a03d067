"""All of it together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

import pytest

from tests.kubernetes.control import ControlPlane
from tests.kubernetes.images import Image
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.pods import Pod
from tests.kubernetes.proxy import Proxy
from tests.real.clients import wait_until


class Cluster(ControlPlane):
    """A context with a cluster in it. Skips the test where it cannot be had."""

    def __init__(self, folder: Path, images: dict[str, Image]) -> None:
        haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
        if haproxy is None:
            pytest.skip("HAProxy is not installed (Debian's package: haproxy)")
        super().__init__(folder)
        self._haproxy = haproxy
        self._images = images

    def __enter__(self) -> Self:
        super().__enter__()
        self.kubelet = Kubelet(
            self.api, self._folder / "pods", self._images, self._folder / "certificates"
        )
        self.proxy = Proxy(self.api, self.kubelet, self._haproxy, self._folder / "services")
        return self

    def __exit__(self, *arguments: object) -> None:
        self.kubelet.close()
        self.proxy.close()
        super().__exit__(*arguments)

    def pods(self, namespace: str) -> list[Pod]:
        """Return the pods of a namespace that are not told to end."""
        here = {it.name: it for it in self.kubelet.pods}
        found = self.api.list(f"/api/v1/namespaces/{namespace}/pods")
        staying = [it["metadata"] for it in found if "deletionTimestamp" not in it["metadata"]]
        return [here[it["name"]] for it in staying if it["name"] in here]

    def ended(self, namespace: str) -> list[Pod]:
        """Return the pods of a namespace that were told to end, once all have."""
        staying = self.pods(namespace)
        told = [it for it in self.kubelet.pods if it.namespace == namespace if it not in staying]
        for pod in told:
            pod.join()
        return told

    def address(self, namespace: str, service: str) -> str:
        """Return where a Service is reached, once it is there."""
        wait_until(lambda: (namespace, service) in self.kubelet.names)
        return self.kubelet.names[namespace, service]
