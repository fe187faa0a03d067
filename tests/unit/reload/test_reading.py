"""Reading rules in another process: rules, mistakes, and that the process always ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from gateway.errors import ConfigurationError
from gateway.policy.dimensions import Dimension
from gateway.reload import reader, reading
from gateway.reload.reading import Refused, read
from gateway.rules import files

pytestmark = pytest.mark.tier("test")

GOOD = "version: 1\nrules:\n  - {id: %s, limit: {publish: {messages: '%s'}}}\n"


async def test_the_rules_of_the_files_are_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders and this process's environment variables work too."""
    monkeypatch.setenv("RATE_OF_A_TEST", "7/s")
    (tmp_path / "a.yaml").write_text(GOOD % ("a", "${RATE_OF_A_TEST}"))
    (tmp_path / "b.yml").write_text(GOOD % ("b", "5/s"))
    said = await read([tmp_path])
    assert isinstance(said, bytes)
    found = tuple(reader.parse(said))
    assert found == files.rules_of(files.load([tmp_path]))
    assert [dict(rule.limits)[Dimension.PUBLISH_MESSAGES] for rule in found] == [7, 5]


async def test_mistakes_are_those_of_the_check_command(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD % ("a", "fast") + "  - {id: a}\n")
    (tmp_path / "b.yaml").write_text("rules: [")
    with pytest.raises(ConfigurationError) as error:
        list(files.check([tmp_path], 0.0))
    told = tuple(str(error.value).splitlines())
    assert len(told) > 3
    assert await read([tmp_path]) == Refused(told)


async def test_a_mistake_can_name_a_file_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml"))
    await trio.Path(file).touch()
    said = await read([file])
    assert isinstance(said, Refused)
    assert said.mistakes[0].startswith(rf"{tmp_path}/\udcff.yaml:1: ")


def failed(text: str) -> Refused:
    """Return a refusal whose cause is not in the files."""
    return Refused((text,), is_temporary=True)


class Started:
    """Runs one command in place of the reader, and records its processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]) -> None:
        self.all: list[trio.Process] = []
        self._open = trio.lowlevel.open_process
        monkeypatch.setattr(reading, "command", lambda _: list(command))
        monkeypatch.setattr(trio.lowlevel, "open_process", self._start)

    async def _start(self, *arguments: Any, **options: Any) -> trio.Process:
        self.all.append(await self._open(*arguments, **options))
        return self.all[-1]

    @property
    def have_ended(self) -> bool:
        return bool(self.all) and all(process.returncode is not None for process in self.all)


async def test_a_process_that_takes_too_long_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["sleep", "600"])
    assert await read([], patience=0.2) == failed("reading them took longer than 0.2 s")
    assert started.have_ended


async def test_a_process_that_writes_too_much_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["cat", "/dev/zero"])
    assert await read([], largest=100) == Refused(("they take more than 100 bytes",))
    assert started.have_ended


async def test_a_failed_process_is_a_temporary_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["false"])
    assert await read([]) == failed("the process that reads them ended with status 1")
    assert started.have_ended


async def test_a_process_that_cannot_be_started_is_a_temporary_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "command", lambda _: ["/nowhere/python"])
    text = "cannot start a process to read them: No such file or directory"
    assert await read([]) == failed(text)


async def test_cancelling_the_reader_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["sleep", "600"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read, [])
        while not started.all:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert started.have_ended


async def test_the_process_has_our_session_but_its_own_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In its own session its niceness would not count; in our group Ctrl-C would end it."""
    ask = "import os; print(os.getsid(0), os.getpgid(0), os.getpid())"
    Started(monkeypatch, [sys.executable, "-c", ask])
    said = await read([])
    assert isinstance(said, bytes)
    session, group, process = map(int, said.split())
    assert (session, group) == (os.getsid(0), process)


def test_modules_are_imported_from_the_same_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process imports from the working folder only if this process does."""
    monkeypatch.chdir(tmp_path)
    assert "-P" in reading.command([])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "-P" not in reading.command([])
