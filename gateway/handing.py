"""Has a child read and check the configuration, and takes the settings over from it.

The child is `python -m gateway.handing FILE`. It gets what the file holds by standard input, and
writes the settings to standard output, or with status `BAD_CONFIGURATION` the mistakes. Settings
are pickled, as rules are (`reload.reader`): they come through a pipe from this process's own child.
Meanwhile this process imports what serves.

Settings are models in a gateway with rules, which are checked by the same means when it starts, and
in one with workers; it checks its configuration itself.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config import face
from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.system.interpreter import command

if TYPE_CHECKING:
    from gateway.config.model import Configuration

_NEED_MODELS = (b"rules", b"workers")
"""A file without these words has neither. One that has them elsewhere loses nothing but memory."""


def handed(path: Path) -> Configuration:
    """Return the configuration in a file. Raises `ConfigurationError`, as `load.load` does."""
    data = _data(path)
    child = None if data is None or _needs_models(data) else _started(path)
    if child is None:
        return load_here(path, data)
    face.checks = False
    written = _while_importing(child, data or b"")
    if child.returncode == BAD_CONFIGURATION:
        raise ConfigurationError(written.decode(errors="surrogateescape"))
    if child.returncode:
        raise ConfigurationError(f"{path}: cannot be checked; the process that does so has failed")
    configuration: Configuration = pickle.loads(written)  # noqa: S301 - from our own child
    if configuration.rules or configuration.workers != 1:
        raise ConfigurationError(
            f"{path}: hides rules or workers by escapes; write them as they are"
        )
    return configuration


def load_here(path: Path, data: bytes | None = None) -> Configuration:
    """Return the configuration in a file that this process checks itself. `data`: what it holds, if
    that has been read."""
    from gateway.config.load import load

    return load(path, data=data)


def _data(path: Path) -> bytes | None:
    """Return the bytes of a file, or None if it cannot be read. A pipe can be read only once."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _needs_models(data: bytes) -> bool:
    lines = [line for line in data.splitlines() if not line.lstrip().startswith(b"#")]
    return any(word in line for line in lines for word in _NEED_MODELS)


def _started(path: Path) -> subprocess.Popen[bytes] | None:
    """Start the child; return None if there can be none."""
    try:
        return subprocess.Popen(  # noqa: S603 - a module of ours, and the file's name
            command("gateway.handing", os.fspath(path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    except OSError:
        return None


def _while_importing(child: subprocess.Popen[bytes], data: bytes) -> bytes:
    """Give the child what the file holds, and import what serves. Return what it writes."""
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # it has failed, as its status says
        child.stdin.write(data)
        child.stdin.close()
    child.stdin = None
    import gateway.app  # noqa: F401

    return child.communicate()[0]


def main(path: Path) -> int:
    """Write the settings in a file, whose data come by standard input; return the exit status."""
    try:
        settings = pickle.dumps(load_here(path, sys.stdin.buffer.read()))
    except ConfigurationError as error:
        # A file's name may have bytes that are not UTF-8.
        sys.stdout.buffer.write(str(error).encode(errors="surrogateescape"))
        return BAD_CONFIGURATION
    sys.stdout.buffer.write(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
