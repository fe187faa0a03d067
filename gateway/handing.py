"""Has a child read and check the configuration, and takes the settings over from it.

The child is `python -m gateway.handing FILE`. It writes the settings to standard output, or
with status `BAD_CONFIGURATION` the mistakes. Settings are pickled, as rules are (`reload.reader`):
they come through a pipe from this process's own child. Meanwhile this process imports what it needs
to serve.

Settings are models in a gateway with rules, which are checked by the same means when it starts, and
in one with workers; it reads its configuration itself.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config import face
from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.system.interpreter import command

if TYPE_CHECKING:
    from gateway.config.model import Configuration

_NEED_MODELS = (b"rules", b"workers")
"""A file without these words has neither. One that has them in a comment loses nothing but
memory."""


def handed(path: Path) -> Configuration:
    """Return the configuration in a file. Raises `ConfigurationError`, as `load.load` does."""
    child = _started(path)
    if child is None:
        return load_here(path)
    face.checks = False
    import gateway.app  # noqa: F401

    written, _ = child.communicate()
    if child.returncode == BAD_CONFIGURATION:
        raise ConfigurationError(written.decode(errors="surrogateescape"))
    if child.returncode:
        raise ConfigurationError(f"{path}: cannot be checked; the process that does so has failed")
    configuration: Configuration = pickle.loads(written)  # noqa: S301 - from our own child
    return configuration


def load_here(path: Path) -> Configuration:
    """Return the configuration in a file that this process reads itself."""
    from gateway.config.load import load

    return load(path)


def _started(path: Path) -> subprocess.Popen[bytes] | None:
    """Start the child; return None if this process has to read the file itself."""
    try:
        text = path.read_bytes()
        if any(word in text for word in _NEED_MODELS):
            return None
        checking = command("gateway.handing", os.fspath(path))
        return subprocess.Popen(  # noqa: S603 - a module of ours, and the file's name
            checking, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    except OSError:
        return None  # no file, of which `load` says so, or no process


def main(path: Path) -> int:
    """Write the settings in a file, and return the exit status."""
    try:
        settings = pickle.dumps(load_here(path))
    except ConfigurationError as error:
        # A file's name may have bytes that are not UTF-8.
        sys.stdout.buffer.write(str(error).encode(errors="surrogateescape"))
        return BAD_CONFIGURATION
    sys.stdout.buffer.write(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
