"""The table by number of workers: what is set, what is added up, and what is printed."""

from pathlib import Path

import pytest

from gateway.config.load import load
from tests.bench.figures import OURS, PEER
from tests.bench.load import Sample
from tests.bench.machine import Interpreter, descendants
from tests.bench.rows import Row
from tests.bench.workers import LIMITED, counts, listening, recipes, rows, table_lines
from tests.real.brokers.jars import MissingToolError

ROW = Row("wake-up", "one frame", ("pingpong",))

PARENTS = [(2, 1), (10, 2), (12, 11), (11, 10), (20, 1), (13, 10)]


def sample(us: float, frames: float) -> Sample:
    return Sample({"proxy_us_per_frame": us, "frames": frames, "secs": 2.0}, 0.0)


@pytest.mark.parametrize(("pid", "found"), [(10, {10, 11, 12, 13}), (11, {11, 12}), (20, {20})])
def test_the_processes_of_a_proxy_are_its_own_and_all_below(pid: int, found: set[int]) -> None:
    assert set(descendants(pid, PARENTS)) == found


@pytest.mark.parametrize(("cores", "tried"), [(1, [1]), (2, [1, 2]), (64, [1, 2, 3, 4])])
def test_there_are_no_more_workers_than_cores_and_four(cores: int, tried: list[int]) -> None:
    assert list(counts(cores)) == tried


def test_both_loads_are_measured() -> None:
    assert {row.key for row in rows()} == {"send-1k-conns", "wake-up"}


@pytest.mark.parametrize("count", [1, 3])
def test_all_have_as_many_workers_and_one_of_them_a_limit(tmp_path: Path, count: int) -> None:
    try:
        peer, alone, limited = recipes(tmp_path, "127.0.0.1:6650", count, Interpreter.chosen())
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert f"nbthread {count}\n" in Path(peer.command[-1]).read_text()
    plain, ruled = (load(Path(it.command[-1])) for it in (alone, limited))
    assert plain.workers == ruled.workers == count
    assert not plain.rules
    assert ruled.rules


def test_a_process_listens_once_it_has_said_so() -> None:
    log = """\
{"worker": 1, "listener": "bench", "addresses": [], "event": "listening"}
{"worker": 1, "listener": "kafka", "addresses": [], "event": "listening"}
{"worker": 2, "listener": "bench", "connection": 1, "event": "connection_ended"}
"""
    assert listening(log) == 1


def test_a_limit_has_a_line_of_its_own() -> None:
    samples = [
        (PEER, sample(10.0, 2000.0)),
        (OURS, sample(20.0, 4000.0)),
        (LIMITED, sample(21.0, 3000.0)),
    ]
    plain, limited = table_lines(ROW, 2, samples)
    assert plain.title == "one frame, 2 workers"
    assert plain.cells == {PEER: "10.0 us, 1,000/s", OURS: "20.0 us, 2,000/s"}
    assert plain.measured == "0.50"
    assert limited.cells == {OURS: "21.0 us, 1,500/s"}
    assert limited.measured == "+5.0%"
