"""Messages at a fixed pace, from producers to consumers.

Each flow is a producer and a consumer on connections of their own. A message passes the gateway
twice: to the broker, which answers it with a receipt, and from the broker to the consumer, which
acknowledges ten at a time. Both ends of all connections are here.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import cycle, islice

from gateway.wire.pulsar.frames import Kind
from tests.soak.brokers import Brokers
from tests.soak.pods import Pod
from tests.soak.runner import claim
from tests.soak.stalled import open_taken
from tests.support.frames import message, metadata_of, receipt, send, simple, tail

PAYLOAD = bytes(1024)
AT_ONCE = 10
"""Messages that one ACK acknowledges. Clients collect them for 100 ms."""

FLOWS = 50

PATIENCE = 5.0
"""Seconds in which the last messages arrive."""

_ROOM = 1 << 18
_SEND = send(1, 1, PAYLOAD)
_RECEIPT = receipt(1, 1)
_MESSAGE = message(1, tail(metadata_of(), PAYLOAD))
_ACK = simple(
    Kind.ACK,
    consumer_id=1,
    ack_type=0,
    message_id=[{"ledgerId": 123_456, "entryId": entry} for entry in range(AT_ONCE)],
)


class _End:
    """One end of a connection, which receives frames of one size."""

    def __init__(self, sock: socket.socket, frame: bytes) -> None:
        self.sock = sock
        self._size, self._part = len(frame), 0
        sock.setblocking(False)

    def taken(self) -> int:
        """Receive what has come, and return the number of frames that it completes."""
        size = 0
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            size = self._once()
            while isinstance(self.sock, ssl.SSLSocket):
                size += self._once()
        whole, self._part = divmod(self._part + size, self._size)
        return whole

    def _once(self) -> int:
        part = len(self.sock.recv(_ROOM))
        claim(part > 0, "a connection was closed")
        return part


class _Flow:
    """A producer, a consumer, and the broker's ends of their connections."""

    def __init__(self, pod: Pod, behind: Brokers, stack: ExitStack, number: int) -> None:
        self.received = 0
        self._unacknowledged = 0
        ends = []
        for consume in (False, True):
            client = stack.enter_context(pod.client(number))
            open_taken(client, consume=consume)
            ends += [client.sock, stack.enter_context(behind.taken.get(timeout=10))]
        frames = (_RECEIPT, _SEND, _MESSAGE, _ACK)
        self._producer, self._sent_to, self._consumer, self._read_from = map(_End, ends, frames)

    def send(self) -> None:
        self._producer.sock.sendall(_SEND)

    def handlers(self) -> list[tuple[socket.socket, Callable[[], object]]]:
        """Return what to call when a socket is readable."""
        return [
            (self._producer.sock, self._producer.taken),
            (self._sent_to.sock, self._dispatch),
            (self._consumer.sock, self._consume),
            (self._read_from.sock, self._read_from.taken),
        ]

    def _dispatch(self) -> None:
        if number := self._sent_to.taken():
            self._sent_to.sock.sendall(_RECEIPT * number)
            self._read_from.sock.sendall(_MESSAGE * number)

    def _consume(self) -> None:
        number = self._consumer.taken()
        self.received += number
        acks, self._unacknowledged = divmod(self._unacknowledged + number, AT_ONCE)
        if acks:
            self._consumer.sock.sendall(_ACK * acks)


class Flows:
    """Some flows through a gateway. They end with `stack`. `late`: seconds by which the last load
    took longer than it should."""

    def __init__(self, pod: Pod, behind: Brokers, stack: ExitStack, number: int = FLOWS) -> None:
        self.late = 0.0
        self._flows = [_Flow(pod, behind, stack, it) for it in range(number)]
        self._selector = stack.enter_context(selectors.EpollSelector())
        for flow in self._flows:
            for sock, handler in flow.handlers():
                self._selector.register(sock, selectors.EVENT_READ, handler)

    def run(self, rate: int, seconds: float) -> int:
        """Send this many messages a second, each flow in its turn, and return their number once
        all have arrived."""
        number, before = int(rate * seconds), self._received
        began, sent, turns = time.monotonic(), 0, cycle(self._flows)
        while sent < number:
            due = min(number, int((time.monotonic() - began) * rate) + 1)
            for flow in islice(turns, due - sent):
                flow.send()
            sent = due
            self._handle(began + sent / rate - time.monotonic())
        self.late = time.monotonic() - began - seconds
        deadline = time.monotonic() + PATIENCE
        while self._received < before + number and time.monotonic() < deadline:
            self._handle(0.1)
        claim(self._received == before + number, "not all messages arrived")
        return number

    @property
    def _received(self) -> int:
        return sum(flow.received for flow in self._flows)

    def _handle(self, timeout: float) -> None:
        for key, _ in self._selector.select(max(0.0, timeout)):
            key.data()
