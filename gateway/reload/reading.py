"""Has another process read files of rules, and takes what it says."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.reload.reader import MISTAKEN
from gateway.system import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PATIENCE = 60.0
"""Seconds until a process that reads is killed. It takes one for 2000 rules, on a machine that has
nothing else to do."""

LARGEST = 64 * 1024 * 1024
"""Bytes that are taken of it: 100,000 rules, which nobody has."""


class Refused(NamedTuple):
    """No rules came, and why: lines for a person. `passes`: not for what the files say."""

    mistakes: tuple[str, ...]
    passes: bool = False


async def read(
    paths: Iterable[Path], patience: float = PATIENCE, largest: int = LARGEST
) -> bytes | Refused:
    """Answer rules as they pass, for `passing.parse`."""
    with trio.move_on_after(patience):
        try:
            status, said = await _said(command(paths), largest)
        except OSError as error:
            return _failed(f"no process could be started to read them: {error.strerror}")
        return _found(status, said, largest)
    return _failed(f"to read them took longer than {patience:g} s")


def command(paths: Iterable[Path]) -> list[str]:
    """What reads."""
    return interpreter.command("gateway.reload.reader", *map(str, paths))


async def _said(command: Sequence[str], largest: int) -> tuple[int, bytes]:
    """Its status and standard output, of which no more is taken than one byte too many."""
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Ctrl-C is not for it. A session of its own would not do: Linux shares time among sessions
        # (autogroups), and the niceness of a process counts within its own alone.
        process_group=0,
    )
    assert process.stdout is not None
    said = bytearray()
    try:
        async for chunk in process.stdout:
            said += chunk
            if len(said) > largest:
                process.kill()
                break
        return await process.wait(), bytes(said)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


def _found(status: int, said: bytes, largest: int) -> bytes | Refused:
    if len(said) > largest:
        return Refused((f"they are more than {largest} bytes can hold",))
    if status == MISTAKEN:
        return Refused(tuple(said.decode().splitlines()))
    if status:
        return _failed(f"the process that reads them ended with status {status}")
    return said


def _failed(text: str) -> Refused:
    return Refused((text,), passes=True)
