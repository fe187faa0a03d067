"""Child processes that never outlive the test run."""

import functools
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


@functools.cache
def _prefix() -> tuple[str, ...]:
    """Lets the kernel end the child when the test run is killed and cannot do so itself, where
    that can be asked for.
    """
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
) -> subprocess.Popen[bytes]:
    """Starts `command` in the directory of `log`, which takes all that it prints; but its standard
    output goes to `output` (as Popen has it) where that is given.
    """
    with log.open("ab") as file:
        return subprocess.Popen(
            [*_prefix(), *command],
            stdin=subprocess.DEVNULL,
            stdout=file if output is None else output,
            stderr=file,
            cwd=log.parent,
            env=env,
            # An interrupt at the terminal is for the test run, which then ends its children.
            start_new_session=True,
        )


def end(
    process: subprocess.Popen[bytes], patience: float, how: signal.Signals = signal.SIGTERM
) -> int | None:
    """Ends a child, by SIGKILL after `patience` seconds; its exit code, None if it had to be
    killed.
    """
    process.send_signal(how)
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
