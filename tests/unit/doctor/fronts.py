"""TLS by Python's `ssl` in front of peers that speak without, with alerts as real servers send."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread

from gateway.tls.files import KeyPair
from gateway.wire.address import Address
from tests.unit.doctor.fakes import HOST, PATIENCE


def serving(
    pair: KeyPair,
    *,
    clients_of: str | None = None,
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> ssl.SSLContext:
    """Return the context of a server. `clients_of`: the authority (PEM) of the certificates that
    clients must show; None: clients show none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.maximum_version = newest
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients_of)
    return context


@contextmanager
def front(context: ssl.SSLContext, behind: Address | None = None) -> Iterator[Address]:
    """Yield an address with TLS, in threads. `behind`: where the bytes go; None: nowhere."""
    with socket.create_server((HOST, 0)) as server:
        thread = Thread(target=_serve, args=[server, context, behind], daemon=True)
        thread.start()
        try:
            yield Address(HOST, server.getsockname()[1], tls=True)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


def _serve(server: socket.socket, context: ssl.SSLContext, behind: Address | None) -> None:
    with suppress(OSError), ExitStack() as threads:
        while True:
            sock, _ = server.accept()
            thread = Thread(target=_relay, args=[sock, context, behind], daemon=True)
            thread.start()
            threads.callback(thread.join, PATIENCE)


def _relay(sock: socket.socket, context: ssl.SSLContext, behind: Address | None) -> None:
    sock.settimeout(PATIENCE)
    with suppress(OSError), sock, context.wrap_socket(sock, server_side=True) as outer:
        if behind is None:
            outer.recv(1)
            return
        with socket.create_connection(behind.pair, PATIENCE) as inner:
            while True:
                for source in select.select([outer, inner], [], [], PATIENCE)[0]:
                    data = source.recv(65_536)
                    if not data:
                        return
                    (inner if source is outer else outer).sendall(data)
