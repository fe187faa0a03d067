"""Ingest: each record once, on its own day, whatever the files are like."""

from __future__ import annotations

import gzip
import random
import re
import shutil
from pathlib import Path
from typing import Any

import cramjam
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.pipeline.command import main
from gateway.pipeline.ingest import (
    EARLIEST,
    LONGEST_LINE,
    LONGEST_READ,
    MOST,
    Taken,
    _not_texts,
    ingest,
    streams,
)
from gateway.pipeline.lake import Lake
from gateway.pipeline.schema import columns_of, texts_of
from gateway.usage.records import Usage
from tests.pipeline.samples import NOW, Folder, Record, happened, line, ms, rows, used


def take(lake: Lake, records: Folder, stream: str = "usage", **options: Any) -> list[Taken]:
    return ingest(lake, records.url, stream, ms(NOW), **options)


def seqs(lake: Lake, day: str | None = None) -> list[int]:
    return [seq for (seq,) in rows(lake.read("usage", None if day is None else [day]), "seq")]


def zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def test_a_record_comes_into_the_tables_with_all_fields(lake: Lake, records: Folder) -> None:
    whole = used(
        7,
        listener="clients",
        namespace="acme/web",
        topic="persistent://acme/web/orders",
        principal="alice",
        msgs=3,
        bytes_wire=300,
        throttles=[],
        lat_bucket=[1, 2],
    )
    records.add([whole])
    (taken,) = take(lake, records)
    assert taken == Taken(1, 1, 1, 0, 0, ["2026-11-20"])
    (row,) = lake.read("usage").collect()
    assert row.day == "2026-11-20"
    found = {name: getattr(row, name) for name in columns_of(Usage).names}
    assert found == {name: getattr(whole, name) for name in found}


def test_a_record_belongs_to_the_day_of_its_own_time(lake: Lake, records: Folder) -> None:
    both = [used(1, "2026-11-20T23:59"), used(2, "2026-11-21T00:00")]
    records.add(both, closed="2026-11-23T00:00")
    take(lake, records)
    assert seqs(lake, "2026-11-20") == [1]
    assert seqs(lake, "2026-11-21") == [2]


def test_a_second_run_takes_new_files_alone(lake: Lake, records: Folder) -> None:
    records.add([used(1)])
    assert len(take(lake, records)) == 1
    assert take(lake, records) == []
    records.add([used(2)])
    (taken,) = take(lake, records)
    assert (taken.files, taken.records) == (1, 1)
    assert seqs(lake) == [1, 2]


def test_a_late_file_changes_its_own_day_alone(lake: Lake, records: Folder) -> None:
    records.add([used(1), used(2, "2026-11-21T01:00")])
    take(lake, records)
    before = lake.state().days["usage"]
    records.add([used(3)], closed="2026-11-23T01:00")
    (taken,) = take(lake, records)
    after = lake.state().days["usage"]
    assert taken.days == ["2026-11-20"]
    assert after["2026-11-21"] == before["2026-11-21"]
    assert seqs(lake, "2026-11-20") == [1, 3]


def test_records_that_come_twice_count_once(lake: Lake, records: Folder) -> None:
    def counts() -> tuple[int, ...]:
        (taken,) = take(lake, records)
        return taken.read, taken.new, taken.doubled, taken.quarantined

    first = records.add([used(1), used(2), "no record"])
    shutil.copy(first, first.with_name("copy.jsonl.gz"))
    assert counts() == (6, 2, 2, 2)
    late = used(4, "2026-11-21T01:00")
    records.add([used(2), used(3), late, "none"], closed="2026-11-23T01:00")
    assert counts() == (4, 2, 1, 1)
    assert seqs(lake) == [1, 2, 3, 4]


def test_processes_and_gateways_have_numbers_of_their_own(lake: Lake, records: Folder) -> None:
    records.add([used(1), used(1, boot="c"), used(1, gw="edge-2")])
    take(lake, records)
    assert seqs(lake) == [1, 1, 1]


