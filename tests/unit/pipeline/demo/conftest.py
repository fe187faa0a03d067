"""A small made-up month, written and read once for all tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.demo.month import write_month
from gateway.pipeline.demo.planted import Planted
from gateway.usage import reading
from gateway.usage.reading import Ledger
from gateway.usage.records import VERSION, Event, Usage

MONDAY = date(2026, 11, 2)


@dataclass(frozen=True)
class Month:
    """What was written, and what the reader of real records reads of it. `strange`: of another
    version."""

    folder: Path
    planted: Planted
    usage: list[Usage]
    strange: list[Usage]
    events: list[Event]
    ledger: Ledger
    progress: list[tuple[int, int]]


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Month:
    folder = tmp_path_factory.mktemp("month")
    told: list[tuple[int, int]] = []
    planted = write_month(folder, MONDAY, days=3, tenants=4, progress=lambda *it: told.append(it))
    ledger = Ledger()
    records = list(reading.usage(folder, ledger))
    good = [it for it in records if it.v == VERSION]
    strange = [it for it in records if it.v != VERSION]
    events = list(reading.events(folder))
    return Month(folder, planted, good, strange, events, ledger, told)
