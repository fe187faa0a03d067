"""`python -m gateway.usage.shipper`: sends closed files of records to their topics, for a gateway.

The process reads messages of its gateway from standard input, and writes reports to standard output
(`shipment`). If the gateway is killed, the input ends, and this process ends too.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from gateway.usage.client import Client, service_of
from gateway.usage.outbox import Outbox
from gateway.usage.sending import Sending
from gateway.usage.shipment import LONGEST, ORDERS, Away, Brief, Finish, Shown, line_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.usage.client import Proof
    from gateway.usage.shipment import Report

LOOK = 2.0
"""Seconds between two looks for closed files. Each takes one `stat` for each hour whose files are
kept: 0.2 % of a core for a week."""

FIRST, AT_MOST = 1.0, 30.0
"""Seconds until the next attempt after one failure, and after many."""

NICENESS = 19
"""Gives the data path priority on a shared core."""


class Inbox:
    """The latest messages of the gateway, which a thread reads from `source`. `finish`: is set when
    the gateway tells the process to end."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._shown = threading.Event()
        self._proof: Proof = ("none", b"")
        self.finish = threading.Event()

    def brief(self) -> Brief:
        """Return the first message, the gateway's `Brief`, and start a thread that reads the later
        messages."""
        line = self._source.readline(LONGEST)
        if not line:
            _end()
        brief = ORDERS.decode(line)
        assert isinstance(brief, Brief)
        threading.Thread(target=self._read, daemon=True).start()
        return brief

    def proof(self) -> Proof:
        """Return the method and the data of the credential for brokers. If the gateway has sent
        none yet, wait for it."""
        self._shown.wait()
        return self._proof

    def _read(self) -> None:
        while line := self._source.readline(LONGEST):
            match ORDERS.decode(line):
                case Shown() as shown:
                    self._proof = (shown.method, shown.secret)
                    self._shown.set()
                case Finish():
                    self.finish.set()
        _end()  # the gateway is gone, and may have another one in its place


def main() -> None:
    """Send closed files of records to their topics until the gateway tells this process to end, or
    itself ends."""
    os.nice(NICENESS)
    # A supervisor may signal all processes of a service: this one ends when its gateway says so.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    out = _own_output()
    inbox = Inbox(os.fdopen(0, "rb", buffering=0))  # no lock for a thread to hold at the end
    brief = inbox.brief()

    def report(message: Report) -> None:
        try:
            out.write(line_of(message))
            out.flush()
        except BrokenPipeError:
            _end()

    if _is_alone(brief, inbox, report):
        _work(brief, inbox, report)


def _own_output() -> BinaryIO:
    """Return the standard output; what other code writes there is discarded from now on."""
    out = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return out


def _is_alone(brief: Brief, inbox: Inbox, report: Callable[[Report], None]) -> bool:
    """Wait until no other process sends these files, such as the shipper of a gateway that drains;
    return False if the gateway ends the process before."""
    lock = os.open(
        Path(brief.folder) / f".{brief.gateway}.shipper", os.O_WRONLY | os.O_CREAT, 0o640
    )
    is_reported = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if not is_reported:
                report(Away("another process sends these files"))
            is_reported = True
        if inbox.finish.wait(LOOK):
            return False


def _work(brief: Brief, inbox: Inbox, report: Callable[[Report], None]) -> None:
    service = service_of(brief)
    outbox = Outbox(Path(brief.folder), brief.gateway, brief.topics)
    sending = Sending(outbox, brief.topics, lambda: Client(service, inbox.proof), report)
    back_off = FIRST
    while True:
        is_last = inbox.finish.is_set()
        if sending.send_all(time.time()):
            pause, back_off = LOOK, FIRST
        else:
            pause, back_off = back_off, min(2 * back_off, AT_MOST)
        if is_last:
            return
        inbox.finish.wait(pause)


def _end() -> NoReturn:
    """End the process without waiting for its threads: those of the library may wait for
    brokers."""
    os._exit(0)


if __name__ == "__main__":
    main()
    _end()
