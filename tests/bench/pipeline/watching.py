"""Runs a command, and measures it with all its descendants: time, CPU, memory and disk."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from tests.bench.machine import cpu_seconds, memory

LOOK_S = 0.25
"""Between looks at processes: what lives shorter is not seen."""

LOOKS_OF_DISK = 8
"""Looks at processes for each at the disk, which has thousands of files."""


class Measured(NamedTuple):
    """What a command took. `cpu_s`: of all its processes. `memory`: the most bytes that they had at
    a time, shared ones once. `disk`: the most bytes in the folder."""

    seconds: float
    cpu_s: float
    memory: int
    disk: int
    output: str


class FailedError(Exception):
    """A command that is measured has failed."""


def measured(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Measured:
    """Run a command to its end. `folder`: where it writes. Raises `FailedError`."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watch = _Watch(process.pid, folder)
    watch.start()
    try:
        output, _ = process.communicate()
        seconds = time.monotonic() - began
    finally:
        process.kill()
        watch.end()
    if process.returncode:
        raise FailedError(f"{' '.join(command)}: status {process.returncode}\n{output[-3000:]}")
    return Measured(seconds, watch.cpu_s, watch.memory, watch.disk, output)


class _Watch(Thread):
    def __init__(self, process: int, folder: Path) -> None:
        super().__init__(daemon=True)
        self._process, self._folder = process, folder
        self._cpu: dict[int, float] = {}
        self._over = Event()
        self.memory = self.disk = 0

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu.values())

    def run(self) -> None:
        looks = 0
        while not self._over.wait(LOOK_S):
            now = 0
            for process in descendants(self._process):
                with suppress(OSError, IndexError, ValueError):  # it has ended
                    self._cpu[process] = cpu_seconds(process)
                    now += memory(process)["Pss"]
            self.memory = max(self.memory, now)
            if looks % LOOKS_OF_DISK == 0:
                self.disk = max(self.disk, size(self._folder))
            looks += 1

    def end(self) -> None:
        self._over.set()
        self.join()
        self.disk = max(self.disk, size(self._folder))


def descendants(process: int) -> list[int]:
    """Return a process and all that it and others of them started."""
    found = [process]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total
