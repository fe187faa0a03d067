"""A machine in namespaces of this one, with systemd as its process 1."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packages.environments import COMMAND_S, INSTALL_S, clean
from tests.real.brokers.processes import spawn, tail
from tests.real.clients import wait_until

PYTHON = "/usr/bin/python3"
"""Outside of home directories, which the units hide."""
MANAGER = "/lib/systemd/systemd"
TOOLS = ("unshare", "nsenter", "pivot_root", "systemctl", MANAGER, PYTHON)
USABLE = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"

BOOT = Path(__file__).with_name("boot.sh")
NAMESPACES = ["unshare", "--pid", "--mount", "--cgroup", "--fork", "true"]


def or_skip() -> None:
    """Skip the test where there can be no such machine, and say why."""
    missing = [it for it in TOOLS if shutil.which(it) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    if os.geteuid() != 0:
        pytest.skip("only root may boot a machine")
    if subprocess.run([PYTHON, "-c", USABLE], check=False, capture_output=True).returncode:
        pytest.skip(f"{PYTHON} is older than 3.11, or has no venv")
    if subprocess.run(NAMESPACES, check=False, capture_output=True).returncode:
        pytest.skip("root may make no namespaces here")
    if _groups() is None:
        pytest.skip("there is no second version of control groups")


def _groups() -> Path | None:
    """Return the folder of this process' control group, None if there is none."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    at = next((it[1] for it in mounts if it[2] == "cgroup2"), None)
    mine = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((it.removeprefix("0::/") for it in mine if it.startswith("0::/")), None)
    return None if at is None or path is None else Path(at, path)


class Machine:
    def __init__(self, folder: Path, group: Path, shown: Sequence[Path]) -> None:
        self._log, self._group = folder / "machine.log", group
        (folder / "disk").mkdir()
        boot = ["sh", str(BOOT), str(folder / "disk"), str(group), *map(str, shown)]
        self._process = spawn(boot, self._log, clean())

    @property
    def _first(self) -> str:
        """The id, outside, of the process that has id 1 inside."""
        starter = self._process.pid
        return Path(f"/proc/{starter}/task/{starter}/children").read_text().strip()

    def file(self, path: str) -> Path:
        """Return where a file of the machine is for this process."""
        return Path(f"/proc/{self._first}/root", path.lstrip("/"))

    def write(self, path: str, text: str) -> None:
        self.file(path).parent.mkdir(parents=True, exist_ok=True)
        self.file(path).write_text(text)

    def attempt(self, command: str, folder: str = "/") -> subprocess.CompletedProcess[str]:
        """Run lines of a shell, as root; what they say is in `stdout`."""
        enter = ["nsenter", "--target", self._first, "--mount", "--pid", f"--wdns={folder}"]
        return subprocess.run(
            [*enter, "sh", "-euc", command],
            env=clean() | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_PAGER": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )

    def run(self, command: str, folder: str = "/") -> str:
        """The same, and fail if the last of them fails."""
        done = self.attempt(command, folder)
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
        return done.stdout

    def has_booted(self) -> bool:
        assert self._process.poll() is None, tail(self._log)
        if not self._first:
            return False
        return self.attempt("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def kill(self) -> None:
        (self._group / "cgroup.kill").write_text("1")
        self._process.wait(COMMAND_S)
        wait_until(lambda: "populated 0" in (self._group / "cgroup.events").read_text())
        for path, _, _ in os.walk(self._group, topdown=False):
            Path(path).rmdir()


@contextmanager
def booted(folder: Path, *shown: Path) -> Iterator[Machine]:
    """Yield a machine with the files of this one, of which it changes none, and its network.
    `shown`: folders that may be mounted here, and have to be there too."""
    or_skip()
    group = _groups()
    assert group is not None
    group /= f"gateway-machine-{os.getpid()}"
    group.mkdir()
    machine = Machine(folder, group, shown)
    try:
        wait_until(machine.has_booted)
        yield machine
    finally:
        machine.kill()
