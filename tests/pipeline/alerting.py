"""A cluster with a big and a small tenant, as files of records tell of it while they come."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import msgspec

from gateway.pipeline.lake import Lake
from gateway.pipeline.neighbours import Thresholds
from gateway.usage.records import Usage
from tests.pipeline.samples import Folder, table
from tests.pipeline.test_neighbours import BEGIN, MUCH, QUICK, SLOW, USUAL, Scene, at

T = Thresholds()
NOW = at(20)
DAYS = ["2026-11-01"]

OF_THEN = (
    "import sys; from gateway.pipeline import command; "
    f"command._now_ms = lambda: {NOW}; sys.exit(command.main(sys.argv[1:]))"
)
THEN = (sys.executable, "-c", OF_THEN)
"""The command `gateway pipeline` at the time of the records, which alone are news then."""


class Gateway:
    """A gateway that writes files of records, for a cluster with a big and a small tenant."""

    def __init__(self, records: Folder) -> None:
        self._folder, self._seq = records, 0

    def slot(self, number: int, *, odd: bool = False) -> list[Usage]:
        """Return the records of a slot."""
        scene = Scene("main")
        scene.add("big", at(number), MUCH if odd else USUAL)
        scene.add("small", at(number), USUAL, SLOW if odd else QUICK)
        return self.numbered(scene.records)

    def numbered(self, records: Iterable[Usage]) -> list[Usage]:
        found = []
        for it in records:
            self._seq += 1
            found.append(msgspec.structs.replace(it, seq=self._seq))
        return found

    def close(self, *records: Sequence[Usage | str]) -> None:
        """Add a file."""
        self._folder.add([it for part in records for it in part], name=f"{self._seq}.jsonl.gz")


def know(lake: Lake) -> None:
    """Have tables know what is usual: from an hour of the day before."""
    scene = Scene("main")
    for number in range(-288, -276):
        scene.add("big", at(number), USUAL)
        scene.add("small", at(number), USUAL)
    change = lake.change("ingest", BEGIN)
    change.replace("usage", table(lake.spark, scene.records), ["2026-11-01"])
    change.commit()
