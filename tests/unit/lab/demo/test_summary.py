"""The clients' counts beside the gateway's."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from gateway.lab.demo.figures import GatewayCounts, Snapshot
from gateway.lab.demo.summary import (
    NOTES,
    SummaryRow,
    Verdict,
    all_good,
    compare,
    conclusion,
    render,
    verdict_of,
)
from gateway.lab.demo.table import WIDTH
from gateway.lab.demo.tally import ClientCounts

TOPIC = "persistent://metering/meters/readings"


def _counts(
    sent: int = 10,
    acknowledged: int = 10,
    failed: int = 0,
    received: int = 10,
    distinct: int = 10,
    foreign: int = 0,
    *,
    moved: bool = False,
) -> ClientCounts:
    return ClientCounts(sent, acknowledged, failed, received, distinct, foreign, moved)


def _row(counts: ClientCounts, messages_in: int = 10, messages_out: int = 10) -> SummaryRow:
    last = Snapshot(0.0, {TOPIC: GatewayCounts(messages_in, messages_out)})
    (row,) = compare({TOPIC: counts}, last)
    return row


def _text(row: SummaryRow) -> str:
    paper = Console(file=StringIO(), width=WIDTH, force_terminal=False)
    paper.print(render([row]))
    assert isinstance(paper.file, StringIO)
    return paper.file.getvalue()


@pytest.mark.parametrize(
    ("counts", "seen", "undisturbed", "disturbed", "visited"),
    [
        pytest.param(_counts(), (10, 10), "EQUAL", "EQUAL", "EQUAL", id="all the same"),
        pytest.param(_counts(), (12, 10), "DIFFERENT", "REPEATED", "VISITED", id="more were sent"),
        pytest.param(
            _counts(), (10, 13), "DIFFERENT", "REPEATED", "VISITED", id="more were delivered"
        ),
        pytest.param(
            _counts(received=12), (10, 12), "DIFFERENT", "REPEATED", "VISITED", id="some twice"
        ),
        pytest.param(
            _counts(), (9, 10), "DIFFERENT", "DIFFERENT", "DIFFERENT", id="the gateway missed some"
        ),
        pytest.param(
            _counts(), (10, 9), "DIFFERENT", "DIFFERENT", "DIFFERENT", id="came from nowhere"
        ),
        pytest.param(
            _counts(received=9, distinct=9), (10, 10), "LOST", "LOST", "LOST", id="one is lost"
        ),
        pytest.param(
            _counts(sent=11, failed=1), (11, 10), "FAILED", "FAILED", "FAILED", id="one failed"
        ),
    ],
)
def test_counts_determine_the_verdict(
    counts: ClientCounts, seen: tuple[int, int], undisturbed: str, disturbed: str, visited: str
) -> None:
    figures = GatewayCounts(*seen)
    found = [
        verdict_of(counts, figures, disturbed=it == "disturbed", visited=it == "visited").name
        for it in ("undisturbed", "disturbed", "visited")
    ]
    assert found == [undisturbed, disturbed, visited]


def test_a_move_explains_repeats_on_its_own_topic() -> None:
    assert _row(_counts(moved=True), 12).verdict is Verdict.REPEATED
    assert _row(_counts(moved=False), 12).verdict is Verdict.DIFFERENT
    last = Snapshot(0.0, {TOPIC: GatewayCounts(12, 10)})
    (row,) = compare({TOPIC: _counts()}, last, moved={TOPIC})
    assert row.verdict is Verdict.REPEATED, "the brokers saw it, if the clients did not"


def test_a_broken_connection_explains_repeats_on_all() -> None:
    last = Snapshot(0.0, {TOPIC: GatewayCounts(12, 10)}, broken=1)
    (row,) = compare({TOPIC: _counts()}, last)
    assert row.verdict is Verdict.REPEATED


def test_visitors_explain_additional_messages_on_their_topics() -> None:
    last = Snapshot(0.0, {TOPIC: GatewayCounts(10, 20)})
    (row,) = compare({TOPIC: _counts()}, last, visited={TOPIC})
    assert row.verdict is Verdict.VISITED


def test_a_topic_that_the_gateway_never_saw_is_different() -> None:
    (row,) = compare({TOPIC: _counts()}, Snapshot(0.0, {}))
    assert row.verdict is Verdict.DIFFERENT


def test_a_good_conclusion_counts_round_trips() -> None:
    rows = [_row(_counts()), _row(_counts(moved=True), 12)]
    assert all_good(rows)
    assert conclusion(rows).startswith("20 messages made the round trip")


def test_without_a_round_trip_the_result_is_bad() -> None:
    rows = [_row(_counts(0, 0, 0, 0, 0), 0, 0)]
    assert not all_good(rows)
    assert conclusion(rows) == "No message made the round trip."


def test_one_bad_topic_fails_the_result_and_is_named() -> None:
    rows = [_row(_counts()), _row(_counts(), 9)]
    assert not all_good(rows)
    assert conclusion(rows) == "Not in order: metering/meters/readings."


def test_the_table_shows_both_counts_and_fits_the_width() -> None:
    text = _text(_row(_counts(moved=True), 12))
    (line,) = [line for line in text.splitlines() if "metering/meters/readings" in line]
    assert line.split()[1:] == ["10", "10", "10", "0", "0", "12", "10", "repeats"]
    assert NOTES[Verdict.REPEATED][:30] in text


@pytest.mark.parametrize("verdict", [it for it in Verdict if it is not Verdict.EQUAL])
def test_unclear_verdicts_are_explained(verdict: Verdict) -> None:
    assert NOTES[verdict]
