"""Runs the client programs, and reads their reports.

All programs have the same command line and reports, so a test need not know which one it runs.
Messages are numbered from 0, and their content is their number in decimal digits.
"""

import json
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.brokers.processes import end, spawn, tail

LIMIT_SECONDS = 45
"""Default limit of a program's run time. Tests that wait for a program get its report before they
time out."""
QUIET_MS = 500
"""How long a consumer that has everything waits for repeats."""
STOP_SECONDS = 15
"""After SIGTERM a producer still waits for its receipts."""
WRITING_STACKS = 1.0
FAILED = 1
"""Exit status of a program with an error."""


@dataclass(frozen=True)
class Sent:
    """What became of a producer's messages."""

    acknowledged: frozenset[int]
    """The numbers of acknowledged messages."""
    errors: tuple[str, ...]
    """The library's errors for failed messages, each text once."""
    longest_send_ms: float


@dataclass(frozen=True)
class Received:
    """What a consumer received. All of it is acknowledged."""

    received: frozenset[int]
    redelivered: int
    """Number of redeliveries. A consumer acknowledges in groups, so when a topic moves, messages
    that it had not yet acknowledged are redelivered, with a gateway or without."""
    stored_twice: int
    """Number of messages received again under another id: sent again although the broker had
    them."""
    out_of_order: int
    """Number of messages first received after a later one of their key and partition."""
    errors: tuple[str, ...]


@dataclass(frozen=True)
class Transacted:
    """What became of transactions."""

    moved: frozenset[int]
    """The numbers of the messages moved by committed transactions."""
    committed: int
    aborted: int
    failed: int
    """Number of transactions with an unknown outcome."""
    errors: tuple[str, ...]
    longest_ms: float


PACKINGS = (
    *("batched", "batched by key"),
    *(codec + how for codec in ("LZ4", "ZLIB", "ZSTD", "SNAPPY") for how in ("", " batched")),
    *("sealed", "sealed batched", "sealed LZ4", "sealed LZ4 batched"),
)
"""The ways that `packed` tries: in batches or singly, compressed, and encrypted (sealed)."""

ABORTED = 1_000_000
"""Messages with numbers from here on were sent to be aborted."""