@pytest.mark.parametrize("order", range(2))
def test_the_order_of_files_and_lines_makes_no_difference(
    lake: Lake, records: Folder, order: int
) -> None:
    """Even where one identity has several contents, which no gateway writes."""
    all: list[Record] = [used(seq % 7 + 1, msgs=seq) for seq in range(20)]
    random.Random(order).shuffle(all)
    for at in range(0, 20, 5):
        records.add(all[at : at + 5], name=f"{at}.jsonl.gz")
        if order == 1:
            take(lake, records)
    take(lake, records)
    alone = Lake(lake.spark, f"{lake.base}-alone")
    other = Folder(Path(lake.base).parent / "other")
    other.add(sorted(all, key=line), name="all.jsonl.gz")
    take(alone, other)
    found = rows(lake.read("usage"))
    assert len(found) == 7
    assert found == rows(alone.read("usage"))


ONE = line(used(1)).decode().strip()

OTHER = '{"seq":2,"v":1}'

NO_JSON = [
    *(ONE + it for it in (ONE, OTHER, f"\0 {OTHER}", f",{OTHER}", f',"record":{OTHER}')),
    *(
        ONE + it
        for it in ("}", "} x", "]", "]}", "}]", f"] {OTHER}", f"}} {OTHER}", " x", ",", "//")
    ),
    *(f"{ONE[:-1]},{it}}}" for it in ("", "new:1", '"new":NaN', '"new":01', '"msgs":"7"')),
    *(f'null,"record":{ONE}', f"[{ONE}]", "null", "7", ONE.replace('"', "'"), "{half"),
    "x" * 1_000_000,
    '{"v":1,"gw":"a","boot":"b","seq":1,"start_ms":"x","op":"send"}',
    '{"v":1,"gw":"a","boot":"b","seq":99999999999999999999}',
]

NO_TEXTS = [
    *(ONE.replace(':"acme"', it) for it in (":7", " :\ttrue", ":[]", ': {"a":"b"}')),
    f'{ONE[:-1]},"\\u0074opic":7}}',
    f'{ONE[:-1]},"throttles":[{{"rule":7,"count":1,"ms":1}}]}}',
]

HOSTILE: list[tuple[str, Record]] = [
    *(("no JSON of a record", it) for it in NO_JSON),
    *(("no text where one belongs", it) for it in NO_TEXTS),
    ("no version", "{}"),
    ("version 2", '{"v":2,"gw":"a","boot":"b","seq":1,"start_ms":1,"dur_ms":1,"op":"send"}'),
    ("no gw", '{"v":1,"boot":"b","seq":1,"start_ms":1,"op":"send"}'),
    ("no op", f'{{"v":1,"gw":"a","boot":"b","seq":1,"start_ms":{ms(NOW)}}}'),
    ("unknown op", used(1, op="ack")),
    ("unknown lat_what", used(1, op="latency", lat_what="sleep")),
    ("seq below 1", used(0)),
    ("more than a day ahead", used(1, "2026-11-26T00:00")),
    ("of a day before 2020-01-01", '{"v":1,"gw":"a","boot":"b","seq":1,"start_ms":1,"op":"send"}'),
    ("msgs below 0", used(1, msgs=-1)),
    (f"bytes_wire above {MOST}", used(1, bytes_wire=2**62)),
    ("lat_bucket with odd numbers", used(1, op="latency", lat_bucket=[1, -1])),
    ("lat_bucket with odd numbers", used(1, op="latency", lat_bucket=[2**62])),
]


@pytest.mark.tier("test")
def test_lines_that_are_no_records_are_put_aside(lake: Lake, records: Folder) -> None:
    records.add([used(5), *(it for _, it in HOSTILE), used(6)], name="x.jsonl.gz")
    (taken,) = take(lake, records)
    assert (taken.records, taken.quarantined) == (2, len(HOSTILE))
    found = rows(lake.read("quarantine"), "reason", "day")
    assert found == sorted((reason, "2026-11-20") for reason, _ in HOSTILE)
    assert max(len(it) for (it,) in rows(lake.read("quarantine"), "line")) == LONGEST_LINE
    assert seqs(lake) == [5, 6]


