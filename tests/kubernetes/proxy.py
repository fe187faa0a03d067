"""Plays the network of Services: HAProxy in front of the endpoints that the controllers found."""

from __future__ import annotations

import itertools
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.kubernetes.api import Api, Document, MissingError
from tests.kubernetes.kubelet import HOSTS, Kubelet
from tests.real.brokers.processes import end, spawn, tail

TICK_S = 0.2
LATE_S = 1.0
"""Between a change of endpoints and the moment when balancers know of it."""

PATIENCE_S = 30.0


class Balancer:
    """HAProxy for one Service."""

    def __init__(self, program: str, folder: Path, address: str, slice_: Document) -> None:
        self.address = address
        # Its path must be short: about a hundred characters.
        self._short = tempfile.TemporaryDirectory(prefix="haproxy-")
        self._control = Path(self._short.name) / "control"
        self._log = folder / "haproxy.log"
        self._endpoints: frozenset[str] = frozenset()
        self._ports = [it["port"] for it in slice_["ports"]]
        folder.mkdir(parents=True)
        file = folder / "haproxy.cfg"
        parts = "".join(map(self._part, self._ports))
        file.write_text(
            f"global\n    stats socket {self._control} level admin\n"
            "defaults\n    mode tcp\n    timeout connect 5s\n"
            f"    timeout client 1h\n    timeout server 1h\n{parts}"
        )
        self._process = spawn([program, "-f", str(file)], self._log)
        until = time.monotonic() + PATIENCE_S
        while not self._control.exists():
            assert self._process.poll() is None, tail(self._log)
            assert time.monotonic() < until
            time.sleep(0.05)

    def _part(self, port: int) -> str:
        servers = "".join(f"    server {it} {it}:{port} disabled\n" for it in HOSTS)
        return f"listen {port}\n    bind {self.address}:{port}\n    balance roundrobin\n{servers}"

    def set(self, endpoints: frozenset[str]) -> None:
        """Have new connections go to these, a moment later; those that are open stay."""
        if endpoints != self._endpoints:
            changed, self._endpoints = endpoints ^ self._endpoints, endpoints
            late = threading.Timer(LATE_S, self._tell, (changed, endpoints))
            late.daemon = True
            late.start()

    def close(self) -> None:
        """End it."""
        if self._process.poll() is None:
            end(self._process, PATIENCE_S)
        self._short.cleanup()

    def _tell(self, changed: frozenset[str], endpoints: frozenset[str]) -> None:
        for port, host in itertools.product(self._ports, changed):
            state = "ready" if host in endpoints else "maint"
            with suppress(OSError), socket.socket(socket.AF_UNIX) as control:
                control.connect(str(self._control))
                control.sendall(f"set server {port}/{host} state {state}\n".encode())
                while control.recv(1000):
                    pass


class Proxy:
    """A balancer for each Service that has endpoints, in a thread."""

    def __init__(self, api: Api, kubelet: Kubelet, program: str, folder: Path) -> None:
        self._api = api
        self._kubelet = kubelet
        self._program = program
        self._folder = folder
        self._balancers: dict[tuple[str, str], Balancer] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all balancers."""
        self._closing.set()
        self._thread.join()
        for it in self._balancers.values():
            it.close()

    def _live(self) -> None:
        while not self._closing.wait(TICK_S):
            with suppress(OSError, MissingError):
                self._look()

    def _look(self) -> None:
        slices = self._api.list("/apis/discovery.k8s.io/v1/endpointslices")
        for slice_ in slices:
            metadata = slice_["metadata"]
            service = metadata.get("labels", {}).get("kubernetes.io/service-name")
            if not slice_["ports"] or service == "kubernetes":
                continue
            name = metadata["namespace"], service
            if name not in self._kubelet.names:
                continue  # it has just been made
            if name not in self._balancers:
                address, folder = self._kubelet.names[name], self._folder.joinpath(*name)
                self._balancers[name] = Balancer(self._program, folder, address, slice_)
            self._balancers[name].set(frozenset(_ready(slice_)))


def _ready(slice_: Document) -> list[str]:
    """Return the addresses, here, of pods that get new connections."""
    return [
        it["addresses"][0].replace("10.244.0.", "127.0.7.")
        for it in slice_["endpoints"] or ()
        if it["conditions"].get("ready")
    ]
