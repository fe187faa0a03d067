"""Workers are started, asked, told to stop, and started again; here they are small programs."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import pytest
import trio
from structlog.testing import capture_logs

from gateway.errors import ConfigurationError
from gateway.workers.crew import Crew, Start

PATIENCE = 30.0
ACTING = [sys.executable, "-m", "tests.unit.workers.acting"]

Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What is logged."""
    with capture_logs() as found:
        yield found


def crew_of(size: int, *command: str) -> Crew:
    return Crew(size, Start(command, [], lambda _: {}))


def program(text: str) -> Sequence[str]:
    return [sys.executable, "-c", text]


@asynccontextmanager
async def running(crew: Crew) -> AsyncIterator[Crew]:
    """At the end nothing is left of it."""
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
    """The processes that answer, by number, as soon as these are so many."""
    while len(found := await crew.ask("who", PATIENCE)) < size:  # noqa: ASYNC110
        await trio.sleep(0.01)
    return {number: pid for number, (pid,) in found.items()}


def ends(lines: Lines) -> list[dict[str, Any]]:
    described = [it for it in lines if it["event"] == "worker_ended"]
    return [{k: v for k, v in it.items() if k not in ("event", "log_level")} for it in described]


async def test_all_places_are_taken_and_asked(lines: Lines) -> None:
    async with running(crew_of(3, *ACTING, "ready")) as crew:
        found = await pids(crew, 3)
        assert set(found) == {1, 2, 3}
        assert len(set(found.values())) == crew.running == 3
    assert sorted(it["process"] for it in lines if it["event"] == "worker_started") == sorted(
        found.values()
    )
    assert ends(lines) == []
    assert crew.restarts == 0


async def test_one_that_is_killed_has_a_follower_and_the_others_go_on(lines: Lines) -> None:
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


async def test_one_that_cannot_stay_is_started_again_and_again(lines: Lines) -> None:
    async with running(crew_of(1, *program("raise SystemExit(3)"))) as crew:
        await until(lambda: crew.restarts == 2)
    assert ends(lines)[:2] == [{"worker": 1, "status": 3}] * 2


async def test_one_that_cannot_be_started_is_tried_again(lines: Lines) -> None:
    async with running(crew_of(1, "no/such/program")) as crew:
        await until(lambda: crew.restarts == 2)
    reason = "cannot be started: no such file or directory"
    assert ends(lines)[0] == {"worker": 1, "status": None, "reason": reason}


async def test_without_a_descriptor_it_is_tried_again(
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
async def test_a_mistake_at_the_first_start_ends_all(command: list[str], said: str) -> None:
    with trio.fail_after(PATIENCE), pytest.raises(ConfigurationError, match=said):
        await crew_of(2, *command).run()


async def test_nobody_follows_after_the_stop(lines: Lines) -> None:
    """Who waits to be started again waits no more."""
    async with running(crew_of(2, *program("raise SystemExit(3)"))) as crew:
        await until(lambda: crew.restarts >= 4)
        crew.stop()
        await crew.ended.wait()
        restarts = crew.restarts
    assert crew.restarts == restarts


async def test_one_that_does_not_answer_is_left_out_and_told(lines: Lines) -> None:
    async with running(crew_of(2, *ACTING, "stopped")) as crew:
        found = await pids(crew, 2)
        os.kill(found[2], signal.SIGUSR1)
        while (answers := await crew.ask("who", 0.2)).keys() != {1}:
            pass  # the signal is on its way, or this machine is slow
        assert answers == {1: [found[1]]}
        os.kill(found[2], signal.SIGKILL)
    silent = [it for it in lines if it["event"] == "worker_silent"]
    assert {(it["worker"], it["subject"]) for it in silent} == {(2, "who")}


async def test_a_signal_for_those_that_listen_spares_the_others(lines: Lines) -> None:
    """It would end one that has not said yet what to do about it."""
    text = "import time; time.sleep(1000)"
    async with running(crew_of(1, *program(text))) as crew:
        await until(lambda: crew.running)
        crew.signal(signal.SIGHUP, listening=True)
        crew.signal(signal.SIGUSR1)
        await until(lambda: ends(lines))
    assert ends(lines)[0] == {"worker": 1, "signal": "SIGUSR1"}
