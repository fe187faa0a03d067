"""The audit: which lines it has, and what clients, readers and disks cannot do to it."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.telemetry.audit import Audit, writer
from gateway.telemetry.folding import CLIENTS, INTERVAL, KINDS
from gateway.telemetry.log import Style, Veiled
from gateway.telemetry.witness import Ended
from gateway.wire.contract import EndReason
from gateway.wire.subject import NOBODY, Caller, Subject, TopicName
from tests.support.subjects import topic_of

PATIENCE = 60.0
"""Seconds until a thread that does not do what it should fails its test."""

CALLER = Caller(
    "pulsar", "clients", "main", 7, "192.0.2.1", "alice", library="lib 1.0", method="token"
)

TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"

HOSTILE = {
    "a line": 'x\n{"event": "connection", "principal": "eve"}',
    "control characters": "\0\x1b[2J\r\x7f\x85\x9b",
    "separators": "a\u2028b\u2029c",
    "directions": "\u202eecila",
    "quotes": '", "principal": "eve',
    "backslash": "\\",
    "half of a pair": "\ud800",
    "NUL": "\0" * 10,
}
"""What a client may choose as a name. The end of a line would forge another one."""


@dataclass
class Trial:
    """An audit whose lines are kept, with a clock that the test sets."""

    style: Style = field(default_factory=lambda: Style("json"))
    now: float = 1000.0
    written: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.audit = Audit(self.style, self.written.append, 100_000, 1 << 26, lambda: self.now)

    def ended(self, caller: Caller | None = CALLER, **values: Any) -> None:
        """Have a connection end."""
        usual: dict[str, Any] = {
            "reason": EndReason.CLIENT_CLOSED,
            "seconds": 1.23456,
            "detail": "",
        }
        where: dict[str, Any] = {
            "listener": "clients",
            "connection": 7,
            "client": "192.0.2.1:40000",
        }
        self.audit.ended(Ended(**where | {"caller": caller} | usual | values))

    def denied(self, subject: Subject, *, shadow: bool = False) -> None:
        self.audit.denied(subject, "produce", "r1", shadow=shadow)

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines; each is one JSON object."""
        self.audit.close(PATIENCE)
        text = b"".join(self.written).decode("ascii")
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def line(self) -> dict[str, Any]:
        """Return the only line."""
        (line,) = self.lines()
        return line


# -- fields --


def test_the_end_of_a_connection_has_all_its_fields() -> None:
    trial = Trial()
    trial.ended()
    line = trial.line()
    assert line.pop("time")[-1] == "Z"
    assert line == {
        "event": "connection",
        "listener": "clients",
        "connection": 7,
        "client": "192.0.2.1:40000",
        "principal": "alice",
        "method": "token",
        "reason": "client_closed",
        "seconds": 1.235,
    }


def test_the_time_is_utc_with_its_date() -> None:
    trial = Trial()
    trial.ended()
    assert re.match(TIME, trial.line()["time"])


def test_an_end_has_its_detail_if_there_is_one() -> None:
    trial = Trial()
    trial.ended(reason=EndReason.AUTHENTICATION_FAILED, detail="token not accepted")
    assert trial.line()["detail"] == "token not accepted"


@pytest.mark.parametrize(
    ("caller", "method"), [(None, None), (NOBODY.caller, None), (Caller(method="basic"), "basic")]
)
def test_an_end_of_nobody_knows_whom_has_all_its_fields_too(
    caller: Caller | None, method: str | None
) -> None:
    trial = Trial()
    trial.ended(caller, reason=EndReason.HANDSHAKE_TIMEOUT)
    line = trial.line()
    assert (line["principal"], line["method"]) == (None, method)
    assert {"time", "listener", "client", "reason"} <= line.keys()


