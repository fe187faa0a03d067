"""Starting, asking, stopping and restarting workers, which are small programs here."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
import trio
from structlog.testing import capture_logs

from gateway.errors import ConfigurationError
from gateway.system.restarts import FIRST, LASTING, LONGEST, BackOff
from gateway.workers.crew import Crew, Start, _ask

pytestmark = pytest.mark.tier("test")

PATIENCE = 30.0
ACTING = [sys.executable, "-m", "tests.unit.workers.acting"]

Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Return the captured log lines."""
    with capture_logs() as found:
        yield found


def crew_of(size: int, *command: str) -> Crew:
    return Crew(size, Start(command, [], lambda _: {}))


def program(text: str) -> Sequence[str]:
    return [sys.executable, "-c", text]


@asynccontextmanager
async def running(crew: Crew) -> AsyncIterator[Crew]:
    """Run a crew, and end all its processes afterwards."""
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crew.run)
            try:
                yield crew
            finally:
                crew.stop()
                with trio.CancelScope(shield=True):
                    await crew.ended.wait()
    assert crew.running == 0


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - a process tells no event
        await trio.sleep(0.01)


async def pids(crew: Crew, size: int) -> dict[int, int]:
    """Return the process ids by worker number once `size` workers answer."""
    while len(found := await crew.ask("who", PATIENCE)) < size:  # noqa: ASYNC110
        await trio.sleep(0.01)
    return {number: pid for number, (pid,) in found.items()}


def ends(lines: Lines) -> list[dict[str, Any]]:
    described = [it for it in lines if it["event"] == "worker_ended"]
    return [{k: v for k, v in it.items() if k not in ("event", "log_level")} for it in described]


async def test_all_slots_are_filled_and_asked(lines: Lines) -> None:
    async with running(crew_of(3, *ACTING, "ready")) as crew:
        found = await pids(crew, 3)
        assert set(found) == {1, 2, 3}
        assert len(set(found.values())) == crew.running == 3
    assert sorted(it["process"] for it in lines if it["event"] == "worker_started") == sorted(
        found.values()
    )
    assert ends(lines) == []
    assert crew.restarts == 0


async def test_a_killed_worker_is_replaced_and_the_others_continue(lines: Lines) -> None:
    async with running(crew_of(2, *ACTING, "ready")) as crew:
        before = await pids(crew, 2)
        assert crew.lives == {1: 0, 2: 0}
        os.kill(before[1], signal.SIGKILL)
        await until(lambda: crew.restarts)
        after = await pids(crew, 2)
        assert crew.lives == {1: 1, 2: 0}
        assert after[2] == before[2]
        assert after[1] != before[1]
    assert ends(lines) == [{"worker": 1, "signal": "SIGKILL"}]


async def test_a_worker_that_keeps_ending_is_restarted(lines: Lines) -> None:
    async with running(crew_of(1, *program("raise SystemExit(3)"))) as crew:
        await until(lambda: crew.restarts == 2)
    assert ends(lines)[:2] == [{"worker": 1, "status": 3}] * 2


async def test_a_failed_start_is_retried(lines: Lines) -> None:
    async with running(crew_of(1, "no/such/program")) as crew:
        await until(lambda: crew.restarts == 2)
    reason = "cannot be started: no such file or directory"
    assert ends(lines)[0] == {"worker": 1, "status": None, "reason": reason}


async def test_a_start_without_descriptors_is_retried(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as few:
        few.setattr(socket, "socketpair", refuse)
        async with running(crew_of(1, *ACTING, "ready")) as crew:
            await until(lambda: ends(lines))
            few.undo()
            await pids(crew, 1)
    assert ends(lines)[0]["reason"] == "cannot be started: too many open files"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param([*ACTING, "mistaken"], "this is wrong", id="told"),
        pytest.param(program("raise SystemExit(2)"), "ended with status 2", id="not told"),
    ],
)
async def test_a_mistake_at_the_first_start_ends_all_workers(command: list[str], said: str) -> None:
    with trio.fail_after(PATIENCE), pytest.raises(ConfigurationError, match=said):
        await crew_of(2, *command).run()


async def test_no_worker_is_restarted_after_the_stop(lines: Lines) -> None:
    """A delayed restart is given up."""
    async with running(crew_of(2, *program("raise SystemExit(3)"))) as crew:
        await until(lambda: crew.restarts >= 4)
        crew.stop()
        await crew.ended.wait()
        restarts = crew.restarts
    assert crew.restarts == restarts


async def test_a_silent_worker_is_left_out_and_logged(lines: Lines) -> None:
    async with running(crew_of(2, *ACTING, "stopped")) as crew:
        found = await pids(crew, 2)
        os.kill(found[2], signal.SIGUSR1)
        while (answers := await crew.ask("who", 0.2)).keys() != {1}:
            pass  # the signal is on its way, or this machine is slow
        assert answers == {1: [found[1]]}
        os.kill(found[2], signal.SIGKILL)
    silent = [it for it in lines if it["event"] == "worker_silent"]
    assert {(it["worker"], it["subject"]) for it in silent} == {(2, "who")}


async def test_a_signal_for_listening_workers_spares_the_others(lines: Lines) -> None:
    """The signal would end a worker that does not handle it yet."""
    text = "import time; time.sleep(1000)"
    async with running(crew_of(1, *program(text))) as crew:
        await until(lambda: crew.running)
        crew.signal(signal.SIGHUP, listening=True)
        crew.signal(signal.SIGUSR1)
        await until(lambda: ends(lines))
    assert ends(lines)[0] == {"worker": 1, "signal": "SIGUSR1"}


def test_delays_grow_while_a_worker_keeps_ending() -> None:
    back_off = BackOff()
    waits = [back_off.after(lived=1.0) for _ in range(10)]
    assert waits[0] == FIRST
    assert all(later == min(LONGEST, 2 * wait) for wait, later in pairwise(waits))
    assert waits[-1] == LONGEST


def test_a_long_life_resets_the_delay() -> None:
    back_off = BackOff()
    for _ in range(10):
        back_off.after(lived=1.0)
    assert [back_off.after(lived=LASTING), back_off.after(lived=0.0)] == [FIRST, 2 * FIRST]


async def test_a_worker_that_ends_just_before_it_is_asked_gives_no_answer() -> None:
    answers: dict[int, list[object]] = {}
    await _ask(Mock(channel=None, number=1), "unready", None, answers)
    assert answers == {}