class Running:
    """A started program, which may not be connected yet. Ask for its report once, by the method of
    its verb."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._is_ready = False

    def await_ready(self) -> None:
        """Return when the program is connected to its topic; fail with its log if it cannot
        connect."""
        if not self._is_ready:
            assert self._line() == {"ready": True}
            self._is_ready = True

    def await_complete(self) -> None:
        """Return when a consumer that stays has received everything, and repeats had their time."""
        self.await_ready()
        assert self._line() == {"complete": True}

    def refused(self) -> str:
        """Return what the program wrote when it gave up to connect to its topic, by itself."""
        line = self._process.stdout.readline() if self._process.stdout else b""
        assert not line, f"the client was not refused: {line!r}"
        code = self._process.wait(STOP_SECONDS)
        assert code == FAILED, f"the client ended with {code}:\n{tail(self._log)}"
        return self._log.read_text(errors="replace")

    def tell_to_stop(self) -> None:
        """Ask the program to end in good order and to report what it has done."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program at once, so that it closes nothing."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def sent(self) -> Sent:
        report = self._report()
        return Sent(
            frozenset(_numbers(report["acknowledged"])),
            tuple(report["errors"]),
            report["longest_send_ms"],
        )

    def received(self) -> Received:
        report = self._report()
        return Received(
            frozenset(_numbers(report["received"])),
            report["redelivered"],
            report["stored_twice"],
            report["out_of_order"],
            tuple(report["errors"]),
        )

    def transacted(self) -> Transacted:
        report = self._report()
        return Transacted(
            frozenset(_numbers(report["moved"])),
            report["committed"],
            report["aborted"],
            report["failed"],
            tuple(report["errors"]),
            report["longest_ms"],
        )

    def seen(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = self._report()["seen"]
        return found

    def await_loaded(self, patience: float) -> None:
        """Wait until the program, having been told to stop, has written its load's results."""
        ended = self._line()
        assert ended == {"loaded": True}, ended
        code = self._process.wait(patience)
        assert code == 0, f"the client ended with {code}:\n{tail(self._log)}"

    def _report(self) -> Any:
        self.await_ready()
        report = self._line()
        code = self._process.wait(STOP_SECONDS)
        assert code == 0, f"the client ended with {code}:\n{tail(self._log)}"
        return report

    def _line(self) -> Any:
        """Return the next line that the program prints, which must come within its time limit."""
        assert self._process.stdout
        try:
            line = self._process.stdout.readline()
        except TimeoutError as error:
            self._process.send_signal(signal.SIGQUIT)  # writes where each of its threads is
            time.sleep(WRITING_STACKS)
            raise AssertionError(f"{error}; the client's log:\n{tail(self._log, 100)}") from None
        assert line, f"the client printed nothing:\n{tail(self._log)}"
        return json.loads(line)


def _numbers(pairs: Iterable[Sequence[int]]) -> Iterator[int]:
    for first, last in pairs:
        yield from range(first, last + 1)


@dataclass(frozen=True)
class Tls:
    """The files of a client that speaks TLS: the authority that it trusts, and, if it shows a
    certificate, that and its key. `as_credential`: the certificate is its authentication, too."""

    trusted: Path
    certificate: Path | None = None
    key: Path | None = None
    as_credential: bool = False

    def words(self) -> list[str]:
        """Return the options of a program."""
        words = ["--trust", str(self.trusted)]
        if self.certificate:
            words += ["--certificate", str(self.certificate), "--private-key", str(self.key)]
        return words + ["--tls-credential"] * self.as_credential


@dataclass(frozen=True)
class Program:
    """A client program; its arguments follow `command`. It runs for `limit` seconds at most, and
    presents `token` unless a call names another, or what is in `token_file` whenever it needs a
    token. `tls`: for URLs with TLS."""

    name: str
    command: tuple[str, ...]
    limit: int = LIMIT_SECONDS
    token: str | None = None
    tls: Tls | None = None
    token_file: Path | None = None

    @contextmanager
    def producing(
        self,
        url: str,
        topic: str,
        count: int,
        log: Path,
        *,
        batch: bool = False,
        key: bool = False,
        serial: bool = False,
        interval_ms: int = 0,
        patience: int = 0,
        token: str | None = None,
    ) -> Iterator[Running]:
        """Send `count` messages (0: until told to stop), one each `interval_ms`; optionally in
        batches, and with one of ten keys in turn. `serial`: wait for each receipt, and end at the
        first error. `patience`: seconds after which a message fails (Go only)."""
        words = ["produce", topic, str(count), "--interval-ms", str(interval_ms)]
        words += ["--batch"] * batch + ["--key"] * key + ["--serial"] * serial
        words += ["--patience-s", str(patience)] if patience else []
        with self.running(url, words, log, token) as running:
            yield running

    @contextmanager
    def consuming(
        self,
        url: str,
        topic: str,
        subscription: str,
        count: int,
        log: Path,
        *,
        kind: str = "exclusive",
        queue: int = 1000,
        work_ms: int = 0,
        poll_ms: int = 0,
        stay: bool = False,
        token: str | None = None,
    ) -> Iterator[Running]:
        """Receive `count` different messages (0: until told to stop), and those of a moment after
        that.

        `kind`: exclusive, shared, failover or key_shared. A new subscription starts at the oldest
        message. `queue`: messages that wait in the consumer; with 0 it requests each message when
        needed, and needs a `count`. `work_ms`: time spent on each message. `poll_ms`: how long to
        wait for a message before asking again (Go only). `stay`: go on when all
        has come, for which `await_complete` waits, until told to stop.
        """
        words = ["consume", topic, subscription, str(count), "--type", kind]
        words += ["--queue", str(queue), "--work-ms", str(work_ms), "--quiet-ms", str(QUIET_MS)]
        words += ["--poll-ms", str(poll_ms)] if poll_ms else []
        words += ["--stay"] * stay
        with self.running(url, words, log, token) as running:
            yield running

    @contextmanager
    def transacting(
        self, url: str, source: str, target: str, count: int, log: Path, *, batch: bool = False
    ) -> Iterator[Running]:
        """Move `count` different messages (0: until told to stop) from one topic to the other by
        transactions. Every fourth is aborted, and its messages are taken again."""
        words = ["transact", source, target, str(count), *["--batch"] * batch]
        with self.running(url, words, log) as running:
            yield running

    def tried(
        self, url: str, verb: str, topic: str, count: int, log: Path, size: int = 0
    ) -> dict[str, list[int]]:
        """Do what the verb says with `count` messages (of `size` bytes), and return the received
        numbers by the way they were received."""
        words = [verb, topic, str(count), "--size", str(size)]
        with self.running(url, words, log) as running:
            return running.seen()

    @contextmanager
    def running(
        self, url: str, words: Sequence[str], log: Path, token: str | None = None
    ) -> Iterator[Running]:
        """Yield the program running a verb with its arguments."""
        command = [*self.command, url, *words, "--limit-s", str(self.limit)]
        shown = token or self.token
        command += ["--token", shown] if shown else []
        command += ["--token-file", str(self.token_file)] if self.token_file else []
        command += self.tls.words() if self.tls else []
        process = spawn(command, log, output=subprocess.PIPE)
        try:
            yield Running(process, log)
        finally:
            end(process, STOP_SECONDS)
            assert process.stdout
            process.stdout.close()