@pytest.mark.parametrize("shadow", [False, True])
def test_a_denial_has_all_its_fields(shadow: bool) -> None:
    trial = Trial()
    trial.denied(Subject(CALLER, topic_of("persistent://a/b/c")), shadow=shadow)
    line = trial.line()
    assert line.pop("time")[-1] == "Z"
    expected = {
        "event": "denial",
        "listener": "clients",
        "connection": 7,
        "client": "192.0.2.1",
        "principal": "alice",
        "method": "token",
        "right": "produce",
        "topic": topic_of("persistent://a/b/c").name,
        "rule": "r1",
    }
    assert line == expected | ({"shadow": True} if shadow else {})


@pytest.mark.parametrize("group", ["billing", ""])
def test_a_denied_group_or_transactional_id_is_named(group: str) -> None:
    trial = Trial()
    trial.denied(Subject(CALLER, None, group))
    line = trial.line()
    assert (line["topic"], line["subscription"]) == (None, group)


def test_a_denial_without_a_topic_or_a_rule_says_so() -> None:
    trial = Trial()
    trial.audit.denied(Subject(CALLER), "lookup", None, shadow=False)
    line = trial.line()
    assert (line["topic"], line["rule"]) == (None, None)


# -- names --


@pytest.mark.parametrize("where", ["principal", "detail", "method", "client", "topic"])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_a_client_chooses_makes_a_line_of_its_own(name: str, where: str) -> None:
    trial = Trial()
    if where == "topic":
        trial.denied(Subject(CALLER, TopicName("a", "b", name)))
    elif where == "principal":
        trial.ended(CALLER._replace(principal=name))
    elif where == "method":
        trial.ended(CALLER._replace(method=name))
    else:
        trial.ended(CALLER, **{where: name})
    assert trial.line()[where].endswith(name)
    (written,) = trial.written
    assert written.count(b"\n") == 1
    assert all(byte >= 0x20 for byte in written[:-1])


def test_a_long_name_is_cut_and_tells_its_length() -> None:
    trial = Trial(Style("json", longest=64))
    trial.ended(CALLER._replace(principal="x" * 100_000, method="y" * 65), detail="z" * 64)
    line = trial.line()
    assert line["principal"] == "x" * 64 + "... (100000 characters)"
    assert line["method"] == "y" * 64 + "... (65 characters)"
    assert line["detail"] == "z" * 64


def test_masked_principals_are_in_no_line() -> None:
    trial = Trial(Style("json", principals="masked"))
    trial.ended()
    trial.denied(Subject(CALLER))
    trial.ended(None)
    assert [it["principal"] for it in trial.lines()] == ["(masked)", "(masked)", None]
    assert b"alice" not in b"".join(trial.written)


def test_pseudonyms_tell_clients_apart_and_do_not_name_them() -> None:
    trial = Trial(Style("json", principals="pseudonymous"))
    for name in ("alice", "bob", "alice", "alice ", "\ud800", None, *HOSTILE.values()):
        trial.ended(CALLER._replace(principal=name))
    first, bob, again, other, *_ = (it["principal"] for it in trial.lines())
    assert first == again
    assert len({first, bob, other}) == 3
    assert b"alice" not in b"".join(trial.written)


def test_a_client_has_one_pseudonym_in_the_log_and_the_audit() -> None:
    trial = Trial(Style("json", principals="pseudonymous"))
    trial.ended()
    logged = Veiled("pseudonymous")(None, "info", {"event": "e", "principal": "alice"})
    assert trial.line()["principal"] == logged["principal"]


# -- floods --


def test_repeated_lines_are_folded_and_counted() -> None:
    trial = Trial(Style("json", burst=3))
    for number in range(100):
        trial.ended(connection=number, client=f"192.0.2.1:{number}", seconds=number)
    trial.now += INTERVAL
    trial.ended()
    lines = trial.lines()
    assert len(lines) == 1 + 3 + 1
    assert [it.get("repeated") for it in lines] == [None] * 4 + [96]


