"""Reading records back, from files as they may be found; and the command that sums them up."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec
import pytest

from gateway.__main__ import main
from gateway.usage import reading
from gateway.usage.command import sums
from gateway.usage.reading import Ledger
from gateway.usage.records import VERSION, Usage, schemas
from tests.docs.usage import PAGE, written


def record(seq: int, **values: object) -> dict[str, object]:
    usual = {"v": 1, "gw": "edge-1", "boot": "a" * 16, "start_ms": 0, "dur_ms": 10_000}
    return {**usual, "seq": seq, "op": "send", **values}


def put(folder: Path, content: bytes, first: int = 1, last: int = 9) -> None:
    where = folder / "usage" / "dt=2026-11-24" / "hr=12"
    where.mkdir(parents=True, exist_ok=True)
    (where / f"edge-1-{'a' * 16}-{first:012}-{last:012}.jsonl.gz").write_bytes(content)


def packed(*records: dict[str, object]) -> bytes:
    return gzip.compress(b"".join(json.dumps(it).encode() + b"\n" for it in records))


def test_records_that_are_missing_are_seen(tmp_path: Path) -> None:
    put(tmp_path, packed(record(2), record(3), record(5)))
    ledger = Ledger()
    assert [it.seq for it in reading.usage(tmp_path, ledger)] == [2, 3, 5]
    assert ledger.missing() == {("edge-1", "a" * 16): 2}


def test_records_that_come_twice_are_read_once(tmp_path: Path) -> None:
    put(tmp_path, packed(record(1), record(2)))
    put(tmp_path, packed(record(2), record(3)), 2, 3)
    ledger = Ledger()
    assert [it.seq for it in reading.usage(tmp_path, ledger)] == [1, 2, 3]
    assert ledger.repeated == 1


@pytest.mark.parametrize(
    "bad",
    [
        *(b"no json\n", b"[]\n", b'{"v": 1}\n', b"\xff\xfe\n", b"\n", b'{"seq": "x"}\n'),
        b"x" * (reading.LONGEST_LINE + 10) + b"\n",
    ],
)
def test_lines_that_cannot_be_read_are_counted(tmp_path: Path, bad: bytes) -> None:
    good = json.dumps(record(1)).encode() + b"\n"
    put(tmp_path, gzip.compress(bad + good))
    ledger = Ledger()
    assert [it.seq for it in reading.usage(tmp_path, ledger)] == [1]
    assert ledger.unreadable >= 1


@pytest.mark.parametrize(
    "content", [b"no gzip", packed(record(1))[:-5], b"\x1f\x8b"], ids=["no gzip", "cut", "header"]
)
def test_a_file_that_is_torn_is_counted(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, content)
    ledger = Ledger()
    assert len(list(reading.usage(tmp_path, ledger))) <= 1
    assert ledger.unreadable == 1


def test_a_reader_passes_over_fields_that_it_does_not_know(tmp_path: Path) -> None:
    put(tmp_path, packed(record(1, new_field={"x": 1})))
    assert len(list(reading.usage(tmp_path))) == 1


def test_a_written_record_has_only_what_the_schema_names() -> None:
    usage = Usage(v=VERSION, gw="g", boot="b", seq=1, start_ms=0, dur_ms=1, op="send", msgs=3)
    defined = schemas()["$defs"]
    assert isinstance(defined, dict)
    names = defined["Usage"]["properties"]
    assert msgspec.json.decode(msgspec.json.encode(usage)).keys() <= names.keys()


def test_the_published_schema_is_that_of_the_code() -> None:
    assert PAGE.read_text() == written()


# -- the command -----------------------------------------------------------------------------------


def said(*arguments: str) -> tuple[int, list[str], str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main(["usage", *arguments])
    return status, out.getvalue().splitlines(), err.getvalue()


def test_sums_are_by_the_fields_that_are_named(tmp_path: Path) -> None:
    put(
        tmp_path,
        packed(
            record(1, tenant="acme", msgs=1, bytes_wire=10),
            record(2, tenant="globex", msgs=2, bytes_wire=500),
            record(3, tenant="acme", msgs=4, bytes_wire=10),
        ),
    )
    status, lines, told = said(str(tmp_path), "--by", "tenant", "--format", "csv")
    assert status == 0
    assert lines == [
        "tenant,msgs,entries,bytes_wire,throttle_ms,refused,open_ms",
        "globex,2,0,500,0,0,0",
        "acme,5,0,20,0,0,0",
    ]
    assert told == "3 records\n"


def test_a_table_shows_no_control_characters(tmp_path: Path) -> None:
    put(tmp_path, packed(record(1, tenant="\x1b[31m")))
    _, lines, _ = said(str(tmp_path))
    assert "\x1b" not in "".join(lines)


def test_a_text_that_a_client_chose_is_no_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    put(tmp_path, packed(record(1, subscription="=1+cmd|' /C calc'!A1")))
    _, lines, _ = said(str(tmp_path), "--by", "subscription", "--format", "csv")
    assert lines[1].startswith("'=1+cmd")


def test_missing_records_are_told_by_the_status(tmp_path: Path) -> None:
    put(tmp_path, packed(record(2)))
    status, _, told = said(str(tmp_path))
    assert status == 1
    assert told == f"1 records; 1 missing of edge-1 {'a' * 16}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], ".: has no usage records; name the folder that usage.folder names"),
        ([".", "--by", "colour"], "--by colour: is no field; one or more of op, proto, "),
        (
            ["kafka://host:1/a/b/c"],
            "kafka://host:1/a/b/c: is no topic; pulsar://host:port/tenant/namespace/topic",
        ),
        (
            ["pulsar://host:1/a/b"],
            "pulsar://host:1/a/b: is no topic; pulsar://host:port/tenant/namespace/topic",
        ),
        (
            ["pulsar://host:1/a/b/c", "--token-file", "none"],
            "pulsar://host:1/a/b/c: cannot be read: No such file or directory",
        ),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, told = said(*arguments)
    assert status == 2
    assert told.startswith(message)


def test_sums_of_nothing_are_none() -> None:
    assert sums([], ["tenant"]) == []
