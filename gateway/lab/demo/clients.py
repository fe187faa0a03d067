"""The clients of one topic, common to all libraries: when they send, and what they count."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from gateway.lab.demo.plan import Flow
from gateway.lab.demo.tally import ClientCounts, Tally, payload

OPEN_SECONDS = 15
"""Seconds in which one producer or consumer must open, with the client's own retries."""

TICK_SECONDS = 0.02
"""Seconds between two checks for due messages: too short to be seen."""

RECEIVE_SECONDS = 0.2
"""How long a consumer waits for a message before it checks whether to end."""

SETTLE_SECONDS = 10.0
"""For receipts, and again for deliveries, once sending has stopped. Usually milliseconds; a topic
that moves just then needs a second, as does one that a rule limits.
"""


class OpenError(Exception):
    """A producer or consumer cannot be opened. The text is written for a person."""


class FlowLoad(ABC):
    """The clients of one topic, and what they count. Methods raise the errors of the client
    library."""

    def __init__(self, flow: Flow, run: bytes) -> None:
        self.flow = flow
        self._run = run
        self._tally = Tally(run)
        self._lock = threading.Lock()
        self._is_sending = True

    @abstractmethod
    def open(self) -> None:
        """Open the consumers, then the producer, so that no message is sent before it has a
        consumer."""

    @abstractmethod
    def close(self) -> None:
        """Close all clients, and leave no subscription at the broker."""

    @abstractmethod
    def tasks(self, ending: threading.Event, ended: threading.Event) -> list[Callable[[], None]]:
        """Return functions to be run in threads. They send messages until `ending` is set, and
        receive until `ended` is set."""

    def _send_due(self, ending: threading.Event, send: Callable[[bytes], None]) -> None:
        """Send the messages that are due, until `ending`."""
        begin = time.monotonic()
        number = 0
        while not ending.wait(TICK_SECONDS):
            due = self.flow.due(time.monotonic() - begin)
            while number < due and not ending.is_set():
                send(payload(self._run, number, self.flow.size))
                number += 1
        with self._lock:
            self._is_sending = False

    # -- counts ------------------------------------------------------------------------------

    @property
    def is_answered(self) -> bool:
        """Return whether sending is over, and each sent message has got a receipt or an error."""
        with self._lock:
            return not self._is_sending and self._tally.is_answered

    @property
    def is_complete(self) -> bool:
        with self._lock:
            return self._tally.is_complete

    def counts(self) -> ClientCounts:
        with self._lock:
            return self._tally.counts()


class Library(Protocol):
    """A client library, used with one service URL.

    `error`: the class of its exceptions. `needs`: what brokers must have so that topics can be
    opened.
    """

    error: type[Exception]
    needs: str

    def load(self, flow: Flow, run: bytes) -> FlowLoad:
        """Return the clients of one topic, which are not open yet. `run`: the id of this run, which
        each message contains."""

    def close(self) -> None:
        """Close what the clients of different topics share. Raises exceptions of class `error`."""
