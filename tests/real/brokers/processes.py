"""Child processes that never outlive the test run."""

import functools
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


@functools.cache
def _prefix() -> tuple[str, ...]:
    """Return the prefix that makes the kernel end the child when the test run is killed, if
    available."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL")
    tried = subprocess.run([*prefix, "true"], check=False, capture_output=True, timeout=10)
    return prefix if tried.returncode == 0 else ()


def spawn(
    command: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    output: int | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `command` in the directory of `log`, which takes its output. Its standard output goes
    to `output` (as in Popen) if given. `descriptors`: others that it inherits."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [*_prefix(), *command],
            stdin=subprocess.DEVNULL,
            stdout=file if output is None else output,
            stderr=file,
            cwd=log.parent,
            env=env,
            pass_fds=descriptors,
            # A terminal interrupt is for the test run, which then ends its children.
            start_new_session=True,
        )


def end(
    process: subprocess.Popen[bytes], patience: float, how: signal.Signals = signal.SIGTERM
) -> int | None:
    """End a child, by SIGKILL after `patience` seconds. Return its exit code, None if it was
    killed."""
    process.send_signal(how)
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
