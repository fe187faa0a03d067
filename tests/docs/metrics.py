"""`python -m tests.docs.metrics`: writes the tables of docs/metrics.md from the declared families.

A test holds the page to the code. What is counted alike for tenants, principals and topics stands
on the page once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from gateway.telemetry.families import (
    PRINCIPAL,
    SECTIONS,
    TENANT,
    TOPIC,
    Family,
    Kind,
    Merge,
    Section,
    Traffic,
)
from tests.docs import regions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"

_MARKS = {Merge.SUM: "", Merge.LEAST: " *(least)*", Merge.MOST: " *(most)*"}
"""Behind a meaning: how workers' values are merged where they are not added up."""

_TRAFFIC: Mapping[str, Traffic] = {"tenant": TENANT, "principal": PRINCIPAL, "topic": TOPIC}
"""What is counted alike, by whose it is."""

_ALIKE: Mapping[str, list[Family]] = {
    field.name: [getattr(it, field.name) for it in _TRAFFIC.values()] for field in fields(Traffic)
}

_ONCE = {family.exposed for families in _ALIKE.values() for family in families}


def tables() -> str:
    """Return the generated part of the page."""
    return "\n".join([*_traffic(), *(it for section in SECTIONS for it in _section(section))])


def _traffic() -> Iterator[str]:
    yield "### Traffic"
    yield ""
    yield "In these names `OF` stands for one of:"
    yield ""
    yield "| `OF` | Labels | Path |"
    yield "|---|---|---|"
    for of, traffic in _TRAFFIC.items():
        family = traffic.producers
        path = "`/metrics/topics`." if of == "topic" else "`/metrics`."
        yield f"| `{of}` | {_labels(family.labels)} | {path}{_needed(family)} |"
    yield ""
    yield from _table(map(_row_of_all, _ALIKE.values()))


def _row_of_all(families: list[Family]) -> str:
    """Return the row of what is counted alike. Its texts and further labels are the same."""
    family = families[0]
    name = family.exposed.replace("_tenant_", "_OF_", 1)
    labels = family.labels[len(TENANT.producers.labels) :]
    return f"| {_labelled(name, labels)} | {_meaning(family)}{_needed(family)} |"


def _section(section: Section) -> Iterator[str]:
    own = [it for it in section.families if it.exposed not in _ONCE]
    if not own:
        return
    yield f"### {section.title}"
    yield ""
    if section.needs:
        yield f"Only with {section.needs}."
        yield ""
    yield from _table(_row(it, section) for it in own if not _is_usual(it))
    usual = ", ".join(f"`{it.exposed}`{_MARKS[it.merge]}" for it in own if _is_usual(it))
    if usual:
        yield f"Prometheus' usual metrics of a process: {usual}."
        yield ""


def _is_usual(family: Family) -> bool:
    """Return whether all clients of Prometheus have this metric, so that its name says enough."""
    return family.name.startswith("process_")


def _table(rows: Iterable[str]) -> Iterator[str]:
    yield "| Metric and labels | Meaning |"
    yield "|---|---|"
    yield from rows
    yield ""


def _row(family: Family, section: Section) -> str:
    needed = "" if family.needs == section.needs else _needed(family)
    return f"| {_labelled(family.exposed, family.labels)} | {_meaning(family)}{needed} |"


def _meaning(family: Family) -> str:
    text = re.sub(r"'([^' ]+)'", r"`\1`", family.text)
    return text if family.kind is Kind.INFO else text + _MARKS[family.merge]


def _needed(family: Family) -> str:
    return f" Only with {family.needs}." if family.needs else ""


def _labelled(name: str, labels: Sequence[str]) -> str:
    """Return a metric's name, and behind it the names of its labels, if it has any."""
    return f"`{name}` {_labels(labels)}" if labels else f"`{name}`"


def _labels(names: Iterable[str]) -> str:
    return f"`{{{','.join(names)}}}`"


TEXTS = {"metrics": tables}


if __name__ == "__main__":
    regions.write(PAGE, TEXTS)
