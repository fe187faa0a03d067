"""A crowd of producers, many on each connection and each on a topic of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress

from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import Client
from tests.support.frames import send, simple

EACH = 100
"""Producers of one connection: their requests fit into the buffers of the kernel, so all are sent
before the first answer is read."""

TENANTS = 1_000
"""As many as have metrics of their own."""

_ROOM = 1 << 20


def topics(number: int, wave: int = 0) -> list[str]:
    """Return the names of this many topics of all tenants. Each wave has others."""
    return [f"persistent://tenant-{it % TENANTS}/crowd/wave-{wave}-{it}" for it in range(number)]


class Crowd:
    """Open producers, one on each topic."""

    def __init__(self, port: int, names: Sequence[str]) -> None:
        parts = (names[at : at + EACH] for at in range(0, len(names), EACH))
        self._groups = [_Group(port, part) for part in parts]

    def use(self) -> None:
        """Have each producer send a message, and await the receipts."""
        for group in self._groups:
            group.ask(group.sends, Kind.SEND_RECEIPT)

    def sending(self, at_once: int) -> Iterator[None]:
        """Have the next producers send a message each, at every step; all of them again and again.
        Receipts are dropped, so `use` and `close` are over."""
        for group in self._groups:
            group.client.sock.setblocking(False)
        while True:
            for group in self._groups:
                for begin in range(0, len(group.sends), at_once):
                    group.drop()
                    group.client.sock.sendall(b"".join(group.sends[begin : begin + at_once]))
                    yield

    def close(self) -> None:
        """Close the producers, and then their connections."""
        for group in self._groups:
            group.close()

    def leave(self) -> None:
        """Close the connections at once."""
        for group in self._groups:
            group.client.close()


class _Group:
    """The producers of one connection."""

    def __init__(self, port: int, names: Sequence[str]) -> None:
        self.client = Client(port).open()
        self._ids = range(len(names))
        self.sends = [send(id, 1) for id in self._ids]
        self.ask(
            [
                simple(Kind.PRODUCER, topic=name, producer_id=id, request_id=id)
                for id, name in zip(self._ids, names, strict=True)
            ],
            Kind.PRODUCER_SUCCESS,
        )

    def ask(self, frames: Sequence[bytes], wanted: int) -> None:
        """Send frames, and await an answer of this type for each."""
        self.client.sock.sendall(b"".join(frames))
        for _ in frames:
            answer = self.client.hear()
            assert answer.type == wanted, answer

    def drop(self) -> None:
        """Drop what has come."""
        with suppress(BlockingIOError):
            self.client.sock.recv(_ROOM, socket.MSG_TRUNC)

    def close(self) -> None:
        closes = [simple(Kind.CLOSE_PRODUCER, producer_id=id, request_id=id) for id in self._ids]
        self.ask(closes, Kind.SUCCESS)
        self.client.close()
