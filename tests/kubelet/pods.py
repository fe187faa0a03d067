"""Plays kubelet, a Deployment and a Service: runs pods as their manifests say, with real processes.

Each pod has a loopback address of its own. The kubelet starts its process and probes it: startup,
then liveness and readiness. Who is ready and not told to end is an endpoint of the Service, which
is HAProxy: it hears of changes `LATE_S` later, as balancers do. A pod that is told to end gets its
preStop hook, SIGTERM, and SIGKILL when its grace period is over.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.kubelet.manifests import Probe, Template
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail
from tests.real.gateways import CHECKOUT

HOST = "127.0.0.1"
HOSTS = [f"127.0.7.{number}" for number in range(1, 13)]
"""Addresses of pods, each of which is used once."""

LATE_S = 1.0
"""Between a change of endpoints and the moment when balancers know of it."""

PATIENCE_S = 60.0


class Service:
    """HAProxy in front of pods. `url`: where clients connect."""

    def __init__(self, program: str, folder: Path, port: int) -> None:
        (self.port,) = free_ports(HOST, 1)
        self.url = self.untapped_url = f"pulsar://{HOST}:{self.port}"
        self._control = folder / "haproxy.sock"
        self._log = folder / "haproxy.log"
        servers = "".join(
            f"    server pod{at} {host}:{port} disabled\n" for at, host in enumerate(HOSTS)
        )
        file = folder / "haproxy.cfg"
        file.write_text(
            f"global\n    stats socket {self._control} level admin\n"
            "defaults\n    mode tcp\n    timeout connect 5s\n"
            "    timeout client 1h\n    timeout server 1h\n"
            f"listen gateways\n    bind {HOST}:{self.port}\n    balance roundrobin\n{servers}"
        )
        self._process = spawn([program, "-f", str(file)], self._log)
        until = time.monotonic() + PATIENCE_S
        while not self._control.exists():
            assert self._process.poll() is None, tail(self._log)
            assert time.monotonic() < until
            time.sleep(0.05)

    def set(self, host: str, *, is_endpoint: bool) -> None:
        """Have new connections go to a pod, or not any more; those that are open stay."""
        state = "ready" if is_endpoint else "maint"
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self._control))
            control.sendall(f"set server gateways/pod{HOSTS.index(host)} state {state}\n".encode())
            while control.recv(1000):
                pass

    def close(self) -> None:
        """End it."""
        end(self._process, PATIENCE_S)


class Pod:
    """One pod. `killed`: its process did not end within the grace period, or failed its probes."""

    def __init__(self, host: str, template: Template, folder: Path, service: Service) -> None:
        self.host = host
        self.killed = False
        self.ready = threading.Event()
        self.ended = threading.Event()
        self._template = template
        self._service = service
        self._deleted = threading.Event()
        folder.mkdir(parents=True)
        self.log = folder / "gateway.log"
        name, *rest = template.written(folder, host)
        assert name == "gateway"
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT), "POD_NAMESPACE": "messaging"}
        self._process = spawn([sys.executable, "-m", "gateway", *rest], self.log, environment)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def is_told_to_end(self) -> bool:
        return self._deleted.is_set()

    def delete(self) -> None:
        """Tell it to end."""
        self._deleted.set()

    def fail(self) -> None:
        """Kill its process, as a node that fails does."""
        self._process.send_signal(signal.SIGKILL)

    def metric(self, name: str) -> float:
        """Return the sum of a metric."""
        url = f"http://{self.host}:{self._template.readiness.port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        found = (it.rpartition(" ")[2] for it in lines if it.startswith((f"{name}{{", f"{name} ")))
        return sum(map(float, found))

    # -- the kubelet -----------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            self._start()
            self._probe_until_deleted()
        finally:
            self._tell(is_ready=False)
            self._end()
            self.ended.set()

    def _start(self) -> None:
        probe = self._template.startup
        for _ in range(probe.failures):
            if self._succeeds(probe):
                return
            if self._deleted.wait(probe.period) or self._process.poll() is not None:
                return

    def _probe_until_deleted(self) -> None:
        failed = {self._template.readiness: 0, self._template.liveness: 0}
        due = dict.fromkeys(failed, time.monotonic())
        while not self._deleted.is_set() and self._process.poll() is None:
            for probe in failed:
                if time.monotonic() < due[probe]:
                    continue
                due[probe] = time.monotonic() + probe.period
                failed[probe] = 0 if self._succeeds(probe) else failed[probe] + 1
            self._judge(failed)
            self._deleted.wait(0.1)

    def _judge(self, failed: dict[Probe, int]) -> None:
        readiness, liveness = self._template.readiness, self._template.liveness
        if failed[readiness] == 0:
            self._tell(is_ready=True)
        elif failed[readiness] >= readiness.failures:
            self._tell(is_ready=False)
        if failed[liveness] >= liveness.failures:
            self.killed = True
            self._process.kill()

    def _succeeds(self, probe: Probe) -> bool:
        url = f"http://{self.host}:{probe.port}{probe.path}"
        with suppress(OSError), urllib.request.urlopen(url, timeout=probe.timeout) as answer:
            return bool(answer.status == 200)
        return False

    def _tell(self, *, is_ready: bool) -> None:
        """Have the Service know, late."""
        if self.ready.is_set() == is_ready:
            return
        (self.ready.set if is_ready else self.ready.clear)()
        late = threading.Timer(
            LATE_S, lambda: self._service.set(self.host, is_endpoint=self.ready.is_set())
        )
        late.daemon = True
        late.start()

    def _end(self) -> None:
        """End the process as the manifest says."""
        until = time.monotonic() + self._template.grace
        if self._process.poll() is None:
            time.sleep(self._template.sleep)
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.killed = True
            self._process.kill()
            self._process.wait()


class Deployment:
    """Pods of one template. What is replaced comes first, one at a time (maxSurge 1, maxUnavailable
    0), and what ends is not waited for."""

    def __init__(self, service: Service, folder: Path, template: Template, number: int) -> None:
        self._service = service
        self._folder = folder
        self._hosts = iter(HOSTS)
        self._template = template
        self.all: list[Pod] = []
        for _ in range(number):
            self._create()
        self._wait_for_ready()

    @property
    def pods(self) -> list[Pod]:
        """Return those that are not told to end, and live."""
        return [it for it in self.all if not (it.is_told_to_end or it.ended.is_set())]

    def roll(self, template: Template) -> None:
        """Replace all pods by those of another template."""
        self._template = template
        for old in self.pods:
            self._create()
            self._wait_for_ready()
            old.delete()

    def scale(self, number: int) -> None:
        """Have so many pods: new ones, or the youngest end."""
        for _ in range(number - len(self.pods)):
            self._create()
        for pod in self.pods[number:]:
            pod.delete()
        self._wait_for_ready()

    def wait_for_ends(self) -> Sequence[Pod]:
        """Return the pods that were told to end, once all have."""
        told = [it for it in self.all if it.is_told_to_end]
        for pod in told:
            assert pod.ended.wait(PATIENCE_S), f"{pod.host} has not ended"
        return told

    def close(self) -> None:
        """End all pods."""
        for pod in self.all:
            pod.delete()
        self.wait_for_ends()

    def _create(self) -> None:
        host = next(self._hosts)
        self.all.append(Pod(host, self._template, self._folder / host, self._service))

    def _wait_for_ready(self) -> None:
        for pod in self.pods:
            assert pod.ready.wait(PATIENCE_S), f"{pod.host} is not ready:\n{tail(pod.log)}"
        time.sleep(self._template.min_ready)
