"""Expositions in OpenMetrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.openmetrics import parser
from prometheus_client.parser import text_string_to_metric_families as parse_text

from gateway.telemetry.families import FAMILIES, Kind
from gateway.telemetry.open_metrics import converted
from tests.support.metrics import exposition

parse: Callable[[str], Iterable[Any]] = parser.text_string_to_metric_families

ONCE = exposition()
CONVERTED = b"".join(converted([ONCE.encode()])).decode()


def test_all_families_can_be_read() -> None:
    found = {(it.name, it.type) for it in parse(CONVERTED)}
    assert found == {(it.name, it.kind.value) for it in FAMILIES.values()}


def test_the_samples_are_the_same() -> None:
    before = [sample for family in parse_text(ONCE) for sample in family.samples]
    after = [sample for family in parse(CONVERTED) for sample in family.samples]
    assert [(it.name, it.labels, it.value) for it in after] == [
        (it.name, it.labels, it.value) for it in before
    ]


def test_only_comments_change() -> None:
    changed = set(CONVERTED.splitlines()) - set(ONCE.splitlines())
    assert all(line.startswith("#") for line in changed)
    renamed = {it.name for it in FAMILIES.values() if it.kind in {Kind.COUNTER, Kind.INFO}}
    assert {line.split()[2] for line in changed if line != "# EOF"} == renamed


def test_the_end_is_marked() -> None:
    assert CONVERTED.endswith("\n# EOF\n")
    assert b"".join(converted([])) == b"# EOF\n"


def test_chunks_may_be_cut_between_any_lines() -> None:
    chunks = [f"{line}\n".encode() for line in re.split("\n", ONCE)[:-1]]
    assert b"".join(converted(chunks)).decode() == CONVERTED
