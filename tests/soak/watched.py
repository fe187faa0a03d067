"""`python -m tests.soak.watched REPORT COLLECTOR run FILE`: a gateway that is observed from within.

It reports what no metric does: the most bytes that the data plane ever kept, the longest step of a
task, the time of each garbage collection, and the number of memory blocks of its objects after one
more. SIGUSR1 writes REPORT and resets all counts; the report has a serial number. SIGUSR2 applies
the setting COLLECTOR, and then writes REPORT too.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from gateway.__main__ import main
from gateway.plane import reactor
from gateway.plane.memory import Memory


def _collect_and_freeze() -> None:
    gc.collect()
    gc.freeze()


COLLECTORS: dict[str, Callable[[], None]] = {
    "as it is": lambda: None,
    "collected and frozen again": _collect_and_freeze,
    "oldest rarely": lambda: gc.set_threshold(700, 10, 1000),
    "off": gc.disable,
}
"""The settings for SIGUSR2; the gateway itself froze its objects when it began to listen."""


class Watched(Memory):
    """Records the most bytes used."""

    __slots__ = ("_now",)
    peak = 0

    @property
    def used(self) -> int:
        return self._now

    @used.setter
    def used(self, value: int) -> None:
        self._now = value
        Watched.peak = max(Watched.peak, value)


class Pauses:
    """The collections of each generation: their number, the longest, and the sum, in milliseconds
    of CPU time, which other processes on a busy machine do not affect."""

    def __init__(self) -> None:
        self._began = 0.0
        self.generations: list[list[float]] = [[], [], []]

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            took = time.thread_time() - self._began
            self.generations[info["generation"]].append(1000 * took)

    def summary(self) -> list[dict[str, float]]:
        return [
            {"count": len(times), "longest": max(times, default=0.0), "total": sum(times)}
            for times in self.generations
        ]


class Steps(trio.abc.Instrument):
    """The longest step of a task, from one await to the next, during which no other client is
    served. Milliseconds of CPU time."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._began: float | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        began = self._began  # a signal may reset it between any two lines
        took = 0.0 if began is None else 1000 * (time.thread_time() - began)
        if self._began is began:
            self.longest = max(self.longest, took)

    def begin_anew(self) -> None:
        """Reset. The current step does not count, since it belongs to the time before."""
        self.longest, self._began = 0.0, None


def _watch(report: Path, collector: str) -> None:
    pauses, steps, written = Pauses(), Steps(), 0

    def write(*_: Any) -> None:
        nonlocal written
        written += 1
        figures = {"written": written, "peak": Watched.peak, "pauses": pauses.summary()}
        figures["step"] = steps.longest
        pauses.generations = [[], [], []]  # before blocks are counted, since it has many of its own
        gc.collect()
        figures["blocks"] = sys.getallocatedblocks()
        whole = report.with_suffix(".new")
        whole.write_text(json.dumps(figures))
        whole.rename(report)
        Watched.peak = 0
        steps.begin_anew()

    def set_collector(*_: Any) -> None:
        COLLECTORS[collector]()
        write()

    vars(reactor)["Memory"] = Watched
    vars(trio)["run"] = partial(trio.run, instruments=[steps])
    gc.callbacks.append(pauses)
    signal.signal(signal.SIGUSR1, write)
    signal.signal(signal.SIGUSR2, set_collector)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), sys.argv[2])
    sys.exit(main(sys.argv[3:]))
