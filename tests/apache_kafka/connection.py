"""A connection to a broker, on which a test sends frames of its own."""

from __future__ import annotations

import socket

from gateway.wire.kafka.frames import SIZE
from tests.apache_kafka.broker import HOST


class Connection:
    """A connection to a broker, or to a gateway before one."""

    def __init__(self, port: int, host: str = HOST) -> None:
        self.port = port
        self._socket = socket.create_connection((host, port), timeout=60)

    def ask(self, frame: bytes) -> bytes:
        """Return the response to a frame. Raises `EOFError` if the broker closes the connection."""
        self._socket.sendall(frame)
        size = self._received(SIZE.size)
        return size + self._received(SIZE.unpack(size)[0])

    def _received(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def close(self) -> None:
        self._socket.close()
