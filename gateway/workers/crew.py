"""The workers, as the parent sees them: started, asked, told, and started again when they end."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
import trio

from gateway.errors import ConfigurationError
from gateway.workers.backoff import BackOff
from gateway.workers.channel import AnswerError, Channel, Handler

MISTAKEN = 2
"""Exit status of a worker that finds its configuration wrong."""


@dataclass(slots=True)
class Worker:
    """One place: the process that has it now, if any. `listens`: it has said so. `life`: how many
    had it before.
    """

    number: int
    life: int = 0
    process: trio.Process | None = None
    channel: Channel | None = None
    listens: bool = False
    mistake: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """How workers are started. `command`: what runs, with the descriptor of its channel behind it.
    `descriptors`: what it inherits beside that. `handlers`: answer what a worker asks, by number.
    """

    command: Sequence[str]
    descriptors: Sequence[int]
    handlers: Callable[[int], Mapping[str, Handler]]


class Crew:
    """See the module. One that ends though nobody asked is started again, the later the more often
    it has ended; one that finds a mistake at its first start ends all.
    """

    def __init__(self, size: int, start: Start) -> None:
        self.restarts = 0
        self.ended = trio.Event()
        self._workers = [Worker(number) for number in range(1, size + 1)]
        self._start = start
        self._stopping = trio.Event()
        self._mistake = ""
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    @property
    def running(self) -> int:
        """How many processes there are."""
        return sum(it.process is not None for it in self._workers)

    @property
    def lives(self) -> dict[int, int]:
        """Of each place the life that it has now, or will have."""
        return {it.number: it.life for it in self._workers}

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep all places taken until `stop`, and the last process has ended.

        Raises `ConfigurationError` with what a worker has found wrong.
        """
        async with trio.open_nursery() as nursery:
            for worker in self._workers:
                nursery.start_soon(self._keep, worker)
        self.ended.set()
        if self._mistake:
            raise ConfigurationError(self._mistake)

    def stop(self) -> None:
        """Tell all to stop, each as well as it can."""
        self._stopping.set()
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals, *, listening: bool = False) -> None:
        """Send a signal to all, or to those that are `listening`: others might not expect it."""
        for worker in self._workers:
            if worker.process is not None and (worker.listens or not listening):
                worker.process.send_signal(number)

    async def _keep(self, worker: Worker) -> None:
        back_off, first = BackOff(), True
        while not self._stopping.is_set():
            began = trio.current_time()
            status = await self._live(worker)
            if self._stopping.is_set():
                return
            if first and status == MISTAKEN:
                self._mistake = worker.mistake or f"a worker ended with status {MISTAKEN}"
                self.stop()
                return
            self._log.warning("worker_ended", worker=worker.number, **_end(status, worker.mistake))
            with trio.move_on_after(back_off.after(trio.current_time() - began)):
                await self._stopping.wait()
            self.restarts += not self._stopping.is_set()
            first = False

    async def _live(self, worker: Worker) -> int | None:
        """One process in this place, from its start to its end; answers its status."""
        worker.mistake = ""
        try:
            worker.process, stream = await self._begun()
        except (OSError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            worker.mistake = f"cannot be started: {(reason or str(error)).lower()}"
            return None
        worker.channel = Channel(stream, self._handlers(worker))
        self._log.info("worker_started", worker=worker.number, process=worker.process.pid)
        if self._stopping.is_set():
            worker.process.terminate()
        try:
            return await self._watched(worker.process, worker.channel)
        finally:
            worker.process, worker.channel, worker.listens = None, None, False
            worker.life += 1

    async def _begun(self) -> tuple[trio.Process, trio.SocketStream]:
        """A new process, and our end of its channel."""
        ours, theirs = socket.socketpair()
        try:
            process = await trio.lowlevel.open_process(
                [*self._start.command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *self._start.descriptors],
                # Ctrl-C is for the parent, which then tells all.
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return process, trio.SocketStream(trio.socket.from_stdlib_socket(ours))

    async def _watched(self, process: trio.Process, channel: Channel) -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._converse, channel)
            status = await process.wait()
            nursery.cancel_scope.cancel()
        return status

    async def _converse(self, channel: Channel) -> None:
        try:
            await channel.run()
        except* Exception:  # noqa: BLE001
            # A bug of ours, with one worker: it finds its channel closed, stops, and is replaced.
            self._log.exception("channel_failed")

    def _handlers(self, worker: Worker) -> Mapping[str, Handler]:
        def ready(_: object) -> Iterator[None]:
            worker.listens = True
            yield None

        def mistaken(text: Any) -> Iterator[None]:
            worker.mistake = str(text)
            yield None

        return {"ready": ready, "mistaken": mistaken, **self._start.handlers(worker.number)}

    # -- questions ---------------------------------------------------------------------------

    async def ask(self, subject: str, patience: float) -> dict[int, list[Any]]:
        """What those that listen answer within some seconds, by number, each in its parts."""
        answers: dict[int, list[Any]] = {}
        asked = [it for it in self._workers if it.listens and it.channel is not None]
        with trio.move_on_after(patience):
            async with trio.open_nursery() as nursery:
                for worker in asked:
                    nursery.start_soon(partial(_ask, worker, subject, answers))
        for number in _missing(asked, answers):
            self._log.warning("worker_silent", worker=number, subject=subject)
        return answers


async def _ask(worker: Worker, subject: str, answers: dict[int, list[Any]]) -> None:
    assert worker.channel is not None
    # Otherwise it ends, or its own log says what went wrong.
    with suppress(trio.BrokenResourceError, AnswerError):
        answers[worker.number] = await worker.channel.ask(subject)


def _missing(asked: Iterable[Worker], answers: Mapping[int, object]) -> list[int]:
    return [it.number for it in asked if it.number not in answers and it.listens]


def _end(status: int | None, mistake: str) -> dict[str, object]:
    """How it ended, for the log."""
    found: dict[str, object] = {"reason": mistake} if mistake else {}
    if status is not None and status < 0:
        return {"signal": signal.Signals(-status).name, **found}
    return {"status": status, **found}
