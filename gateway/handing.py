"""Has a child read and check the configuration, and takes the settings over from it.

The child is a fork of this process, made before trio is imported or a thread started, so that what
both need is imported once. It writes the mistakes to a pipe, or the settings, pickled as rules are
(`reload.reader`). Meanwhile this process imports what serves.

A gateway with rules or workers checks its configuration itself, without a child, and its settings
are models (`config.parts`): rules, which it reads when it starts, are checked by the same means.
"""

from __future__ import annotations

import os
import pickle
import traceback
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from gateway.config import face
from gateway.errors import BAD_CONFIGURATION, ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.config.model import Configuration

_NEED_MODELS = ("rules", "workers", "\\")
"""A file that contains none of these has neither rules nor workers. A backslash begins an escape,
which could spell either word. If a file contains one of these elsewhere, the serving process reads
the file itself, and takes more memory."""


def handed(path: Path) -> Configuration:
    """Return the configuration in a file. Raises `ConfigurationError`, as `load.load` does."""
    data = _data(path)
    child = None if data is None or _needs_models(data) else _forked(path, data)
    if child is None:
        return load_here(path, data)
    face.checks = False
    import gateway.app  # noqa: F401 - meanwhile

    status, written = child.ended()
    if status == BAD_CONFIGURATION:
        raise ConfigurationError(written.decode(errors="surrogateescape"))
    if status:
        raise ConfigurationError(f"{path}: cannot be checked; the process that does so has failed")
    configuration: Configuration = pickle.loads(written)  # noqa: S301 - from our own child
    assert not configuration.rules
    assert configuration.workers == 1
    return configuration


def load_here(path: Path, data: bytes | None = None) -> Configuration:
    """Return the configuration in a file, which this process checks itself. `data`: the file's
    content, if the caller has already read it. Raises `ConfigurationError`."""
    from gateway.config.load import load

    return load(path, data=data)


def _data(path: Path) -> bytes | None:
    """Return the bytes of a file, or None if it cannot be read. A pipe can be read only once."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _needs_models(data: bytes) -> bool:
    text = data.decode(errors="replace")  # of text, `splitlines` knows each line end of YAML
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return any(word in line for line in lines for word in _NEED_MODELS)


class _Child(NamedTuple):
    """The process that checks the file. `process`: its number. `reading`: the end of its pipe from
    which this process reads."""

    process: int
    reading: int

    def ended(self) -> tuple[int, bytes]:
        """Wait until the child has ended. Return its exit status (below zero if a signal ended it),
        and the bytes that it wrote."""
        with os.fdopen(self.reading, "rb") as pipe:
            written = pipe.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1]), written


def _forked(path: Path, data: bytes) -> _Child | None:
    """Fork the child, which checks a file that holds `data`. Return None if the system has no room
    for another process."""
    import gateway.protocols  # noqa: F401 - which both need

    reading, writing = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if not process:
        os.close(reading)  # or nobody notices that the parent is gone
        _check(path, data, writing)
    os.close(writing)
    return _Child(process, reading)


def _check(path: Path, data: bytes, writing: int) -> NoReturn:
    """Write the settings or the mistakes to the pipe, and exit at once: the child must not write
    what the parent has in its buffers, nor do what the parent does at its end."""
    status = 1
    try:
        result, written = _checked(path, data)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(written)
        status = result
    except BrokenPipeError:  # the parent is gone
        pass
    except BaseException:  # noqa: BLE001 - else the child would go on as the parent does
        traceback.print_exc()
    finally:
        os._exit(status)


def _checked(path: Path, data: bytes) -> tuple[int, bytes]:
    """Return the exit status, and the pickled settings or the mistakes."""
    try:
        return 0, pickle.dumps(load_here(path, data))
    except ConfigurationError as error:
        # A file's name may have bytes that are not UTF-8.
        return BAD_CONFIGURATION, str(error).encode(errors="surrogateescape")