def test_an_event_of_an_unknown_kind_is_put_aside(lake: Lake, records: Folder) -> None:
    records.add([happened(1), happened(2, event="lost")])
    (taken,) = take(lake, records, "events")
    assert (taken.records, taken.quarantined) == (1, 1)
    assert rows(lake.read("quarantine"), "stream", "reason") == [("events", "unknown event")]


def test_bytes_that_are_no_text_are_put_aside_and_seen(lake: Lake, records: Folder) -> None:
    path = records.add([used(1)], name="x.jsonl")
    odd = line(used(2, principal="ab")).replace(b"ab", b"a\xff")
    path.write_bytes(path.read_bytes() + odd)
    take(lake, records)
    assert seqs(lake) == [1]
    ((reason, kept),) = rows(lake.read("quarantine"), "reason", "line")
    assert (reason, "a\ufffd" in kept) == ("no UTF-8", True)


ODD = ['}{"v":1}', "}{", '{"v":', '"topic":7', '\\"topic":7', '\\u0074":', '\1":7', "\\", "'", "]}"]


def test_text_that_looks_like_another_record_is_part_of_its_own(
    lake: Lake, records: Folder
) -> None:
    records.add([used(seq, principal=it) for seq, it in enumerate(ODD, 1)])
    take(lake, records)
    assert rows(lake.read("usage"), "principal") == sorted(((it,) for it in ODD), key=repr)


def test_a_record_may_have_spaces_null_and_fields_of_later_versions(
    lake: Lake, records: Folder
) -> None:
    spaced = ONE.replace(":", " : ").replace(",", ",\t")
    new = '"new":{"a":[1,{"b":null}]},"topic":null,"msgs":7,"msgs":8'
    records.add([f" {spaced} \r", f"{line(used(2)).decode().strip()[:-1]},{new}}}"], name="x.jsonl")
    (taken,) = take(lake, records)
    assert (taken.records, taken.quarantined) == (2, 0)
    assert rows(lake.read("usage"), "seq", "msgs") == [(1, 0), (2, 8)]


TEXTS = [it.rpartition(".")[2] for it in texts_of(columns_of(Usage))]


@given(
    st.sampled_from(TEXTS),
    st.sampled_from(["7", "-1", "true", "{}", '["a"]', " 7"]),
    st.one_of(st.text(), st.text('"\\:\1u041topic7,{} ')),
)
def test_what_is_no_text_is_found_and_no_text_is_taken_for_it(
    key: str, value: str, text: str
) -> None:
    """Texts may hold whatever looks like a key."""
    pattern = re.compile(_not_texts(TEXTS))
    whole = {**dict.fromkeys(TEXTS, text), "new": [text, {f'x{text}"{key}': 7}], "msgs": 7}
    written = msgspec.json.encode(whole).decode()
    assert not pattern.search(written)
    assert pattern.search(f'{written[:-1]},"{key}":{value}}}')


def test_a_line_beyond_all_bounds_is_missing_and_no_more(lake: Lake, records: Folder) -> None:
    path = records.add([used(1), used(2), used(3)])
    first, _, last = map(line, (used(1), used(2), used(3)))
    huge = b" " * (LONGEST_READ + 1) + b"\n"
    path.write_bytes(gzip.compress(first + huge + last))
    (taken,) = take(lake, records)
    assert (taken.records, taken.quarantined, taken.missing) == (2, 0, 1)


