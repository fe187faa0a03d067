"""`make run-real`: the demo in front of a real Pulsar, fetched once and started for it.

`python -m tests.real.run [--seconds N] [--picture FILE.svg]` fetches the jars, starts a standalone
on loopback, creates the demo's tenants, and runs `gateway demo` in front of it. In any case the
broker is stopped at the end and its data removed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from gateway.errors import ConfigurationError
from gateway.lab.demo import plan
from gateway.lab.demo.command import run

from .brokers.admin import Admin
from .brokers.jars import PULSAR_VERSION, FetchError, MissingToolError, pulsar_jars
from .brokers.standalone import Standalone, StartError

FAILED, MISTAKEN = 1, 2
TELL_SECONDS = 5  # between two progress reports of a fetch
INTERRUPTED = 130  # the exit status of a command that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _pulsar() as broker:
            _furnish(broker.admin)
            return run(seconds=options.seconds, brokers=broker.service_url, picture=options.picture)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return MISTAKEN
    except (MissingToolError, FetchError, StartError) as error:
        print(f"no real Pulsar: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.run", description="The demo in front of a real Pulsar."
    )
    parser.add_argument("--seconds", type=float, metavar="N")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg")
    return parser


@contextmanager
def _pulsar() -> Iterator[Standalone]:
    with _progress():
        jars = pulsar_jars(_say)
    folder = Path(tempfile.mkdtemp(prefix="broker-gateway-run-"))
    broker = Standalone(jars, folder)
    try:
        _say(f"starting Pulsar {PULSAR_VERSION} at {broker.service_url} (some 5 to 20 s)")
        broker.start()
        yield broker
    finally:
        _say("stopping Pulsar")
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _progress() -> Iterator[None]:
    """Report the progress of a fetch now and then. Without a fetch there is nothing to report."""
    done = threading.Event()
    before, begin = _fetched(), time.monotonic()

    def tell() -> None:
        while not done.wait(TELL_SECONDS):
            megabytes = (_fetched() - before) / 1e6
            _say(f"still fetching: {time.monotonic() - begin:.0f} s, {megabytes:.0f} MB so far")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _fetched() -> int:
    """Return the bytes in Maven's own cache, into which it fetches everything before it copies
    anything."""
    total = 0
    for folder, _, names in os.walk(Path.home() / ".m2" / "repository"):
        for name in names:
            with suppress(OSError):  # renamed just now
                total += (Path(folder) / name).stat().st_size
    return total


def _furnish(admin: Admin) -> None:
    """Create what the demo's topics need. The sandbox needs none of it."""
    _say(f"creating the tenants {', '.join(plan.tenants())}")
    for tenant in plan.tenants():
        admin.create_tenant(tenant)
    for namespace in plan.namespaces():
        admin.create_namespace(namespace)
    for flow in plan.FLOWS:
        if flow.partitions:
            admin.create_partitioned_topic(flow.topic, flow.partitions)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Treat SIGTERM like Ctrl-C, so that the broker is stopped."""
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
