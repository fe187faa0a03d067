"""Tables by day: what is committed is seen, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from gateway.errors import ConfigurationError
from gateway.pipeline.lake import CHECKPOINT, Commit, Lake, chain
from gateway.pipeline.schema import TABLES
from tests.pipeline.samples import rows


def lines(lake: Lake, *lines: tuple[str, str]) -> DataFrame:
    """Return rows of a table, by line and day."""
    made = [("usage", "p", "r", it, day) for it, day in lines]
    return lake.spark.createDataFrame(made, TABLES["quarantine"])


def file(lake: Lake, path: str) -> DataFrame:
    """Return the row of a file."""
    return lake.spark.createDataFrame([("usage", path, 1, 1, 0, 0)], TABLES["files"])


def write(lake: Lake, *rows: tuple[str, str], days: list[str] | None = None) -> None:
    change = lake.change("test", 0)
    change.replace("quarantine", lines(lake, *rows), days or [day for _, day in rows])
    change.commit()


def seen(lake: Lake) -> list[tuple[str, ...]]:
    return rows(lake.read("quarantine"), "line", "day")


def test_a_table_is_empty_before_the_first_commit(lake: Lake) -> None:
    assert seen(lake) == []
    assert lake.read("usage").columns == TABLES["usage"].names


def test_days_are_replaced_and_others_stay(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"), ("b", "2026-11-21"))
    write(lake, ("c", "2026-11-21"))
    assert seen(lake) == [("a", "2026-11-20"), ("c", "2026-11-21")]
    assert rows(lake.read("quarantine", ["2026-11-21", "2000-01-01"]), "line") == [("c",)]


def test_a_day_without_rows_is_gone(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"))
    write(lake, days=["2026-11-20"])
    assert seen(lake) == []


def test_what_is_not_committed_is_not_seen(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"))
    change = lake.change("test", 0)
    change.replace("quarantine", lines(lake, ("b", "2026-11-20")), ["2026-11-20"])
    assert seen(lake) == [("a", "2026-11-20")]
    write(lake, ("c", "2026-11-20"))
    assert seen(lake) == [("c", "2026-11-20")]


def test_a_view_stays_as_it_was(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"))
    view = lake.state()
    write(lake, ("b", "2026-11-20"))
    assert rows(lake.read("quarantine", state=view), "line") == [("a",)]


def test_one_of_two_changes_at_a_time_wins_whole(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"))
    changes = [lake.change("test", 0) for _ in range(2)]
    for change, line in zip(changes, "bc", strict=True):
        change.replace("quarantine", lines(lake, (line, "2026-11-20")), ["2026-11-20"])
        change.append("files", file(lake, line))
        change.commit()
    ((line, _),) = seen(lake)
    assert line in {"b", "c"}
    assert rows(lake.read("files"), "path") == [(line,)]
    write(lake, ("d", "2026-11-21"))
    assert seen(lake) == [(line, "2026-11-20"), ("d", "2026-11-21")]


def test_rows_without_days_add_up(lake: Lake) -> None:
    for path in "ab":
        change = lake.change("test", 0)
        change.append("files", file(lake, path))
        change.commit()
    assert rows(lake.read("files"), "path") == [("a",), ("b",)]


def test_old_commits_may_go_behind_a_checkpoint(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.pipeline.lake.CHECKPOINT", 3)
    for number in range(5):
        write(lake, (str(number), f"2026-11-2{number}"))
    commits = sorted((Path(lake.base) / "commits").iterdir())
    for old in commits[:2]:
        shutil.rmtree(old)
    assert [day for _, day in seen(lake)] == [f"2026-11-2{it}" for it in range(5)]
    assert lake.state().length == 1  # the fifth repeats all again


def test_a_missing_commit_is_an_error(lake: Lake) -> None:
    for day in ("2026-11-20", "2026-11-21", "2026-11-22"):
        write(lake, ("a", day))
    shutil.rmtree(sorted((Path(lake.base) / "commits").iterdir())[1])
    with pytest.raises(ConfigurationError, match=r"is missing, which .* follows"):
        lake.state()


def test_a_file_that_is_no_commit_is_an_error(lake: Lake) -> None:
    write(lake, ("a", "2026-11-20"))
    (Path(lake.base) / "commits" / "x.json").write_text("nonsense\n")
    with pytest.raises(ConfigurationError, match="a file there is no commit"):
        lake.state()


# -- chains ------------------------------------------------------------------------------------


def commit(
    number: int, id: str, parent: str = "", at_ms: int = 0, *, checkpoint: bool = False
) -> Commit:
    return Commit(number, id, parent, "test", at_ms, checkpoint, ())


def test_a_chain_leads_from_the_head_to_the_first() -> None:
    one, two = commit(1, "a"), commit(2, "b", "00000001-a")
    assert chain([two, one]) == [one, two]
    assert chain([]) == []


def test_among_commits_of_one_number_the_smallest_id_wins_and_its_child_in_any_case() -> None:
    one = commit(1, "a")
    two, other = commit(2, "b", "00000001-a"), commit(2, "c", "00000001-a")
    child = commit(3, "z", "00000002-c")
    assert chain([other, two, one]) == [one, two]
    assert chain([other, two, one, child]) == [one, other, child]


def test_a_chain_begins_with_its_newest_checkpoint() -> None:
    old, base = commit(1, "a"), commit(2, "b", "00000001-a", checkpoint=True)
    head = commit(3, "c", "00000002-b")
    assert chain([head, base, old]) == [base, head]
    assert chain([head, base]) == [base, head]
    assert CHECKPOINT > 2


def test_a_chain_of_then_is_that_of_the_ancestors_of_now() -> None:
    one, two = commit(1, "a", at_ms=10), commit(2, "b", "00000001-a", 20)
    other = commit(2, "c", "00000001-a", 5)  # which lost
    head = commit(3, "d", "00000002-b", 30, checkpoint=True)
    all = [one, two, other, head]
    assert [chain(all, until) for until in (30, 29, 19, 9)] == [[head], [one, two], [one], []]
    assert chain([head], 29) == []