@pytest.mark.parametrize("kind", ["", "gz", "zst"], ids=["plain", "gzip", "zstd"])
def test_a_torn_file_gives_what_is_before_the_tear(lake: Lake, records: Folder, kind: str) -> None:
    name = f"edge-1-b-{1:012}-{2000:012}.jsonl.{kind}".rstrip(".")
    noisy = random.Random(7)
    all = [used(seq, principal=f"{noisy.getrandbits(256):x}") for seq in range(1, 2001)]
    path = records.add(all, name=name)
    if kind == "zst":
        path.write_bytes(zstd(path.read_bytes()))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    records.add([used(9000)])
    (taken,) = take(lake, records)
    assert 100 < taken.records < 2000
    assert taken.missing + taken.records + taken.quarantined == 2001


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.zst"])
def test_files_may_be_plain_or_compressed(lake: Lake, records: Folder, name: str) -> None:
    path = records.add([used(1)], name=name)
    if name.endswith(".zst"):
        path.write_bytes(zstd(path.read_bytes()))
    take(lake, records)
    assert seqs(lake) == [1]


def test_an_empty_file_and_a_file_that_is_no_gzip_stop_nothing(lake: Lake, records: Folder) -> None:
    path = records.add([used(1)])
    path.with_name("empty.jsonl.gz").write_bytes(b"")
    path.with_name("none.jsonl.gz").write_bytes(b"this is no gzip")
    path.with_name("hollow.jsonl.gz").write_bytes(gzip.compress(b""))
    (taken,) = take(lake, records)
    assert (taken.files, taken.records) == (3, 1)  # nothing is in one of them


def test_files_that_are_still_written_are_left_alone(lake: Lake, records: Folder) -> None:
    path = records.add([used(1)])
    path.with_name(".edge-1-b-000000000002.jsonl.gz").write_bytes(path.read_bytes())
    (taken,) = take(lake, records)
    assert taken.files == 1


def test_odd_names_of_folders_and_files_are_read(lake: Lake, tmp_path: Path) -> None:
    odd = Folder(tmp_path / "a b%20c+é")
    odd.add([used(1)], name="o dd%.jsonl.gz")
    odd.add([used(2)], name="[a-z]{b,c}?*.jsonl.gz")
    (taken,) = take(lake, odd)
    assert (taken.files, taken.records) == (2, 2)
    assert take(lake, odd) == []


def test_many_files_are_taken_in_batches(lake: Lake, records: Folder) -> None:
    for seq in range(1, 6):
        records.add([used(seq)])
    seen: list[Taken] = []
    assert take(lake, records, files_at_once=2, progress=seen.append) == seen
    assert [it.files for it in seen] == [2, 2, 1]
    assert seqs(lake) == [1, 2, 3, 4, 5]


def test_events_have_a_table_of_their_own(lake: Lake, records: Folder) -> None:
    records.add([happened(1, event="denied", right="produce"), happened(2, "2026-11-21T00:00")])
    (taken,) = take(lake, records, "events")
    assert taken.days == ["2026-11-20", "2026-11-21"]
    assert rows(lake.read("events"), "seq", "event", "right", "shadow") == [
        (1, "denied", "produce", False),
        (2, "connected", None, False),
    ]


def test_lines_of_a_file_outside_of_days_are_put_aside_too(lake: Lake, records: Folder) -> None:
    folder = records.path / "usage"
    folder.mkdir(parents=True)
    (folder / "loose.jsonl").write_text("nonsense\n")
    take(lake, records)
    assert rows(lake.read("quarantine"), "day") == [(EARLIEST,)]


def test_a_folder_that_is_not_there_is_an_error(lake: Lake, records: Folder) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no such folder, or no right to see it"):
        take(lake, records)
    with pytest.raises(ConfigurationError, match=r"there is no such folder, or no right to see it"):
        streams(lake.spark, records.url)
    records.add([used(1)])
    assert streams(lake.spark, records.url) == ["usage"]


@pytest.mark.parametrize("number", ["0", "-1", "1e3", "many", "1000001", "9" * 5000])
def test_odd_numbers_of_files_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ingest", "tables", "usage", f"--files={number}"])
    assert "is no number of files; 1 to 1000000" in capsys.readouterr().err
