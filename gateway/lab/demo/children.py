"""Child processes: started, watched, and stopped in order.

A child has a session of its own, so that Ctrl-C at the terminal reaches only the demonstration,
which then ends its children in order. A child's output goes to a file; a failure shows its last
lines.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

STOP_SECONDS = 10.0
"""Seconds from SIGTERM until a child is killed. The gateway's own grace period is shorter."""

HURRIED_STOP_SECONDS = 2.0
"""The same after a failure, or after a second signal."""

_TAIL_LINES = 8
_TAIL_BYTES = 8192
_READ_SIZE = 65536

_LONGEST_LINE = 1_000_000
"""Bytes of one report. Reports of the demonstration's clients have some thousand."""


class ChildError(Exception):
    """A child process ended by itself, or failed. The error's text is for the user."""


class Child:
    """One child process. `name`: what messages call the process, such as `the gateway`."""

    def __init__(self, name: str, process: trio.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._unread = b""

    def require_running(self) -> None:
        """Raise `ChildError` if the process has already ended."""
        status = self._process.poll()
        if status is not None:
            raise self.failure(f"ended by itself with status {status}")

    def failure(self, what: str) -> ChildError:
        """Return an error whose text is the child's name, `what` the child did, and the last lines
        that the child wrote."""
        return ChildError(f"{self.name} {what}; its last lines:\n{self._tail()}")

    async def read_line(self) -> bytes:
        """Return the next line of the child's standard output. Raises `ChildError` if the output
        ends, or if the line is too long."""
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            received = await self._process.stdout.receive_some(_READ_SIZE)
            self._unread += received
            if not received or len(self._unread) > _LONGEST_LINE:
                with trio.move_on_after(HURRIED_STOP_SECONDS):
                    await self._process.wait()
                self.require_running()
                raise self.failure("says nothing more")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    async def close_input(self) -> None:
        """Close the child's standard input, which tells the child to finish."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()

    async def wait(self, seconds: float) -> int | None:
        """Wait until the child ends, and return its exit status; None if it does not end within
        `seconds`."""
        with trio.move_on_after(seconds):
            return await self._process.wait()
        return None

    async def stop(self, seconds: float) -> int | None:
        """Send SIGTERM to the child and return its exit status. If it has not ended after
        `seconds`, kill it and return None."""
        if self._process.poll() is None:
            self._process.terminate()
            with trio.move_on_after(seconds):
                return await self._process.wait()
            self._process.kill()
            await self._process.wait()
            return None
        return self._process.returncode

    def _tail(self) -> str:
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])


@asynccontextmanager
async def running(
    name: str, command: Sequence[str], log: Path, *, piped: bool = False
) -> AsyncIterator[Child]:
    """Start a child process, and stop it at the end of the context.

    `log`: the file to which the child's output is written. `piped`: the caller reads the child's
    standard output, and holds its standard input open.
    """
    pipe = subprocess.PIPE if piped else None
    with log.open("ab") as file:
        process = await trio.lowlevel.open_process(
            command,
            stdin=pipe or subprocess.DEVNULL,
            stdout=pipe or file,
            stderr=file,
            start_new_session=True,
        )
    child = Child(name, process, log)
    try:
        yield child
    finally:
        with trio.CancelScope(shield=True):
            await child.stop(HURRIED_STOP_SECONDS)
