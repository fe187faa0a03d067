"""Files of records: whole once they have a name, recovered after a kill, and bounded."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.telemetry.figures import StreamFigures
from gateway.usage.files import OPEN, Closing, Stream, closed_files, recover

BOOT = "0123456789abcdef"
NOON = 1_795_521_600.0  # 2026-11-24 12:00 UTC


def lines(first: int, last: int) -> bytes:
    return b"".join(json.dumps({"seq": it}).encode() + b"\n" for it in range(first, last + 1))


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in gzip.decompress(path.read_bytes()).splitlines()]


def stream(folder: Path, closing: Closing | None = None, boot: str = BOOT) -> Stream:
    made = Stream(folder, "edge-1", boot, closing or Closing(), StreamFigures())
    made.begin()
    return made


def names(folder: Path) -> list[str]:
    return sorted(str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file())


def test_a_file_has_its_name_once_it_is_old_enough(tmp_path: Path) -> None:
    made = stream(tmp_path)
    made.append(lines(1, 3), 1, 3, NOON)
    assert names(tmp_path) == [f".edge-1-{BOOT}-000000000001{OPEN}"]
    made.append(lines(4, 5), 4, 5, NOON + 60)
    assert names(tmp_path) == [
        f"dt=2026-11-24/hr=12/edge-1-{BOOT}-000000000001-000000000005.jsonl.gz"
    ]
    (path,) = closed_files(tmp_path)
    assert numbers(path) == [1, 2, 3, 4, 5]


def test_a_file_is_closed_at_its_size(tmp_path: Path) -> None:
    made = stream(tmp_path, Closing(size=10))
    made.append(lines(1, 3), 1, 3, NOON)
    made.append(lines(4, 4), 4, 4, NOON)
    assert len(list(closed_files(tmp_path))) == 2


def test_an_old_file_is_closed_though_nothing_is_written(tmp_path: Path) -> None:
    made = stream(tmp_path)
    made.append(lines(1, 1), 1, 1, NOON)
    made.close_old(NOON + 59)
    assert not list(closed_files(tmp_path))
    made.close_old(NOON + 60)
    assert len(list(closed_files(tmp_path))) == 1
    made.close_old(NOON + 120)
    made.close(NOON + 120)
    assert len(list(closed_files(tmp_path))) == 1


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    made = stream(tmp_path, Closing(size=1, kept=150))
    for number in range(1, 11):
        made.append(lines(number, number), number, number, NOON)
    kept = list(closed_files(tmp_path))
    assert sum(it.stat().st_size for it in kept) <= 150
    assert sorted(it for path in kept for it in numbers(path))[-1] == 10
    assert made._figures.removed == 10 - len(kept)


def test_files_of_earlier_runs_count_and_those_of_others_do_not(tmp_path: Path) -> None:
    before = stream(tmp_path, Closing(size=1), "a" * 16)
    before.append(lines(1, 1), 1, 1, NOON)
    other = Stream(tmp_path, "edge-1-2", "b" * 16, Closing(size=1), StreamFigures())
    other.append(lines(1, 1), 1, 1, NOON)
    stream(tmp_path, Closing(kept=1))
    assert [it.name.startswith("edge-1-2-") for it in closed_files(tmp_path)] == [True]


def abandoned(folder: Path, tail: bytes = b"") -> Path:
    """Return an open file whose process is gone, with two appends and what else was written."""
    made = stream(folder, boot="c" * 16)
    made.append(lines(1, 2), 1, 2, NOON)
    made.append(lines(3, 4), 3, 4, NOON)
    assert made._open is not None
    os.write(made._open.descriptor, tail)
    os.close(made._open.descriptor)
    return made._open.path


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b"\x1f\x8b\x08",
        gzip.compress(lines(5, 6))[:-9],
        b"\0" * 5000,
        b"garbage",
        gzip.compress(b"no json\n"),
    ],
    ids=["whole", "header", "cut", "zeros", "garbage", "no json"],
)
def test_an_abandoned_file_is_whole_up_to_its_last_append(tmp_path: Path, tail: bytes) -> None:
    abandoned(tmp_path, tail)
    stream(tmp_path)
    (path,) = closed_files(tmp_path)
    assert numbers(path) == [1, 2, 3, 4]
    assert path.name == f"edge-1-{'c' * 16}-000000000001-000000000004.jsonl.gz"
    assert not list(tmp_path.glob(f".*{OPEN}"))


def test_an_abandoned_file_with_nothing_is_removed(tmp_path: Path) -> None:
    path = abandoned(tmp_path)
    path.write_bytes(gzip.compress(lines(1, 2))[:10])
    stream(tmp_path)
    assert names(tmp_path) == []


def test_a_file_that_a_process_has_open_is_left_alone(tmp_path: Path) -> None:
    made = stream(tmp_path)
    made.append(lines(1, 2), 1, 2, NOON)
    stream(tmp_path, boot="d" * 16)
    assert not list(closed_files(tmp_path))
    made.append(lines(3, 3), 3, 3, NOON + 60)
    (path,) = closed_files(tmp_path)
    assert numbers(path) == [1, 2, 3]


def test_files_of_others_are_no_records(tmp_path: Path) -> None:
    (tmp_path / "dt=2026-11-24" / "hr=12").mkdir(parents=True)
    for name in (f".x{OPEN}", "notes.txt", "dt=2026-11-24/hr=12/x.jsonl.gz"):
        (tmp_path / name).write_bytes(b"x")
    stream(tmp_path)
    assert not list(closed_files(tmp_path))
    assert len(names(tmp_path)) == 3
    assert recover(tmp_path / f".edge-{BOOT}-000000000001{OPEN}") is None


def test_a_full_disk_loses_what_was_not_written_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(tmp_path)
    made.append(lines(1, 2), 1, 2, NOON)
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 7:
            return write(descriptor, data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            made.append(lines(3, 9), 3, 9, NOON)
    made.append(lines(10, 10), 10, 10, NOON + 60)
    (path,) = closed_files(tmp_path)
    assert numbers(path) == [1, 2, 10]


def test_a_disk_that_is_full_from_the_start_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            made.append(lines(1, 2), 1, 2, NOON)
    made.close(NOON)
    assert names(tmp_path) == []


WRITER = """
import sys
from pathlib import Path
from gateway.telemetry.figures import StreamFigures
from gateway.usage.files import Closing, Stream
made = Stream(Path(sys.argv[1]), "edge-1", "e" * 16, Closing(size=20_000), StreamFigures())
made.begin()
number = 0
while True:
    first, last = number + 1, number + 50
    number = last
    lines = b"".join(b'{"seq":%d}\\n' % it for it in range(first, last + 1))
    made.append(lines, first, last, 1e9)
    print(last, flush=True)
"""


@pytest.mark.tier("test")
@pytest.mark.parametrize("lines_before", [1, 40, 150])
def test_a_kill_at_any_moment_loses_only_what_was_not_told(
    tmp_path: Path, lines_before: int
) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    told = [int(writer.stdout.readline()) for _ in range(lines_before)]
    writer.send_signal(signal.SIGKILL)
    told += [int(line) for line in writer.stdout if line.endswith("\n")]
    writer.wait(10)
    stream(tmp_path)
    found = sorted(it for path in closed_files(tmp_path) for it in numbers(path))
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= told[-1]


def test_the_hour_of_an_abandoned_file_is_that_of_its_last_append(tmp_path: Path) -> None:
    path = abandoned(tmp_path)
    os.utime(path, (NOON, NOON))
    stream(tmp_path)
    (closed,) = closed_files(tmp_path)
    assert str(closed.parent.relative_to(tmp_path)) == "dt=2026-11-24/hr=12"
    assert time.gmtime(NOON).tm_hour == 12
