"""The inbox: messages of a topic become files, which are taken as those of gateways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.pipeline import inbox
from gateway.pipeline.ingest import Taken, ingest
from gateway.pipeline.lake import Lake
from tests.pipeline.samples import NOW, line, ms, rows, used

TOPIC = "persistent://ops/usage/records"
DAY_MS = 86_400_000


def message(seq: int) -> bytes:
    return line(used(seq)).strip()


def take(lake: Lake, now_ms: int) -> list[Taken]:
    return ingest(lake, inbox.folder(lake), "usage", now_ms)


def files(lake: Lake) -> list[Path]:
    return [it for it in Path(inbox.folder(lake)).rglob("part-*") if it.stat().st_size]


def test_each_batch_is_a_file_before_the_next_one_is_asked_for(lake: Lake) -> None:
    there = []

    def batches() -> Iterator[list[bytes]]:
        for first in (1, 3):
            yield [message(first), message(first + 1)]
            there.append(len(files(lake)))

    told: list[int] = []
    number = inbox.fill(lake, "usage", TOPIC, batches(), ms(NOW), progress=told.append)
    assert (number, told, there) == (4, [2, 4], [1, 2])
    (taken,) = take(lake, ms(NOW))
    assert (taken.files, taken.records) == (2, 4)
    assert take(lake, ms(NOW)) == []
    assert all("ops_usage_records" in path for (path,) in rows(lake.read("files"), "path"))


def test_messages_that_come_again_count_once_and_hostile_ones_are_put_aside(lake: Lake) -> None:
    hostile = [b"{half", b"", b'{"v":9}', b"\xff\xfe", b"x" * (2 << 20)]
    pretty = message(3).replace(b",", b",\n")
    inbox.fill(lake, "usage", TOPIC, [[message(1), *hostile, pretty]], ms(NOW))
    inbox.fill(lake, "usage", TOPIC, [[message(1), message(2)]], ms(NOW))
    (taken,) = take(lake, ms(NOW))
    assert (taken.records, taken.quarantined) == (5 - 1, len(hostile))
    assert rows(lake.read("usage"), "seq") == [(1,), (2,), (3,)]
    reasons = [reason for (reason,) in rows(lake.read("quarantine"), "reason")]
    assert reasons == ["no JSON of a record"] * 4 + ["version 9"]


def test_files_go_a_day_after_they_were_taken(lake: Lake) -> None:
    now = ms(NOW)
    inbox.fill(lake, "usage", TOPIC, [[message(1)]], now)
    assert inbox.clear(lake, "usage", now + 3 * DAY_MS) == []  # nobody has taken it
    take(lake, now)
    inbox.fill(lake, "usage", TOPIC, [[message(2)]], now + DAY_MS)
    take(lake, now + DAY_MS)
    assert inbox.clear(lake, "usage", now + DAY_MS - 1) == []
    assert inbox.clear(lake, "usage", now + DAY_MS) == ["2026-11-24"]
    (left,) = files(lake)
    assert "dt=2026-11-25" in str(left)
    assert inbox.clear(lake, "usage", now + DAY_MS) == []
    assert take(lake, now + DAY_MS) == []
    assert rows(lake.read("usage"), "seq") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("message", "text"),
    [(b'{"a":\r\n1}', '{"a":  1}'), (b"\xffa", r"\xffa"), (b"", ""), ("ä".encode(), "ä")],
)
def test_a_message_is_one_line_of_text(message: bytes, text: str) -> None:
    assert inbox.line(message) == text
