"""The end of the demonstration: the clients' counts beside the gateway's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.lab.demo.figures import GatewayCounts, Snapshot
from gateway.lab.demo.plan import short_name
from gateway.lab.demo.table import WIDTH
from gateway.lab.demo.tally import ClientCounts


class Verdict(StrEnum):
    """The result of comparing the clients' counts of one topic with the gateway's."""

    EQUAL = "equal"
    REPEATED = "repeats"
    VISITED = "visitors"
    FAILED = "FAILED"
    LOST = "LOST"
    DIFFERENT = "DIFFERENT"


GOOD = frozenset({Verdict.EQUAL, Verdict.REPEATED, Verdict.VISITED})

NOTES = {
    Verdict.REPEATED: "the topic moved, or a connection was lost: what was under way then was sent "
    "or delivered again, and the gateway counted it again",
    Verdict.VISITED: "other clients used the topic too, and the gateway counted theirs as well",
    Verdict.FAILED: "the broker did not take all that was sent",
    Verdict.LOST: "messages with a receipt were not received",
    Verdict.DIFFERENT: "the gateway and the clients did not count the same",
}
"""Explanations of verdicts that need one."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The clients' counts of one topic, the gateway's counts, and the result of comparing them."""

    topic: str
    counts: ClientCounts
    seen: GatewayCounts
    verdict: Verdict


def compare(
    counts: Mapping[str, ClientCounts],
    last: Snapshot,
    moved: Collection[str] = (),
    visited: Collection[str] = (),
) -> list[SummaryRow]:
    """Compare the clients' counts with the gateway's last counts. Return a row for each topic.

    `moved`: topics that changed their broker. `visited`: topics that other clients used too.
    """
    rows = []
    for topic, each in counts.items():
        seen = last.topics.get(topic, GatewayCounts())
        disturbed = each.moved or topic in moved or last.broken > 0
        verdict = verdict_of(each, seen, disturbed=disturbed, visited=topic in visited)
        rows.append(SummaryRow(topic, each, seen, verdict))
    return rows


def verdict_of(
    counts: ClientCounts, seen: GatewayCounts, *, disturbed: bool, visited: bool
) -> Verdict:
    """Return the result of comparing the clients' counts of one topic with the gateway's.

    `disturbed`: the topic moved, or a connection was lost. Clients then resend messages without a
    receipt, and brokers redeliver unacknowledged ones, so the gateway may count more messages than
    the clients, never fewer. `visited`: other clients used the topic too.
    """
    if counts.lost:
        return Verdict.LOST
    if counts.failed:
        return Verdict.FAILED
    more_in, more_out = seen.messages_in - counts.sent, seen.messages_out - counts.received
    if more_in == more_out == counts.doubled == counts.foreign == 0:
        return Verdict.EQUAL
    if visited and more_in >= 0 and more_out >= 0:
        return Verdict.VISITED
    if disturbed and more_in >= 0 and more_out >= 0:
        return Verdict.REPEATED
    return Verdict.DIFFERENT


def all_good(rows: Sequence[SummaryRow]) -> bool:
    """Return whether messages were received, and the verdict on every topic is one of `GOOD`."""
    return _round_trips(rows) > 0 and all(row.verdict in GOOD for row in rows)


def conclusion(rows: Sequence[SummaryRow]) -> str:
    """Return one line of text that sums up the results of all topics."""
    if not _round_trips(rows):
        return "No message made the round trip."
    bad = [short_name(row.topic) for row in rows if row.verdict not in GOOD]
    if bad:
        return f"Not in order: {', '.join(bad)}."
    how = "as the clients count, and as the gateway counts"
    return f"{_round_trips(rows):,} messages made the round trip, {how}. None was lost."


def render(rows: Sequence[SummaryRow]) -> RenderableType:
    """Return the final table, followed by the conclusion."""
    table = Table(
        box=box.SIMPLE_HEAD, width=WIDTH, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("topic", ratio=1, no_wrap=True)
    for heading in ("sent", "receipts", "received", "doubled", "lost", "gateway in", "out"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in rows:
        style = "" if row.verdict in GOOD else "bold red"
        table.add_row(short_name(row.topic), *_cells(row), row.verdict.value, style=style)
    verdicts = dict.fromkeys(row.verdict for row in rows)
    notes = [Text(f"{each}: {NOTES[each]}") for each in verdicts if each in NOTES]
    return Group(Text(), table, Text(), *notes, Text(conclusion(rows), style="bold"))


def _cells(row: SummaryRow) -> list[str]:
    counts, seen = row.counts, row.seen
    numbers = (
        counts.sent,
        counts.acknowledged,
        counts.received,
        counts.doubled,
        counts.lost,
        seen.messages_in,
        seen.messages_out,
    )
    return [f"{number:,}" for number in numbers]


def _round_trips(rows: Sequence[SummaryRow]) -> int:
    return sum(row.counts.distinct for row in rows)
