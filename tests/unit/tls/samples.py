"""Files of TLS in a folder, and the sides that use them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.tls.files import KeyPair
from gateway.tls.sides import GROUP, ClientSettings, ClientSide, ServerSettings, ServerSide
from gateway.tls.stream import NamedObject, Shared, TlsStream
from tests.support.certificates import CertificateAuthority, Wanted
from tests.support.tls import NAME, SHARED, shake


class House:
    """An authority, and a folder with the files of certificates that it has signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = CertificateAuthority()
        self.authorities: tuple[Path, ...] = (
            self.write("authority.crt", self.authority.certificate),
        )

    def write(self, name: str, content: bytes) -> Path:
        """Write a file, and return its path."""
        path = self.folder / name
        path.write_bytes(content)
        return path

    def pair(self, *names: str, file: str = "tls", **wanted: Any) -> KeyPair:
        """Write the files of a new certificate for these names."""
        issued = self.authority.issue(Wanted(names or (NAME,), **wanted))
        return issued.written(self.folder, file)

    def renew(self, pair: KeyPair, *names: str, **wanted: Any) -> None:
        """Put the files of a new certificate in the place of others, so that their inodes change:
        the time of a change may not, within some milliseconds."""
        for new, old in zip(self.pair(*names, file="new", **wanted), pair, strict=True):
            new.replace(old)

    def server(self, *pairs: KeyPair, shared: Shared = SHARED, **settings: Any) -> ServerSide:
        """Return a server with these certificates, or one for `NAME`."""
        return ServerSide(ServerSettings(pairs or (self.pair(),), **settings), shared)

    def client(self, shared: Shared = SHARED, **settings: Any) -> ClientSide:
        """Return a client that trusts the authority, unless `authorities` says otherwise."""
        trusted = {"authorities": self.authorities}
        return ClientSide(ClientSettings(**{**trusted, **settings}), shared)


def trusting(house: House, **versions: ssl.TLSVersion) -> ssl.SSLContext:
    """Return the context of a client that is not the gateway's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = NamedObject
    context.load_verify_locations(house.authorities[0])
    context.set_ecdh_curve(GROUP)  # otherwise it begins by another group, and says hello twice
    for name, version in versions.items():
        setattr(context, name, version)
    return context


@contextmanager
def linked() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Enter with the two ends of a connection, which do not block."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


@contextmanager
def met(
    server: ServerSide, client: ClientSide | ssl.SSLContext, host: str = NAME
) -> Iterator[tuple[TlsStream, TlsStream]]:
    """Enter with both streams after their handshake. `host`: the server that the client asks for,
    unless it is an address."""
    with linked() as (near, far):
        streams = server.stream(near), stream_of(client, far, host)
        shake(streams[1], streams[0])
        yield streams


def stream_of(
    client: ClientSide | ssl.SSLContext, sock: socket.socket, host: str = NAME
) -> TlsStream:
    """Return the stream of a client before its handshake."""
    if isinstance(client, ssl.SSLContext):
        return TlsStream(sock, client, SHARED, host)
    return client.stream(sock, host)
