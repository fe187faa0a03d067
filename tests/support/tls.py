"""Connected TLS streams, and certificates in files."""

from __future__ import annotations

import socket
import ssl
import tempfile
from functools import cache
from pathlib import Path

from gateway.tls.stream import NamedObject, Shake, Shared, TlsStream
from tests.support.certificates import self_signed

NAME = "gateway.example"

SHARED = Shared()


class SocketLike(TlsStream):
    """A stream with the methods of sockets that tests use, too."""

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._sock.setsockopt(level, option, value)


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server, with a certificate of its own, and of a client that trusts
    it."""
    certified = self_signed(NAME)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.num_tickets = 0  # a peer that closes before it has read them resets the connection
    with tempfile.TemporaryDirectory() as folder:
        server.load_cert_chain(*certified.written(Path(folder)))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=certified.certificate.decode())
    server.sslobject_class = client.sslobject_class = NamedObject
    return server, client


def tls_sockets() -> tuple[SocketLike, SocketLike]:
    """Return two ends after their handshake: a server and a client."""
    near, far = socket.socketpair()
    for sock in (near, far):
        sock.setblocking(False)
    server_context, client_context = contexts()
    server = SocketLike(near, lambda _: server_context, SHARED, None)
    client = SocketLike(far, client_context, SHARED, NAME)
    shake(client, server)
    return server, client


def shake(*streams: TlsStream) -> None:
    """Take the steps of the handshake of both sides in turn."""
    states: set[Shake] = set()
    while states != {Shake.DONE}:
        states = {stream.shake() for stream in streams}
