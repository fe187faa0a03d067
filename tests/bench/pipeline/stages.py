"""What Spark wrote into its log of events: how long the tasks of each stage took."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple


class Stage(NamedTuple):
    """The durations of a stage's tasks in seconds; `most`: bytes that one of them read, from files
    or others."""

    name: str
    tasks: tuple[float, ...]
    most: int

    @property
    def total(self) -> float:
        return sum(self.tasks)

    @property
    def skew(self) -> float:
        """Return how many times longer the longest task took than the median."""
        return max(self.tasks) / max(median(self.tasks), 0.001)


def stages(folder: Path) -> list[Stage]:
    """Return the stages in the only log of a folder, the heaviest first."""
    (log,) = [it for it in folder.iterdir() if it.is_file() and not it.name.startswith(".")]
    names, tasks = dict[int, str](), defaultdict[int, list[tuple[float, int]]](list)
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if '"SparkListenerTaskEnd"' in line[:60]:
                event = json.loads(line)
                tasks[event["Stage ID"]].append(_task(event))
            elif '"SparkListenerStageCompleted"' in line[:60]:
                about = json.loads(line)["Stage Info"]
                names[about["Stage ID"]] = about["Stage Name"].partition(" at ")[0]
    found = [Stage(names.get(stage, "?"), *_columns(rows)) for stage, rows in tasks.items() if rows]
    return sorted(found, key=lambda it: -it.total)


def _task(event: dict[str, Any]) -> tuple[float, int]:
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    read = metrics.get("Input Metrics", {}).get("Bytes Read", 0)
    shuffled = metrics.get("Shuffle Read Metrics", {})
    read += shuffled.get("Remote Bytes Read", 0) + shuffled.get("Local Bytes Read", 0)
    return (info["Finish Time"] - info["Launch Time"]) / 1000, read


def _columns(rows: list[tuple[float, int]]) -> tuple[tuple[float, ...], int]:
    return tuple(seconds for seconds, _ in rows), max(read for _, read in rows)
