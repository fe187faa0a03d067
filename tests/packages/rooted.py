"""Builds an image of deploy/images on a base made of Debian's packages, and runs its process.

No registry is asked: the base is a root that mmdebstrap makes, and what is built stays in a folder.
The process runs in the unpacked image as a container engine would start it: as the image's user, by
its entry point, as process 1, with a root that is read-only and a network of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.packages.building import ROOT
from tests.packages.environments import COMMAND_S, INSTALL_S, START_S, STOP_S, clean, run
from tests.real.brokers.processes import spawn, tail

TOOLS = ("buildah", "mmdebstrap", "unshare", "nsenter", "chroot", "ip")
SOURCES = ("sources.list.d/debian.sources", "sources.list")
"""Below /etc/apt, where Debian's packages come from."""

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Whom Debian trusts, and this machine beside."""

PYTHON = "localhost/python"
"""The base: what an official image of Python has that the Dockerfiles use."""


class Engine:
    """Builds images, and keeps them in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        places = ("--root", folder / "images", "--runroot", folder / "run")
        self._buildah = ("buildah", *places, "--storage-driver", "overlay")

    def call(self, *words: object, patience: float = COMMAND_S) -> str:
        return run([*self._buildah, *words], self._folder, patience).strip()

    def add_base(self) -> str:
        """Make the base, and return its name with its digest. Skips the test if Debian's packages
        cannot be had."""
        archive = self._folder / "base.tar"
        container = self.call("from", "scratch")
        _bootstrap(archive)
        self.call("add", "--quiet", container, archive, "/", patience=INSTALL_S)
        archive.unlink()
        self.call("config", "--env", "PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin", container)
        self.call("commit", "--quiet", "--rm", container, PYTHON, patience=INSTALL_S)
        return f"{PYTHON}@{self.call('images', '--format', '{{.Digest}}', PYTHON)}"

    def build(self, name: str, **arguments: str) -> str:
        """Build the image of a folder of deploy/images, and return its id."""
        dockerfile = ROOT / "deploy" / "images" / name / "Dockerfile"
        given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        # The format that knows health checks; and the authorities that this machine trusts.
        fixed = ("--format=docker", "--isolation=chroot", "--pull-never", "--quiet")
        trusted = f"--volume={AUTHORITIES}:{AUTHORITIES}:ro"
        ignored = f"--ignorefile={dockerfile}.dockerignore"
        words = ("bud", *fixed, trusted, ignored, *given, f"--file={dockerfile}", ROOT)
        return self.call(*words, patience=INSTALL_S).splitlines()[-1]

    def unpack(self, image: str) -> tuple[Path, dict[str, Any]]:
        """Return the root of an image, and its settings."""
        inspected = json.loads(self.call("inspect", "--type=image", image))
        container = self.call("from", "--pull-never", image)
        return Path(self.call("mount", container)), inspected["Docker"]["config"]


def _bootstrap(archive: Path) -> None:
    sources = next((it for it in SOURCES if Path("/etc/apt", it).is_file()), None)
    if sources is None:
        pytest.skip("this machine does not say where Debian's packages come from")
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if line
    )
    done = subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"),
            "--include=python3-venv,ca-certificates",
            # `pip` and `python`, where images of Python have them.
            '--customize-hook=chroot "$1" python3 -m venv /usr/local',
            *(release["VERSION_CODENAME"], str(archive), str(Path("/etc/apt", sources))),
        ],
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"Debian's packages cannot be had: {done.stderr.strip()[-200:]}")


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    """Yield an engine, and remove all that it made. Skips the test where there can be none."""
    missing = [it for it in TOOLS if shutil.which(it) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    if os.geteuid() != 0:
        pytest.skip("only root may make the root of an image")
    made = Engine(folder)
    try:
        made.call("info")
    except AssertionError as error:
        pytest.skip(f"buildah cannot keep images here: {str(error)[-200:]}")
    try:
        yield made
    finally:
        made.call("umount", "--all")
        shutil.rmtree(folder)


ENTER = """\
set -eu
root=$1 files=$2
shift 2
ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$files/etc" "$root/etc/broker-gateway"
mount --bind "$files/hosts" "$root/etc/hosts"
mount --bind "$files/state" "$root/var/lib/broker-gateway"
mount -o remount,bind,ro "$root"
exec "$@"
"""
"""What a container engine does in namespaces of its own before it starts a process."""


class Files:
    """What is mounted into a root, in folders of one folder."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder = folder
        self.etc, self.state = folder / "etc", folder / "state"
        for path in (self.etc / "secrets", self.state):
            path.mkdir(parents=True)
        user, group = map(int, config["User"].split(":"))
        os.chown(self.state, user, group)
        (folder / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")


class Contained:
    """A process in the root of an image. `arguments`: other ones for its entry point."""

    def __init__(
        self, root: Path, config: Mapping[str, Any], files: Files, arguments: Sequence[str] = ()
    ) -> None:
        self._config = config
        self._log = files.folder / "contained.log"
        user = f"--userspec={config['User']}"
        command = [*config["Entrypoint"], *(arguments or config["Cmd"])]
        inside = ["chroot", user, str(root), *self._with_settings(command)]
        namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child"]
        entering = ["sh", "-c", ENTER, "sh", str(root), str(files.folder)]
        self._process = spawn(["unshare", *namespaces, *entering, *inside], self._log, clean())

    def _with_settings(self, command: Sequence[str]) -> list[str]:
        settings = ["env", "-i", *self._config["Env"]]
        go = f'cd {self._config["WorkingDir"]} && exec "$@"'
        return [*settings, "sh", "-c", go, "sh", *command]

    def _first(self) -> int | None:
        """Return the id, outside, of the process that has id 1 inside; None before it is there."""
        starter = self._process.pid
        children = Path(f"/proc/{starter}/task/{starter}/children").read_text().split()
        return int(children[0]) if children else None

    def is_healthy(self) -> bool:
        """Return what the image's health check says."""
        kind, *check = self._config["Healthcheck"]["Test"]
        assert kind == "CMD"
        first = self._first()
        if first is None:
            return False
        enter = ["nsenter", "--target", str(first), "--mount", "--net", "--root"]
        done = subprocess.run(
            [*enter, *self._with_settings(check)],
            capture_output=True,
            timeout=COMMAND_S,
            check=False,
        )
        return done.returncode == 0

    def wait(self) -> None:
        """Return when the process is healthy."""
        deadline = time.monotonic() + START_S
        while not self.is_healthy():
            assert self._process.poll() is None, tail(self._log)
            assert time.monotonic() < deadline, tail(self._log)
            time.sleep(0.1)

    def user(self) -> tuple[int, int]:
        status = Path(f"/proc/{self._first()}/status").read_text().splitlines()
        found = {line.split(":")[0]: line.split()[1:] for line in status}
        return int(found["Uid"][0]), int(found["Gid"][0])

    def stop(self) -> int:
        """Stop the process as an engine does, and return its status."""
        first = self._first()
        assert first is not None
        os.kill(first, signal.SIGTERM)
        return self._process.wait(STOP_S)

    def ended(self) -> tuple[int, str]:
        """Wait for the end of the process, and return its status and what it said."""
        return self._process.wait(INSTALL_S), self._log.read_text(errors="replace")

    def kill(self) -> None:
        if self._process.poll() is None:
            # It has another user, so the kernel does not end it with the process that started it.
            first = self._first()
            if first is not None:
                os.kill(first, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
