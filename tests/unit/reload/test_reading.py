"""Another process reads: what it finds, what is wrong, and that it never stays."""

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
from gateway.reload import passing, reading
from gateway.reload.reading import Refused, read
from gateway.rules import files

GOOD = "version: 1\nrules:\n  - {id: %s, limit: {publish: {messages: '%s'}}}\n"


async def test_rules_are_those_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of folders too, and with the variables of this process."""
    monkeypatch.setenv("RATE_OF_A_TEST", "7/s")
    (tmp_path / "a.yaml").write_text(GOOD % ("a", "${RATE_OF_A_TEST}"))
    (tmp_path / "b.yml").write_text(GOOD % ("b", "5/s"))
    said = await read([tmp_path])
    assert isinstance(said, bytes)
    found = tuple(passing.parse(said))
    assert found == files.rules_of(files.load([tmp_path]))
    assert [rule.limit.publish and rule.limit.publish.messages for rule in found] == [7, 5]


async def test_mistakes_are_those_that_the_command_tells(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD % ("a", "fast") + "  - {id: a}\n")
    (tmp_path / "b.yaml").write_text("rules: [")
    with pytest.raises(ConfigurationError) as error:
        files.check([tmp_path])
    told = tuple(str(error.value).splitlines())
    assert len(told) > 3
    assert await read([tmp_path]) == Refused(told)


async def test_a_mistake_names_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml"))
    await trio.Path(file).touch()
    said = await read([file])
    assert isinstance(said, Refused)
    assert said.mistakes[0].startswith(rf"{tmp_path}/\udcff.yaml:1: ")


def failed(text: str) -> Refused:
    """Not for what the files say: it may pass."""
    return Refused((text,), passes=True)


class Started:
    """The processes that were started, all by one command."""

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


async def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["sleep", "600"])
    assert await read([], patience=0.2) == failed("to read them took longer than 0.2 s")
    assert started.have_ended


async def test_a_process_that_says_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["cat", "/dev/zero"])
    assert await read([], largest=100) == Refused(("they are more than 100 bytes can hold",))
    assert started.have_ended


async def test_a_process_that_fails_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["false"])
    assert await read([]) == failed("the process that reads them ended with status 1")
    assert started.have_ended


async def test_that_none_can_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "command", lambda _: ["/nowhere/python"])
    text = "no process could be started to read them: No such file or directory"
    assert await read([]) == failed(text)


async def test_a_process_ends_with_whoever_awaits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, ["sleep", "600"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read, [])
        while not started.all:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert started.have_ended


async def test_a_process_is_of_our_session_and_not_of_our_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a session of its own it would not be nice to us; in our group Ctrl-C would end it."""
    ask = "import os; print(os.getsid(0), os.getpgid(0), os.getpid())"
    Started(monkeypatch, [sys.executable, "-c", ask])
    said = await read([])
    assert isinstance(said, bytes)
    session, group, process = map(int, said.split())
    assert (session, group) == (os.getsid(0), process)


def test_modules_are_sought_where_we_seek_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the same name in the working folder is not for it, unless it is for us too."""
    monkeypatch.chdir(tmp_path)
    assert "-P" in reading.command([])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "-P" not in reading.command([])
