"""The figures made from clients' records, and their storage and presentation."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.loads import Stream, read
from tests.clients.python.load import Stream as Noted
from tests.clients.python.load import write
from tests.support.results import append

from . import results, table
from .__main__ import main
from .figures import SECOND, Waits, Window, failures, jain, per_step
from .picture import draw
from .results import Passed, Trial
from .scenarios import LIMITED, Limit, Unit
from .stored import Stored


def stream(*messages: tuple[float, float], error: str | None = None) -> Stream:
    """Return a stream sent and settled at these seconds."""
    sent = [int(sent * SECOND) for sent, _ in messages]
    settled = [int(settled * SECOND) for _, settled in messages]
    return Stream("t", sent, settled, [error if when else None for when in settled])


def test_a_program_s_records_are_read(tmp_path: Path) -> None:
    noted = Noted("t", 1.0, "p.0", ["late"])
    noted.sent.extend([5, 6, 7])
    noted.settled.extend([8, 9, 0])
    noted.codes.extend([0, 1, 0])
    write(tmp_path / "file", [noted, noted], ["late"])
    found = read(tmp_path / "file")
    assert [list(it.acknowledged) for it in found] == [[0], [0]]
    assert [list(it.receipts) for it in found] == [[(5, 8)], [(5, 8)]]
    assert found[0].errors == [None, "late", None]


def test_messages_are_counted_once_all_have_started_and_warmed_up() -> None:
    streams = [stream((1, 2), (1, 5)), stream((3, 4), (3, 6))]
    window = Window.behind(streams, warm_up=2, seconds=1)
    assert window.count(when for it in streams for _, when in it.receipts) == 1


def test_waits_are_taken_from_receipts() -> None:
    receipts = [(0, n * SECOND) for n in range(1, 101)]
    assert Waits.of(receipts) == Waits(51, 100, 100)
    assert Waits.of([]) == Waits()


def test_failures_are_counted_by_error() -> None:
    assert failures([stream((1, 2), (1, 0), error="late")]) == {"late": 1}


@pytest.mark.parametrize(("values", "index"), [([3, 3, 3], 1.0), ([9, 0, 0], 1 / 3), ([0], 1.0)])
def test_fairness_is_one_if_all_have_the_same(values: Sequence[float], index: float) -> None:
    assert jain(values) == pytest.approx(index)


def test_a_curve_has_rates() -> None:
    moments = [int(second * SECOND) for second in (0.1, 0.2, 0.6)]
    assert per_step(moments, 0, 0.5, 3) == [4.0, 2.0, 0.0]


def test_doubled_and_disordered_messages_are_found() -> None:
    found = Stored()
    for content in (b"0 a.0   ", b"2 a.0", b"1 a.0", b"2 a.0", b"1 b.0"):
        found.note(content)
    assert (found.count, found.doubled, found.disordered) == (5, 1, 1)
    assert found.numbers == {"a.0": {0, 1, 2}, "b.0": {1}}


def test_gateways_and_brokers_get_the_same_limit() -> None:
    assert Limit(10, Unit.BYTES).rule()["limit"] == {"publish": {"bytes": "10B/s"}}
    assert list(Limit(10, Unit.BYTES).policy.values()) == [-1, 10]
    assert list(Limit(10).policy.values()) == [10, -1]


def trial(passed: float, *, limit: float = 100, batch: int = 0, **others: object) -> Trial:
    flow = Passed(LIMITED, 1, 2 * passed, passed, waits=Waits(1, 2, 3), stored=7)
    who = ("accuracy", "single", "go", "gateway", "now", limit, "messages")
    return Trial(*who, seconds=10, offer={"batch": batch}, flows=(flow,), **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("passed", "batch", "exact"),
    [(101, 0, True), (99, 0, True), (101.2, 0, False), (109, 100, True), (111, 100, False)],
)
def test_a_limit_is_exact_to_a_hundredth_or_a_frame(passed: float, batch: int, exact: bool) -> None:
    assert table.is_exact(trial(passed, batch=batch)) is exact


def test_results_are_stored_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = {"step": 0.25, "offered": [4.0, 4.0], "passed": [2.0, 1.0]}
    trials = [trial(100.5), trial(102.0), trial(1.0, curve=curve)]
    file, picture = tmp_path / "new" / "results.jsonl", tmp_path / "picture.svg"
    for each in trials:
        append(each, file)
    assert list(results.read(file)) == trials
    assert main(["--table", "--results", str(file), "--picture", str(picture)]) == 0
    assert "| 100/s | single | - | **+2.00 %** | - | - | - |" in capsys.readouterr().out
    assert picture.read_text().count("<path") == 3 + 4


def test_a_picture_has_a_panel_for_each_way(tmp_path: Path) -> None:
    curve = {"step": 0.25, "offered": [4.0, 4.0], "passed": [2.0, 1.0]}
    draw([trial(1, curve=curve), trial(2, curve=curve), trial(3)], tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text().count("limited by the gateway") == 1
