"""A connection to a server of TubeMQ, on which a test sends requests of its own."""

from __future__ import annotations

import socket
from typing import Any

from gateway.wire.tubemq.frames import length
from tests.playbooks_tubemq.script import ask, told
from tests.real.gateways import HOST

PATIENCE_S = 60


class Connection:
    """A connection to a server, or to a gateway before one."""

    def __init__(self, port: int, host: str = HOST) -> None:
        self._socket = socket.create_connection((host, port), timeout=PATIENCE_S)
        self._serial = 0
        self._received = b""

    def __call__(self, method: int, /, **fields: Any) -> Any:
        """Return the message of the reply to a request. Raises `EOFError` if the connection
        ends."""
        self._serial += 1
        self._socket.sendall(ask(method, self._serial, **fields))
        while not 0 < length(self._received) <= len(self._received):
            more = self._socket.recv(1 << 16)
            if not more:
                raise EOFError
            self._received += more
        size = length(self._received)
        frame, self._received = self._received[:size], self._received[size:]
        return told(frame)

    def close(self) -> None:
        self._socket.close()
