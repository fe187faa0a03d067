"""Child processes of the demonstration: small Python programs."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from gateway.lab.demo import stage
from gateway.lab.demo.children import Child, ChildError, running

pytestmark = pytest.mark.tier("test")

STOP_SECONDS = 10.0
"""Seconds after which an expected event has failed."""

STUBBORN = """\
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("here", flush=True)
sys.stdin.read()
signal.pause()
"""


def _child(folder: Path, program: str) -> AbstractAsyncContextManager[Child]:
    command = [sys.executable, "-c", program]
    return running("the child", command, folder / "log", piped=True)


async def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    async with _child(tmp_path, "print('one\\ntwo', flush=True); input()") as child:
        assert await child.read_line() == b"one"
        assert await child.read_line() == b"two"
        child.require_running()


async def test_closing_the_input_reaches_the_child(tmp_path: Path) -> None:
    async with _child(tmp_path, "import sys; print(len(sys.stdin.read()))") as child:
        await child.close_input()
        assert await child.read_line() == b"0"


async def test_an_ended_child_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    program = "import sys; [print(n, file=sys.stderr) for n in range(100)]; sys.exit(3)"
    async with _child(tmp_path, program) as child:
        with pytest.raises(ChildError) as raised:
            await child.read_line()
        with pytest.raises(ChildError, match="ended by itself with status 3"):
            child.require_running()
    first, *lines = str(raised.value).splitlines()
    assert first == "the child ended by itself with status 3; its last lines:"
    assert lines == [f"  {number}" for number in range(92, 100)]


async def test_stop_returns_the_exit_status(tmp_path: Path) -> None:
    async with _child(tmp_path, "print(flush=True); input()") as child:
        await child.read_line()
        assert await child.stop(STOP_SECONDS) == -signal.SIGTERM
        assert await child.stop(STOP_SECONDS) == -signal.SIGTERM, "it may be told twice"


async def test_a_child_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    async with _child(tmp_path, STUBBORN) as child:
        await child.read_line()
        assert await child.stop(0.05) is None


async def test_no_child_outlives_its_context(tmp_path: Path) -> None:
    program = "import os; print(os.getpid(), flush=True); input()"
    async with _child(tmp_path, program) as child:
        pid = int(await child.read_line())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_ctrl_c_at_the_terminal_does_not_reach_a_child(tmp_path: Path) -> None:
    program = "import os; print(os.getpgrp(), flush=True); input()"
    async with _child(tmp_path, program) as child:
        assert int(await child.read_line()) != os.getpgrp()


async def test_a_report_is_read_by_its_name(tmp_path: Path) -> None:
    program = """print('{"counts": {"a": 1}}', flush=True); input()"""
    async with _child(tmp_path, program) as child:
        assert await stage.read_report(child, "counts", STOP_SECONDS) == {"a": 1}


async def test_a_missing_report_is_an_error(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with _child(tmp_path, "input()") as child:
        with pytest.raises(ChildError, match="the child did not say 'counts' within 5 s"):
            await stage.read_report(child, "counts", 5.0)
