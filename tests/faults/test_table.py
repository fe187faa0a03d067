"""Results are stored and added up."""

from pathlib import Path

import pytest

from tests.clients.python.client import Received, ranges
from tests.support.results import append

from . import table
from .__main__ import main
from .results import Outcome, Trial, read


def trial(at: str, *outcomes: Outcome, **others: object) -> Trial:
    return Trial("move", "modular", at, outcomes, **others)  # type: ignore[arg-type]


def row(text: str, *key: str) -> list[str]:
    """Return the cells after these."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (found,) = (line[len(key) :] for line in lines if tuple(line[: len(key)]) == key)
    return found


def test_trials_of_several_runs_are_read_in_order(tmp_path: Path) -> None:
    told = Outcome("go", "direct", acknowledged=3, errors=("late",))
    trials = [trial("1", told), trial("2", told, failure="hung"), trial("3")]
    for each in trials:
        append(each, tmp_path / "new" / "results.jsonl")
    assert list(read(tmp_path / "new" / "results.jsonl")) == trials


def test_results_are_shown_without_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(trial("1", Outcome("go", "direct", acknowledged=3)), tmp_path / "results.jsonl")
    assert main(["--table", "--results", str(tmp_path / "results.jsonl")]) == 0
    shown = capsys.readouterr().out
    shown = shown.partition("\n\n")[0]
    assert row(shown, "move", "modular", "go", "direct")[:2] == ["1", "3"]


def test_counts_of_rounds_are_added_up_and_times_are_not() -> None:
    first = Outcome("go", "direct", acknowledged=5, doubled=1, longest=1.0, errors=("late: 1",))
    second = Outcome(
        "go", "direct", acknowledged=7, doubled=3, longest=3.0, errors=("late: 2", "late: 3")
    )
    cells = row(
        table.clients([trial("1", first), trial("2", second)]), "move", "modular", "go", "direct"
    )
    assert cells == ["2", "12", "0", "0", "4", "0", "0", "0", "2.00", "3.00", "late 2"]


def test_all_clients_have_a_line_of_their_own() -> None:
    outcomes = [Outcome(name, "through", received=2, doubled=1) for name in ("go", "java")]
    cells = row(table.clients([trial("1", *outcomes)]), "move", "modular", "all", "through")
    assert (cells[0], cells[2], cells[4]) == ("1", "4", "2")


def test_each_round_has_a_line() -> None:
    first = [Outcome(name, "through", doubled=1) for name in ("go", "java")]
    trials = [trial("1", *first), trial("2", Outcome("go", "through", doubled=5))]
    assert row(table.rounds(trials), "move", "modular", "through") == ["2 5"]


def test_a_client_without_a_report_is_listed_and_not_added() -> None:
    broken = Outcome("go", "direct", broken="it ended with 1")
    cells = row(table.clients([trial("1", broken)]), "move", "modular", "go", "direct")
    assert cells[-1] == "no report 1"


def test_figures_of_gateways_are_added_up() -> None:
    ends = {"ended": {"drained": 2}, "lookups": 3.0, "redirects": 1.0, "tracebacks": 0}
    busy = trial("2", gateway=ends, facts={"load": 3.0}, failure="hung")
    trials = [trial("1", gateway=ends, facts={"load": 1.0}), busy]
    cells = row(table.gateways(trials), "move", "modular")
    assert cells == ["2", "drained 4", "6", "2", "0", "1", "2.0"]


class Message:
    """A message of topic `t` as the client library has it."""

    def __init__(self, number: int, entry: int) -> None:
        self._number, self._entry = number, entry

    def data(self) -> bytes:
        return str(self._number).encode()

    def topic_name(self) -> str:
        return "t"

    def partition_key(self) -> str:
        return str(self._number % 2)

    def message_id(self) -> "Message":
        return self

    def ledger_id(self) -> int:
        return 1

    def entry_id(self) -> int:
        return self._entry

    def partition(self) -> int:
        return -1

    def batch_index(self) -> int:
        return -1


def received(*messages: tuple[int, int]) -> dict[str, object]:
    """Return a report with messages of these numbers, stored as these entries."""
    found = Received()
    for message in messages:
        found.note(Message(*message))
    return found.report()


def test_a_repeated_message_was_redelivered_or_stored_twice() -> None:
    report = received((0, 10), (1, 11), (0, 10), (1, 12))
    assert (report["redelivered"], report["stored_twice"]) == (1, 1)
    assert (report["received"], report["out_of_order"]) == ([[0, 1]], 0)


def test_order_is_counted_by_key() -> None:
    assert received((3, 10), (2, 11), (4, 12))["out_of_order"] == 0
    assert received((3, 10), (1, 11), (5, 12))["out_of_order"] == 1


def test_numbers_are_written_as_ranges() -> None:
    assert ranges({5, 1, 2, 3, 7, 6}) == [[1, 3], [5, 7]]
