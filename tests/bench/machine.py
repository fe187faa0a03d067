"""The machine: which cores are used, which Python runs, and how busy other processes are."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")

ANY = -1
"""In place of a core: whichever is free."""

LOOK = 0.5
"""Seconds over which foreign load is measured: fifty ticks of its clock."""


@dataclass(frozen=True, slots=True)
class Cores:
    """`load` and `proxy` are the same core on a machine with one, or ANY."""

    load: int
    proxy: int

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the first two cores that this process may use."""
        first, *others = sorted(os.sched_getaffinity(0))
        return cls(first, others[0] if others else first)

    @property
    def apart(self) -> bool:
        return self.load != self.proxy


def descriptors() -> int:
    """Return how many files one process may have open, after raising it to the maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def description() -> str:
    """Return kernel and cores in one line."""
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, {_model()}"


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


# -- interpreters ----------------------------------------------------------------------------

_ASK = """
import json, platform, sys, sysconfig
flags = " ".join(str(sysconfig.get_config_var(name)) for name in (
    "CONFIG_ARGS", "PY_CFLAGS_NODIST", "PY_CORE_CFLAGS", "PY_LDFLAGS_NODIST"))
print(json.dumps([platform.python_implementation(), platform.python_version(), flags, sys.prefix]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the gateway."""

    path: str
    version: str
    build: str

    @classmethod
    def chosen(cls) -> Self:
        """Return `BENCH_PYTHON`, else the running interpreter."""
        path = os.environ.get("BENCH_PYTHON", sys.executable)
        asked = subprocess.run([path, "-c", _ASK], check=True, capture_output=True, timeout=20)
        name, version, flags, prefix = json.loads(asked.stdout)
        return cls(path, f"{name} {version}", _build(flags, prefix))

    @property
    def has_our_packages(self) -> bool:
        """Return True if the packages of this process's interpreter fit this one too."""
        return self.version.rpartition(".")[0].endswith(" {}.{}".format(*sys.version_info[:2]))


def _build(flags: str, prefix: str) -> str:
    profiled = "--enable-optimizations" in flags or "-fprofile-use" in flags
    linked = "--with-lto" in flags or "-flto" in flags
    if profiled or linked:
        return " and ".join(["PGO"] * profiled + ["LTO"] * linked)
    if prefix == "/usr" and Path("/etc/debian_version").exists():
        return "Debian's, with PGO and LTO"  # its flags do not tell, its rules file does
    return "without PGO and LTO"


# -- disturbances ----------------------------------------------------------------------------


class Foreign:
    """Measures the use of cores by processes outside a sample, from `begin` to `share`. `proxy`:
    its processes, which belong to the sample."""

    def __init__(self, proxy: Sequence[int] = ()) -> None:
        self._proxy = proxy
        self._began = time.monotonic()
        self._before = self._used()

    def share(self) -> float:
        """Return the number of cores. Steal time counts, being unavailable to the sample too."""
        span = time.monotonic() - self._began
        return max(0.0, (self._used() - self._before) / span)

    def _used(self) -> float:
        ours = sum(os.times()[:4])  # includes finished children
        return _busy_seconds() - ours - sum(map(cpu_seconds, self._proxy))


def wait_for_calm(share: float, patience: float) -> None:
    """Wait until other processes use less than `share` of a core, or for `patience` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        foreign = Foreign()
        time.sleep(LOOK)
        if foreign.share() <= share:
            return


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _io_wait, irq, soft_irq, steal = map(int, fields[:8])
    return (user + nice + system + irq + soft_irq + steal) / TICKS


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def family(pid: int) -> list[int]:
    """Return a process and all that it has started, and that these have."""
    return descendants(pid, _parents())


def descendants(pid: int, parents: Iterable[tuple[int, int]]) -> list[int]:
    """Return a process and those below it. `parents`: of each process its own id and its
    parent's."""
    children = defaultdict[int, list[int]](list)
    for child, parent in parents:
        children[parent].append(child)
    found, new = [pid], [pid]
    while new:
        new = [child for parent in new for child in children[parent]]
        found += new
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            yield int(file.parent.name), int(file.read_text().rpartition(")")[2].split()[1])


def memory(pid: int) -> dict[str, int]:
    """Return the bytes of a process by the names of smaps_rollup: Rss, Pss, Anonymous and
    others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {
        name: int(rest.split()[0]) * 1024 for name, _, rest in (li.partition(":") for li in lines)
    }
