"""A client on a plain socket: sends frames and reads answers."""

from __future__ import annotations

import socket
import struct
from contextlib import AbstractContextManager
from typing import Any

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support import frames
from tests.support.sandbox import Sandbox

PATIENCE = 60.0
"""Seconds to wait for an expected frame."""
SILENCE = 0.3
"""Seconds without a frame that count as silence."""


class Peer(AbstractContextManager["Peer"]):
    """One connection to `host:port`."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)

    @classmethod
    def of(cls, sandbox: Sandbox, broker: int) -> Peer:
        return cls(address_of(sandbox, broker))

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, kind: Kind, **fields: Any) -> None:
        self.send(frames.simple(kind, **fields))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, kind: Kind, **fields: Any) -> Any:
        self.say(kind, **fields)
        return self.read()

    def connect(self, **fields: Any) -> Any:
        return self.ask(Kind.CONNECT, client_version="test", protocol_version=21, **fields)

    def read(self) -> Any:
        """Return the next command without its envelope; drop the payload."""
        command = BaseCommand.FromString(self._command())
        return command.ListFields()[1][1]

    def _command(self) -> bytes:
        total, size = struct.unpack(">II", self._exactly(8))
        return self._exactly(total - 4)[:size]

    def size(self) -> int:
        """Return the size that the next frame claims."""
        return int(struct.unpack(">I", self._exactly(4))[0])

    def is_silent(self) -> bool:
        """Return True if nothing arrives for `SILENCE`."""
        self._socket.settimeout(SILENCE)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE)
        return False

    def is_closed(self) -> bool:
        """Return True if the other side closes without sending more."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            chunk = self._socket.recv(size - len(found))
            assert chunk, "the connection closed within a frame"
            found += chunk
        return found


def address_of(sandbox: Sandbox, broker: int) -> str:
    """Return `host:port` of a broker."""
    return sandbox.service_url.removeprefix("pulsar://").split(",")[broker]
