"""Builds, starts and ends Kubernetes' own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Self

import pytest
import yaml

from tests.kubernetes.api import Api
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

SOURCE = Path(__file__).with_name("programs")
BUILT = Path(__file__).resolve().parents[2] / "build" / "kubernetes"
HOST = "127.0.0.1"
VERSION = "1.36.0"
"""As in programs/go.mod. Releases of Kubernetes say it to the linker, and so must we: a chart asks
for its version."""

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
BUILD_S = 1800
COMMAND_S = 200
PATIENCE_S = 120
TOKEN = "admin"


@cache
def programs() -> Path:
    """Return the folder of Kubernetes' programs, building them if necessary. Skips the test where
    they cannot be built."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    version = "k8s.io/component-base/version"
    major, minor, _ = VERSION.split(".")
    said = {
        f"{version}.gitVersion": f"v{VERSION}",
        f"{version}.gitMajor": major,
        f"{version}.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": f"v{VERSION}",
    }
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in said.items())])
    binary = BUILT / "kubernetes"
    # The first fetches what the second compiles.
    for command in (["list", "-deps", "."], ["build", "-o", str(binary), "-ldflags", flags, "."]):
        done = subprocess.run(
            [go, *command], cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        if done.returncode and command[0] == "list":
            pytest.skip(f"the modules of Kubernetes cannot be had: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
    for name in NAMES:
        link = BUILT / name
        if not link.is_symlink():
            link.symlink_to(binary.name)
    return BUILT


class ControlPlane:
    """A context in which an API server answers. `environment`: of commands that talk to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = programs()
        self._running = ExitStack()
        folder.mkdir(parents=True, exist_ok=True)
        etcd, peers, port = free_ports(HOST, 3)
        self._etcd, self._peers = f"http://{HOST}:{etcd}", f"http://{HOST}:{peers}"
        self._port = port
        self.api = Api(f"https://{HOST}:{port}", TOKEN)
        self.environment = self._environment()

    def __enter__(self) -> Self:
        with ExitStack() as failed:
            failed.callback(self._running.close)
            self._start()
            failed.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """Run Helm or kubectl, and return what it printed. Raises CalledProcessError, which tells
        what went wrong."""
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, command)
            error.add_note(done.stdout + done.stderr)
            raise error
        return done.stdout

    # -- programs --------------------------------------------------------------------------------

    def _environment(self) -> Mapping[str, str]:
        file = self._folder / "kubeconfig"
        server = {"server": f"https://{HOST}:{self._port}", "insecure-skip-tls-verify": True}
        context = {"cluster": "here", "user": "admin"}
        file.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "here", "cluster": server}],
                    "users": [{"name": "admin", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "here", "context": context}],
                    "current-context": "here",
                }
            )
        )
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        own = {"KUBECONFIG": str(file), "PATH": path, "HOME": str(self._folder)}
        return {**os.environ, **own}

    def _start(self) -> None:
        key, tokens = self._folder / "accounts.key", self._folder / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        self._spawn(
            "etcd",
            data_dir=self._folder / "data",
            listen_client_urls=self._etcd,
            advertise_client_urls=self._etcd,
            listen_peer_urls=self._peers,
            unsafe_no_fsync="true",
        )
        self._spawn(
            "kube-apiserver",
            etcd_servers=self._etcd,
            bind_address=HOST,
            advertise_address=HOST,
            secure_port=self._port,
            cert_dir=self._folder / "certificates",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=key,
            service_account_signing_key_file=key,
            service_cluster_ip_range="10.96.0.0/16",
            authorization_mode="RBAC",
            token_auth_file=tokens,
        )
        self._await_ready()
        kubeconfig = self.environment["KUBECONFIG"]
        common = {"kubeconfig": kubeconfig, "leader_elect": "false", "secure_port": 0}
        self._spawn(
            "kube-controller-manager",
            service_account_private_key_file=key,
            node_monitor_grace_period="24h",  # nodes here do not report again and again
            **common,
        )
        self._spawn("kube-scheduler", **common)

    def _spawn(self, name: str, **flags: object) -> None:
        log = self._folder / f"{name}.log"
        options = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
        process = spawn([str(self._programs / name), *options], log)
        self._running.callback(end, process, PATIENCE_S)

    def _await_ready(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.run("kubectl", "get", "--raw", "/readyz")
            except subprocess.CalledProcessError:
                log = self._folder / "kube-apiserver.log"
                assert time.monotonic() < until, tail(log)
                time.sleep(0.2)
            else:
                return
