"""The workers as the parent sees them: it starts, asks, signals and restarts them."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
import trio

from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.system.restarts import BackOff
from gateway.workers.channel import AnswerError, Channel, Handler


@dataclass(slots=True)
class Worker:
    """One numbered worker, and its present process, if it has one.

    `life`: number of processes that this worker had before. `listens`: the process has reported
    that it accepts connections. `mistake`: what the process reported as wrong in the configuration.
    """

    number: int
    life: int = 0
    process: trio.Process | None = None
    channel: Channel | None = None
    listens: bool = False
    mistake: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """How a worker is started. `command`: the program; the descriptor of the channel is appended.
    `descriptors`: other descriptors that the worker inherits. `handlers`: returns the functions
    that answer the questions of one worker, by the worker's number."""

    command: Sequence[str]
    descriptors: Sequence[int]
    handlers: Callable[[int], Mapping[str, Handler]]


class Crew:
    """All worker processes of one gateway.

    A worker that ends without being told to is restarted, after a delay that grows while restarted
    workers keep ending. If a worker finds a mistake in the configuration at its first start, all
    workers end. `listened`: set once a worker has accepted clients. `ended`: set once the last
    process has ended.
    """

    def __init__(self, size: int, start: Start) -> None:
        self.restarts = 0
        self.listened = trio.Event()
        self.ended = trio.Event()
        self._workers = [Worker(number) for number in range(1, size + 1)]
        self._start = start
        self._stopping = trio.Event()
        self._mistake = ""
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    @property
    def running(self) -> int:
        """Return how many worker processes run now."""
        return sum(worker.process is not None for worker in self._workers)

    @property
    def lives(self) -> dict[int, int]:
        """Return by worker number how many processes of the worker have ended."""
        return {worker.number: worker.life for worker in self._workers}

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start all workers, and restart those that end, until `stop` is called. Return when the
        last process has ended.

        Raises `ConfigurationError` with the mistake that a worker found in the configuration.
        """
        async with trio.open_nursery() as nursery:
            for worker in self._workers:
                nursery.start_soon(self._supervise, worker)
        self.ended.set()
        if self._mistake:
            raise ConfigurationError(self._mistake)

    def stop(self) -> None:
        """Tell all workers to drain and stop."""
        self._stopping.set()
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals, *, listening: bool = False) -> None:
        """Send a signal to all workers. `listening`: only to workers that accept connections,
        because the others may not handle the signal yet."""
        for worker in self._workers:
            if worker.process is not None and (worker.listens or not listening):
                worker.process.send_signal(number)

    async def _supervise(self, worker: Worker) -> None:
        back_off, first = BackOff(), True
        while not self._stopping.is_set():
            began = trio.current_time()
            status = await self._run_process(worker)
            if self._stopping.is_set():
                return
            if first and status == BAD_CONFIGURATION:
                self._mistake = worker.mistake or f"a worker ended with status {BAD_CONFIGURATION}"
                self.stop()
                return
            self._log.warning(
                "worker_ended", worker=worker.number, **_outcome(status, worker.mistake)
            )
            with trio.move_on_after(back_off.after(trio.current_time() - began)):
                await self._stopping.wait()
            self.restarts += not self._stopping.is_set()
            first = False

    async def _run_process(self, worker: Worker) -> int | None:
        """Run one process in this slot. Return its exit status, or None if it could not start."""
        worker.mistake = ""
        try:
            worker.process, stream = await self._spawn()
        except (OSError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            worker.mistake = f"cannot be started: {(reason or str(error)).lower()}"
            return None
        worker.channel = Channel(stream, self._handlers(worker))
        self._log.info("worker_started", worker=worker.number, process=worker.process.pid)
        if self._stopping.is_set():
            worker.process.terminate()
        try:
            return await self._watch(worker.process, worker.channel)
        finally:
            worker.process, worker.channel, worker.listens = None, None, False
            worker.life += 1

    async def _spawn(self) -> tuple[trio.Process, trio.SocketStream]:
        """Return a new process, and the parent's end of its channel."""
        ours, theirs = socket.socketpair()
        try:
            process = await trio.lowlevel.open_process(
                [*self._start.command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *self._start.descriptors],
                # Ctrl-C must reach the parent alone, which then tells all workers.
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return process, trio.SocketStream(trio.socket.from_stdlib_socket(ours))

    async def _watch(self, process: trio.Process, channel: Channel) -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_channel, channel)
            status = await process.wait()
            nursery.cancel_scope.cancel()
        return status

    async def _run_channel(self, channel: Channel) -> None:
        try:
            await channel.run()
        except* Exception:  # noqa: BLE001
            # A bug that concerns one worker: it finds its channel closed, stops, and is replaced.
            self._log.exception("channel_failed")

    def _handlers(self, worker: Worker) -> Mapping[str, Handler]:
        def ready(_: object) -> Iterator[None]:
            worker.listens = True
            self.listened.set()
            yield None

        def mistaken(text: Any) -> Iterator[None]:
            worker.mistake = str(text)
            yield None

        return {"ready": ready, "mistaken": mistaken, **self._start.handlers(worker.number)}

    # -- questions ---------------------------------------------------------------------------

    async def ask(self, subject: str, patience: float, value: Any = None) -> dict[int, list[Any]]:
        """Put a question to all workers that accept connections. Return the parts of each answer
        that came within `patience` seconds, by worker number. `subject`, `value`: the question's
        name and argument."""
        answers: dict[int, list[Any]] = {}
        listening = [
            worker for worker in self._workers if worker.listens and worker.channel is not None
        ]
        with trio.move_on_after(patience):
            async with trio.open_nursery() as nursery:
                for worker in listening:
                    nursery.start_soon(partial(_ask, worker, subject, value, answers))
        for worker in listening:
            if worker.number not in answers and worker.listens:
                self._log.warning("worker_silent", worker=worker.number, subject=subject)
        return answers


async def _ask(worker: Worker, subject: str, value: Any, answers: dict[int, list[Any]]) -> None:
    if worker.channel is None:  # it ended before this task began
        return
    # A worker that fails to answer is ending, or logs the reason itself.
    with suppress(trio.BrokenResourceError, AnswerError):
        answers[worker.number] = await worker.channel.ask(subject, value)


def _outcome(status: int | None, mistake: str) -> dict[str, object]:
    """Return the log fields about how a worker ended."""
    reason: dict[str, object] = {"reason": mistake} if mistake else {}
    if status is not None and status < 0:
        return {"signal": signal.Signals(-status).name, **reason}
    return {"status": status, **reason}