@pytest.mark.parametrize(
    "other",
    [
        {"listener": "others"},
        {"reason": EndReason.IDLE},
        {"caller": CALLER._replace(principal="bob")},
    ],
    ids=["listener", "reason", "principal"],
)
def test_a_flood_of_one_kind_hides_no_other(other: dict[str, Any]) -> None:
    trial = Trial(Style("json", burst=1))
    for _ in range(1000):
        trial.ended()
    trial.ended(**other)
    trial.denied(Subject(CALLER))
    assert len(trial.lines()) == 2 + 2


def test_nobody_hides_others_by_methods_that_he_invents() -> None:
    """A client names its method before anything is known of it."""
    trial = Trial(Style("json", burst=1))
    for number in range(10_000):
        trial.ended(Caller(method=f"m{number}"), reason=EndReason.AUTHENTICATION_FAILED)
    for name in ("alice", "bob"):
        trial.ended(CALLER._replace(principal=name))
    named = [it["principal"] for it in trial.lines()]
    assert named[-2:] == ["alice", "bob"]


def test_however_many_names_clients_have_the_number_of_lines_is_bounded() -> None:
    trial = Trial(Style("json", burst=1))
    for number in range(10_000):
        trial.ended(CALLER._replace(principal=f"p{number}"))
    assert len(trial.lines()) <= CLIENTS + KINDS + 2


def test_lines_and_the_numbers_of_folded_ones_add_up() -> None:
    trial = Trial(Style("json", burst=1))
    for _ in range(3):
        for number in range(500):
            trial.ended(CALLER._replace(principal=f"p{trial.now} {number}"))
        trial.now += INTERVAL
    more = CLIENTS + 1
    for number in range(more):
        trial.ended(CALLER._replace(principal=f"last {number}"))
    lines = trial.lines()
    assert len(lines) + sum(it.get("repeated", 0) for it in lines) == 3 * 500 + more


# -- files --


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer(path, "stdout")(b"one\n")
    assert text_of(path) == "one\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_is_made_at_the_first_line_and_not_by_a_check(tmp_path: Path) -> None:
    """Whoever runs `gateway check` may be another user, whose file the gateway could not write."""
    path = tmp_path / "audit.jsonl"
    write = writer(path, "stdout")
    assert list(tmp_path.iterdir()) == []
    write(b"one\n")
    assert text_of(path) == "one\n"


