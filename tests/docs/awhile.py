"""`python awhile.py COMMAND...`: run a command that serves until it is ended; end it a second after
it has said that it is ready, and exit with its status."""

from __future__ import annotations

import subprocess
import sys
import time

READY = (b'"event": "listening"', b"sandbox ready")

PATIENCE = 60.0
"""Seconds, after which a command that is never ready is ended as well."""


def main() -> int:
    """Return the exit status of the command."""
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    until = time.monotonic() + PATIENCE
    for line in process.stdout:
        sys.stdout.buffer.write(line)
        if any(it in line for it in READY) or time.monotonic() > until:
            break
    time.sleep(1)
    process.terminate()
    sys.stdout.buffer.write(process.stdout.read())
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
