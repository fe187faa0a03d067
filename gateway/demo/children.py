"""Child processes: started, watched, stopped in good order.

A child is in a session of its own: Ctrl-C at the terminal goes to the demo alone, which then ends
its children in the right order. What a child prints goes to a file, whose last lines are shown
where it fails.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

PATIENCE = 10.0
"""Seconds from SIGTERM until a child is killed. The gateway's own grace is below it."""

SHORT_PATIENCE = 2.0
"""The same where something has failed already, or the person is in a hurry."""

_TAIL_LINES = 8
_TAIL_BYTES = 8192
_READ_SIZE = 65536

_LONGEST_LINE = 1_000_000
"""Bytes of one report. Those of the demo's own clients have some thousand."""


class ChildError(Exception):
    """A child ended by itself, or did not do its part. The text is written for a person."""


class Child:
    """One running process. `name` stands in messages, as `the gateway`."""

    def __init__(self, name: str, process: trio.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._unread = b""

    def require(self) -> None:
        """Raises `ChildError` where it has ended."""
        status = self._process.poll()
        if status is not None:
            raise self.failure(f"ended by itself with status {status}")

    def failure(self, what: str) -> ChildError:
        """What happened to it, with its last words."""
        return ChildError(f"{self.name} {what}; its last lines:\n{self._tail()}")

    async def line(self) -> bytes:
        """The next line of its standard output. Raises `ChildError` where no more comes."""
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            received = await self._process.stdout.receive_some(_READ_SIZE)
            self._unread += received
            if not received or len(self._unread) > _LONGEST_LINE:
                with trio.move_on_after(SHORT_PATIENCE):
                    await self._process.wait()
                self.require()
                raise self.failure("says nothing more")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    async def close_input(self) -> None:
        """Tell it by the end of its standard input that it is to finish."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()

    async def ended(self, patience: float) -> int | None:
        """Its exit status when it ends by itself, None where it does not in so many seconds."""
        with trio.move_on_after(patience):
            return await self._process.wait()
        return None

    async def stop(self, patience: float) -> int | None:
        """End it by SIGTERM; its exit status, None where it had to be killed."""
        if self._process.poll() is None:
            self._process.terminate()
            with trio.move_on_after(patience):
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
    name: str, command: Sequence[str], log: Path, *, speaks: bool = False
) -> AsyncIterator[Child]:
    """Start a child; it has ended when the context is left. `speaks`: on standard output, and it
    listens on standard input.
    """
    pipe = subprocess.PIPE if speaks else None
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
            await child.stop(SHORT_PATIENCE)
