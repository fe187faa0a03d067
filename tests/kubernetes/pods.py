"""One pod: its containers from its first init container to the end of its last sidecar."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError

import yaml

from tests.kubernetes.api import STRATEGIC, Api, Document, MissingError
from tests.kubernetes.containers import Container
from tests.kubernetes.images import Image
from tests.kubernetes.volumes import Volumes

TICK_S = 0.1
RENEWED_S = 1.0
"""Between two looks at ConfigMaps and Secrets; a minute or two in clusters."""


class Machine(Protocol):
    """Where pods run. `images`: by their name. `local`: a text in which hosts, as a namespace names
    them, are their addresses here."""

    api: Api

    @property
    def images(self) -> Mapping[str, Image]: ...

    def local(self, namespace: str, text: str) -> str: ...


class Pod:
    """A pod that runs until it is deleted, or done. `host`: its address here."""

    def __init__(self, machine: Machine, manifest: Document, host: str, folder: Path) -> None:
        metadata = manifest["metadata"]
        self.namespace: str = metadata["namespace"]
        self.name: str = metadata["name"]
        self.host = host
        self.has_ended = False
        self.containers: list[Container] = []
        self._machine = machine
        self._manifest = manifest
        self._folder = folder
        self._path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self._uid = metadata["uid"]
        self._volumes = Volumes(machine.api, manifest, folder, self._localized)
        self._sidecars: list[Container] = []
        self._grace: float | None = None
        self._reported: Document = {}
        self._since: dict[str, tuple[str, str]] = {}
        self._renewed = 0.0
        self._began = _now()
        self._deleted = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def was_killed(self) -> bool:
        """Return whether a container was: it did not end in time, or was not well."""
        return any(it.was_killed for it in self.containers)

    def delete(self, grace: float) -> None:
        """Tell it to end within so many seconds."""
        if not self._deleted.is_set():
            self._grace = grace
            self._deleted.set()

    def join(self) -> None:
        self._thread.join()

    # -- its life --------------------------------------------------------------------------------

    def _live(self) -> None:
        phase = "Failed"
        try:
            phase = self._run()
        except MissingError as error:
            if str(error) != self._path:  # it waits for a Secret, say, which its end does not
                raise
        finally:
            self._stop()
            self.has_ended = True
            self._finish(phase)

    def _run(self) -> str:
        """Run it until it is done or deleted; return its phase then."""
        while not self._is_mounted():
            if self._deleted.wait(TICK_S):
                return "Failed"
        if not self._initialize():
            return "Failed"
        mains = [self._made(it) for it in self._manifest["spec"]["containers"]]
        for it in mains:
            self.containers.append(it)
            it.start()
        while not self._deleted.is_set():
            self._tick(mains)
            if (phase := self._done(mains)) is not None:
                return phase
        return "Failed"

    def _is_mounted(self) -> bool:
        try:
            self._volumes.write()
        except MissingError:
            return False
        return True

    def _initialize(self) -> bool:
        """Run init containers, in order; those that stay are sidecars. Return whether they did
        what they should."""
        for spec in self._manifest["spec"].get("initContainers", []):
            container = self._made(spec)
            self.containers.append(container)
            container.start()
            stays = spec.get("restartPolicy") == "Always"
            if stays:
                self._sidecars.append(container)
            while not (container.is_started if stays else container.exit_code == 0):
                self._tick([])
                if self._deleted.is_set() or (not stays and container.exit_code):
                    return False
        return True

    def _tick(self, mains: list[Container]) -> None:
        restarts = self._manifest["spec"].get("restartPolicy", "Always") == "Always"
        for it in (*self._sidecars, *mains):
            it.look()
            again = restarts or it in self._sidecars
            if again and it.exit_code is not None and it.may_start_again:
                it.start()
        if time.monotonic() >= self._renewed:
            self._renewed = time.monotonic() + RENEWED_S
            self._is_mounted()
        self._report("Running" if mains else "Pending")
        self._deleted.wait(TICK_S)

    def _done(self, mains: list[Container]) -> str | None:
        if self._manifest["spec"].get("restartPolicy", "Always") == "Always":
            return None
        codes = [it.exit_code for it in mains]
        if None in codes:
            return None
        return "Failed" if any(codes) else "Succeeded"

    def _stop(self) -> None:
        """End containers, sidecars after the others, within the grace period."""
        grace = self._manifest["spec"].get("terminationGracePeriodSeconds", 30)
        until = time.monotonic() + (grace if self._grace is None else self._grace)
        mains = [it for it in self.containers if it not in self._sidecars]
        ending = [threading.Thread(target=it.stop, args=(until,)) for it in mains]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()
        for it in reversed(self._sidecars):
            it.stop(until)

    def _finish(self, phase: str) -> None:
        """Report the end, and forget the pod once it is deleted."""
        try:
            self._report(phase)
            self._deleted.wait()
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._uid}}
            self._machine.api.delete(self._path, options)
        except MissingError:
            pass
        except HTTPError as error:
            if error.code != HTTPStatus.CONFLICT:  # of that name there is another pod by now
                raise

    # -- on this machine -------------------------------------------------------------------------

    def _made(self, spec: Document) -> Container:
        image = self._machine.images[spec["image"]]
        self._is_mounted()
        places = self._volumes.mount(spec)

        paths = "|".join(map(re.escape, sorted(places, reverse=True)))

        def local(text: str) -> str:
            if paths:
                text = re.sub(rf"^({paths})", lambda found: places[found[0]], text)
            return self._machine.local(self.namespace, text)

        name, *rest = [local(it) for it in (*spec["command"], *spec.get("args", []))]
        said = {it["name"]: local(self._value(it)) for it in spec.get("env", [])}
        environment = {**os.environ, "PYTHONPATH": str(image.path), **said}
        log = self._folder / f"{spec['name']}.log"
        return Container(spec, self.host, [*image.commands[name], *rest], environment, log)

    def _value(self, variable: Document) -> str:
        if "value" in variable:
            return str(variable["value"])
        found: Any = {**self._manifest, "status": {"podIP": self.host}}
        for part in variable["valueFrom"]["fieldRef"]["fieldPath"].split("."):
            found = found[part]
        return str(found)

    def _localized(self, name: str, content: bytes) -> bytes:
        """Return a file as this machine needs it: a configuration of the gateway binds to the pod's
        address, and has its other paths below the pod's root."""
        if name != "gateway.yaml":
            return content
        settings = yaml.safe_load(self._machine.local(self.namespace, content.decode()))
        for part in (*settings["listeners"], settings["admin"]):
            if part["bind"].startswith(":"):  # all addresses of its pod
                part["bind"] = f"{self.host}{part['bind']}"
        text: str = yaml.safe_dump(settings, sort_keys=False)
        return text.replace("/var/lib/", f"{self._volumes.root}/var/lib/").encode()

    # -- its status ------------------------------------------------------------------------------

    def _report(self, phase: str) -> None:
        """Tell the API server what is new. Raises `MissingError`: the pod is gone."""
        status = self._status(phase)
        if status != self._reported:
            self._machine.api.patch(f"{self._path}/status", {"status": status}, STRATEGIC)
            self._reported = status

    def _status(self, phase: str) -> Document:
        init = {it["name"] for it in self._manifest["spec"].get("initContainers", [])}
        ready = phase == "Running" and all(
            it.is_ready for it in self.containers if it.name not in init or it in self._sidecars
        )
        states = {"Initialized": phase != "Pending", "ContainersReady": ready, "Ready": ready}
        address = self.host.replace("127.0.7.", "10.244.0.")  # no loopback ones in EndpointSlices
        return {
            "phase": phase,
            "startTime": self._began,
            "hostIP": "10.0.0.1",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [self._condition(*it) for it in states.items()],
            "containerStatuses": self._statuses(lambda name: name not in init),
            "initContainerStatuses": self._statuses(lambda name: name in init),
        }

    def _condition(self, kind: str, holds: bool) -> Document:
        said = str(holds)
        if self._since.get(kind, ("", ""))[0] != said:
            self._since[kind] = (said, _now())
        return {"type": kind, "status": said, "lastTransitionTime": self._since[kind][1]}

    def _statuses(self, chosen: Any) -> list[Document]:
        return [_status(it) for it in self.containers if chosen(it.name)]


def _status(container: Container) -> Document:
    code = container.exit_code
    state: Document = {"running": {}} if code is None else {"terminated": {"exitCode": abs(code)}}
    return {
        "name": container.name,
        "image": "",
        "imageID": "",
        "ready": container.is_ready,
        "started": container.is_started,
        "restartCount": max(0, container.restarts),
        "state": state,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
