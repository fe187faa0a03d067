"""Clients of TubeMQ in Java, see `java/Tube.java`, each of which does one piece of work."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tests.apache_tubemq.jars import LOGGING
from tests.real.brokers.jars import java

SMALL = (
    "-Xms16m",
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)
PATIENCE_S = 180
"""How long a client may work on a busy machine. It ends as soon as it is done."""

ASIDE_S = 30
"""What a client that receives may take for all but that."""

LINES = 30
"""How many of the last lines of a client are shown."""


class ClientError(Exception):
    """A client ended with an error, or not in time: the text is what it said."""


class Produced(NamedTuple):
    """How many messages were sent, and why others were not: `NUMBER CODE TEXT` of each."""

    sent: int
    failed: list[str]

    @property
    def missing(self) -> set[int]:
        """Return the numbers of those that were not sent."""
        return {int(it.split()[0]) for it in self.failed}


@dataclass(frozen=True)
class Tube:
    """Runs clients. `classpath`: a `TubeMQ`'s. With a `user`, they authenticate."""

    classpath: str
    user: str | None = None
    password: str = ""

    def run(self, *arguments: object, seconds: float, receiving: int | None = None) -> str:
        """Return what a client prints that ends in this time. Raises ClientError. What it notes is
        printed, for pytest to show with a test that fails. `receiving`: the seconds after which it
        receives no more."""
        command = self.command(*arguments, receiving=receiving)
        try:
            done = subprocess.run(command, check=False, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            told = _told(late.stdout, late.stderr)
            raise ClientError(f"{arguments} did not end within {seconds} s:\n{told}") from late
        told = _told(done.stdout, done.stderr)
        if done.returncode != 0:
            raise ClientError(f"{arguments} ended with {done.returncode}:\n{told}")
        print(told)
        return done.stdout.decode()

    @contextmanager
    def at_work(self, *arguments: object) -> Iterator[list[str]]:
        """Run a client until the block ends, and kill it then. Yields a list, which has the lines
        that the client printed once the block has ended."""
        printed: list[str] = []
        with subprocess.Popen(
            self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as client:
            try:
                yield printed
            finally:
                client.kill()
                printed += client.communicate()[0].decode().splitlines()

    def command(self, *arguments: object, receiving: int | None = None) -> list[str]:
        """Return the command of a client with these arguments. `receiving`: see `run`."""
        given: dict[str, object] = {"level": "warn"}
        if self.user is not None:
            given |= {"user": self.user, "password": self.password}
        if receiving is not None:
            given["seconds"] = receiving
        properties = [f"-D{name}={value}" for name, value in given.items()]
        program = [java(), *SMALL, LOGGING, *properties, "-cp", self.classpath, "Tube"]
        return [*program, *map(str, arguments)]


def group() -> str:
    """Return the name of a new group."""
    return f"g{uuid.uuid4().hex}"


def produce(
    tube: Tube, master: str, topic: str, count: int, size: int = 0, seconds: int = PATIENCE_S
) -> Produced:
    """Send messages with the numbers from 0 on, each once the one before is done. `master`: its
    `host:port`, or a gateway's; `size`: of payloads, in bytes. Raises ClientError."""
    printed = tube.run("produce", master, topic, count, size, seconds=seconds)
    *failures, last = printed.splitlines()
    _, sent, _, failed = last.split()
    assert int(failed) == len(failures)
    return Produced(int(sent), [it.removeprefix("failed ") for it in failures])


def pull(
    tube: Tube, master: str, topic: str, group: str, count: int, seconds: int = PATIENCE_S
) -> list[int]:
    """Return the numbers of messages that a group receives whose partitions the master spreads:
    until there are so many, or this time is over. Raises ClientError."""
    return _received(tube, "pull", (master, topic, group, count), seconds)


def balance(
    tube: Tube, master: str, topic: str, group: str, count: int, seconds: int = PATIENCE_S
) -> list[int]:
    """Return the same for a group whose only client takes all partitions itself."""
    return _received(tube, "balance", (master, topic, group, count), seconds)


def _received(tube: Tube, how: str, what: tuple[object, ...], seconds: int) -> list[int]:
    printed = tube.run(how, *what, seconds=seconds + ASIDE_S, receiving=seconds)
    return [int(it) for it in printed.split()]


def _told(out: bytes | None, err: bytes | None) -> str:
    """Return the ends of what a client prints and notes."""
    both = ((it or b"").decode(errors="replace").splitlines() for it in (out, err))
    return "\n".join("\n".join(lines[-LINES:]) for lines in both).strip()
