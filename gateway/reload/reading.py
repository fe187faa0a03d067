"""Starts a process that reads files of rules, and collects its output."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.errors import BAD_CONFIGURATION
from gateway.system import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PATIENCE = 60.0
"""Seconds until the process is killed. Reading 2000 rules takes one second on an idle machine."""

LARGEST = 64 * 1024 * 1024
"""Bytes that are read from the process: 100,000 rules, more than anybody has."""


class Refused(NamedTuple):
    """Why no rules were read, as lines of text for people. `is_temporary`: the cause is not in the
    files, so reading them again may succeed."""

    mistakes: tuple[str, ...]
    is_temporary: bool = False


async def read(
    paths: Iterable[Path], patience: float = PATIENCE, largest: int = LARGEST
) -> bytes | Refused:
    """Read files of rules in another process. Return the rules as `reader.write` has written them,
    or why there are none. `patience`: the most seconds that this may take. `largest`: the most
    bytes of output."""
    with trio.move_on_after(patience):
        try:
            status, output = await _run(command(paths), largest)
        except OSError as error:
            return _failed(f"cannot start a process to read them: {error.strerror}")
        return _check(status, output, largest)
    return _failed(f"reading them took longer than {patience:g} s")


def command(paths: Iterable[Path]) -> list[str]:
    """Return the command line that starts a process which reads these files."""
    return interpreter.command("gateway.reload.reader", *map(str, paths))


async def _run(command: Sequence[str], largest: int) -> tuple[int, bytes]:
    """Return the exit status and standard output, of at most one byte more than `largest`."""
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Ctrl-C must not reach the process. A new session would not do: Linux shares CPU time among
        # sessions (autogroups), and niceness counts only within one.
        process_group=0,
    )
    assert process.stdout is not None
    output = bytearray()
    try:
        async for chunk in process.stdout:
            output += chunk
            if len(output) > largest:
                process.kill()
                break
        return await process.wait(), bytes(output)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


def _check(status: int, output: bytes, largest: int) -> bytes | Refused:
    if len(output) > largest:
        return Refused((f"they take more than {largest} bytes",))
    if status == BAD_CONFIGURATION:
        return Refused(tuple(output.decode().splitlines()))
    if status:
        return _failed(f"the process that reads them ended with status {status}")
    return output


def _failed(text: str) -> Refused:
    return Refused((text,), is_temporary=True)