def test_a_file_that_cannot_be_made_at_the_first_line_is_made_at_a_later_one(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write = writer(folder / "audit.jsonl", "stdout")
    folder.rmdir()
    with pytest.raises(FileNotFoundError):
        write(b"one\n")
    folder.mkdir()
    write(b"two\n")
    assert text_of(folder / "audit.jsonl") == "two\n"


def test_a_folder_in_which_nothing_may_be_made_is_an_error_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(PermissionError, match="Permission denied"):
        writer(tmp_path / "audit.jsonl", "stdout")


def test_a_pipe_that_nobody_reads_is_an_error_at_the_start(tmp_path: Path) -> None:
    """Opening it would wait for a reader, and the gateway with it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device or address"):
        writer(tmp_path / "pipe", "stdout")


def test_lines_are_appended_to_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("before\n")
    for line in (b"one\n", b"two\n"):
        writer(path, "stdout")(line)
    assert text_of(path) == "before\none\ntwo\n"


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    """Each worker has the file open, as here each writer."""
    path = tmp_path / "audit.jsonl"
    writers = [writer(path, "stdout") for _ in range(4)]

    def write(number: int) -> None:
        for _ in range(200):
            writers[number](b"%d" % number * 1000 + b"\n")

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    lines = text_of(path).splitlines()
    assert sorted(lines) == sorted(f"{number}" * 1000 for number in range(4) for _ in range(200))


def test_a_file_that_is_copied_and_truncated_goes_on_at_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write = writer(path, "stdout")
    write(b"one\n")
    os.truncate(path, 0)
    write(b"two\n")
    assert text_of(path) == "two\n"


def test_a_file_that_is_renamed_or_removed_stays_in_use(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write = writer(path, "stdout")
    write(b"one\n")
    path.rename(tmp_path / "old")
    write(b"two\n")
    assert text_of(tmp_path / "old") == "one\ntwo\n"
    (tmp_path / "old").unlink()
    write(b"three\n")
    assert not path.exists()


@pytest.mark.parametrize("where", ["missing/audit.jsonl", ".", "a file/audit.jsonl"])
def test_a_file_that_cannot_be_made_is_an_error_at_the_start(tmp_path: Path, where: str) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(OSError, match=r".+"):
        writer(tmp_path / where, "stdout")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_without_a_file_lines_go_to_a_stream(
    stream: str, capfd: pytest.CaptureFixture[str]
) -> None:
    writer(None, stream)(b"line\n")
    out, err = capfd.readouterr()
    assert (out, err) == (("line\n", "") if stream == "stdout" else ("", "line\n"))


# -- disks and readers --


class Disk:
    """Stands for `os.write`: has room for so many bytes, then fails."""

    def __init__(self, room: int, at_once: int = 1 << 20) -> None:
        self.room = room
        self.at_once = at_once
        self.content = b""

    def write(self, _descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = min(self.room, self.at_once, len(data))
        self.content += data[:count]
        self.room -= count
        return count


def lines_to(
    disk: Disk, lines: Iterable[bytes], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write lines; when the disk is full it gets room for the next one."""
    write = writer(path, "stdout")
    with monkeypatch.context() as patch:
        patch.setattr("gateway.telemetry.writing.os.write", disk.write)
        for line in lines:
            try:
                write(line)
            except OSError:
                disk.room = 1 << 20


@pytest.mark.parametrize("room", range(15))
def test_a_line_that_a_full_disk_has_cut_spoils_no_other(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(room)
    lines_to(disk, [b"one\n", b"two\n", b"three\n", b"four\n"], tmp_path / "a", monkeypatch)
    written = disk.content.decode().split("\n")
    assert written[-1] == ""
    whole = [it for it in written if it in ("one", "two", "three", "four")]
    assert len(whole) >= 3, "only the one that was cut is lost"
    assert whole == sorted(whole, key=["one", "two", "three", "four"].index)
    assert len(written) <= 5


def test_a_disk_that_takes_a_byte_at_a_time_gets_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(1000, at_once=1)
    lines_to(disk, [b"one\n", b"two\n"], tmp_path / "a", monkeypatch)
    assert disk.content == b"one\ntwo\n"


def test_a_full_disk_stops_nobody_and_is_counted() -> None:
    audit = Audit(Style("json"), writer(Path("/dev/full"), "stdout"), 100, 1 << 20)
    for number in range(5):
        audit.ended(Ended("clients", number, "192.0.2.1:1", CALLER, EndReason.IDLE, 1.0, ""))
    audit.close(PATIENCE)
    assert audit.figures.dropped == 5


def test_a_reader_that_hangs_stops_nobody_and_is_counted() -> None:
    begun, may = threading.Semaphore(0), threading.Event()
    written: list[bytes] = []

    def write(data: bytes) -> None:
        begun.release()
        assert may.wait(PATIENCE)
        written.append(data)

    audit = Audit(Style("json"), write, 10, 1 << 20)
    audit.ended(Ended("clients", 0, "192.0.2.1:1", CALLER, EndReason.IDLE, 1.0, ""))
    assert begun.acquire(timeout=PATIENCE)
    for number in range(1, 100):
        audit.ended(Ended("clients", number, "192.0.2.1:1", CALLER, EndReason.IDLE, 1.0, ""))
    assert audit.figures.dropped == 99 - 10
    may.set()
    audit.close(PATIENCE)
    lines = [json.loads(line) for line in b"".join(written).splitlines()]
    assert [it.get("connection") for it in lines] == [*range(11), None]
    assert (lines[-1]["event"], lines[-1]["lines"]) == ("lines_dropped", 89)
