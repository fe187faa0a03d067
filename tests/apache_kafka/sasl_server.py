"""Verifies real clients by the gateway's cores of SASL, and tells them that there is no topic.

Each client has a thread, which is enough to see that real clients take what the cores say.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import NamedTuple

from gateway.wire.contract import Credential, Denial, Principal
from gateway.wire.kafka.addresses import METADATA
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, Head, request, response
from gateway.wire.kafka.sasl.exchange import Accepted, Challenge, Verifier
from gateway.wire.kafka.sasl.handshake import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    UNSUPPORTED_SASL_MECHANISM,
    bare,
    failed,
    mechanism_of,
    offer,
    read_bare,
    token_of,
)
from gateway.wire.kafka.sasl.handshake import response as answered
from gateway.wire.kafka.sasl.mechanisms import begin, offered
from gateway.wire.kafka.schema import api
from tests.unit.wire.kafka.sasl.doubles import WRONG, SaslServices

HOST = "127.0.0.1"
TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2ln"


class Known(SaslServices):
    """Knows alice by her password and by one token."""

    def _principal(self, credential: Credential) -> Principal | Denial:
        if credential == Credential("token", TOKEN.encode()):
            return Principal("alice", verified=True)
        return super()._principal(credential) if credential.method == "basic" else WRONG


class Seen(NamedTuple):
    """A client whose authentication has ended. `version`: of its SaslHandshake."""

    mechanism: str
    version: int
    outcome: Accepted | Denial


class Server:
    """A context in which clients are verified. `methods`: by which. `newest`: the newest version of
    SaslHandshake that it offers; 0: tokens come bare. `begun`: mechanisms that were chosen.
    `ended`: clients whose authentication has."""

    def __init__(self, methods: tuple[str, ...], newest: int = 1) -> None:
        self._listening = socket.create_server((HOST, 0))
        self.port = self._listening.getsockname()[1]
        self.services = Known(methods=methods)
        self.newest = newest
        self.begun: list[str] = []
        self.ended: list[Seen] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            _Client(self, client).serve()


class _Client:
    def __init__(self, server: Server, client: socket.socket) -> None:
        self._server = server
        self._client = client

    def serve(self) -> None:
        if self._authenticate():
            while True:
                self._other(*self._request())

    def _authenticate(self) -> bool:
        """Return whether the client may go on."""
        mechanisms = offered(self._server.services.methods)
        while True:
            head, frame = self._request()
            if head.key == SASL_HANDSHAKE:
                break
            self._other(head, frame)
        mechanism = mechanism_of(head, frame)
        self._server.begun.append(mechanism)
        if mechanism not in mechanisms:
            self._client.sendall(offer(head, mechanisms, UNSUPPORTED_SASL_MECHANISM))
            return False
        self._client.sendall(offer(head, mechanisms))
        outcome = self._exchange(mechanism, head.version)
        self._server.ended.append(Seen(mechanism, head.version, outcome))
        return isinstance(outcome, Accepted)

    def _exchange(self, mechanism: str, version: int) -> Accepted | Denial:
        is_bare = not version
        head, token = self._token(is_bare)
        exchange = begin(mechanism, token, Verifier(self._server.services, HOST))
        said: bytes | None = None
        while True:
            try:
                move = exchange.send(said)
            except StopIteration as end:
                outcome: Accepted | Denial = end.value
                break
            assert isinstance(move, Challenge)
            self._say(head, move.data)
            head, said = self._token(is_bare)
        if isinstance(outcome, Accepted):
            self._say(head, outcome.data)
        elif head is not None:
            self._client.sendall(failed(head))
        return outcome

    def _token(self, is_bare: bool) -> tuple[Head | None, bytes]:
        if is_bare:
            return None, read_bare(self._frame())
        head, frame = self._request()
        if head.key != SASL_AUTHENTICATE:
            raise EOFError  # aiokafka takes a refusal by a challenge for the end
        return head, token_of(head, frame)

    def _say(self, head: Head | None, data: bytes) -> None:
        self._client.sendall(bare(data) if head is None else answered(head, data, 60_000))

    def _other(self, head: Head, _frame: bytes) -> None:
        """Answer what clients ask for beside SASL."""
        found = api(head.key)
        assert found is not None
        body = self._versions(head.version) if head.key == API_VERSIONS else self._metadata()
        self._client.sendall(response(found, head.version, head.correlation, body))

    def _versions(self, version: int) -> bytes:
        newest = self._server.newest
        known = [(METADATA, 1, 1), (SASL_HANDSHAKE, 0, newest), (API_VERSIONS, 0, 3)]
        known += [(SASL_AUTHENTICATE, 0, 2)] if newest else []
        if version >= 3:
            told = b"".join(struct.pack(">hhhx", *it) for it in known)
            return bytes(2) + bytes([len(known) + 1]) + told + bytes(5)
        told = b"".join(struct.pack(">hhh", *it) for it in known)
        return bytes(2) + struct.pack(">i", len(known)) + told + (bytes(4) if version else b"")

    def _metadata(self) -> bytes:
        """Return that there is one broker, this one, and no topic."""
        host = struct.pack(">h", len(HOST)) + HOST.encode()
        broker = struct.pack(">i", 1) + host + struct.pack(">ih", self._server.port, -1)
        return struct.pack(">i", 1) + broker + struct.pack(">ii", 1, 0)

    def _request(self) -> tuple[Head, bytes]:
        frame = self._frame()
        return request(frame), frame

    def _frame(self) -> bytes:
        size = self._received(SIZE.size)
        return size + self._received(SIZE.unpack(size)[0])

    def _received(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._client.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data
