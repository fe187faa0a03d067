"""TLS of the checks: doing handshakes with peers, what the handshakes agree on, and why they
fail."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from socket import socket

import trio
from cryptography import x509

from gateway.doctor.certificates import Facts, facts_of
from gateway.doctor.insecure import OF_CERTIFICATE, Agreed, Insecure, Trouble, classify
from gateway.doctor.reach import TLS_SECONDS, Network, Unreached
from gateway.plane.stream import Stream
from gateway.tls.handshake import shake
from gateway.tls.stream import PIECE, NamedObject, Shared, TlsStream
from gateway.wire.address import Address


@dataclass(frozen=True, slots=True)
class Secure:
    """TLS for connections to a host. `wrap`: returns a TLS stream over a connected socket; its
    handshake is not done yet."""

    host: str
    wrap: Callable[[socket], TlsStream]


async def shaken(network: Network, sock: socket, secure: Secure) -> TlsStream | Insecure:
    """Do the TLS handshake over a socket. Return the stream. If the handshake fails, return why,
    and close the socket."""
    stream = secure.wrap(sock)
    try:
        with trio.move_on_after(network.timeout):
            await shake(stream)
            return stream
        failure = Insecure(Trouble.SILENT)
    except OSError as error:
        failure = classify(error)
    except BaseException:
        stream.close()
        raise
    stream.close()
    return failure


async def connect(
    network: Network, address: Address, secure: Secure | None
) -> Stream | Insecure | Unreached:
    """Connect to an address whose host is an IP literal, with TLS unless `secure` is None. Return
    the stream, or why there is none."""
    sock = await network.connect(address)
    if secure is None or isinstance(sock, Unreached):
        return sock
    return await shaken(network, sock, secure)


def agreed_of(stream: TlsStream) -> Agreed:
    """Return the TLS version, cipher and server certificate of a connection. `stream`: the client's
    stream after the handshake."""
    shown = None
    if stream.certificate is not None:
        with suppress(ValueError):  # OpenSSL reads some that `cryptography` does not
            shown = facts_of(x509.load_der_x509_certificate(stream.certificate))
    return Agreed(stream.version or "TLS", stream.cipher or "an unknown cipher", shown)


async def explain(network: Network, address: Address, host: str, failure: Insecure) -> Insecure:
    """Return the failed handshake `failure`. If the peer's certificate caused the failure, connect
    again, and add the certificate to the result."""
    if failure.trouble not in OF_CERTIFICATE:
        return failure
    return replace(failure, shown=await _shown(network, address, host))


async def _shown(network: Network, address: Address, host: str) -> Facts | None:
    """Return the certificate that a peer shows, trusted or not; None if it shows none."""
    stream = await connect(network, address, unverifying(host))
    if not isinstance(stream, TlsStream):
        return None
    try:
        return agreed_of(stream).shown
    finally:
        stream.close()


async def farewell(network: Network, address: Address, secure: Secure) -> Insecure | None:
    """Connect, and return the reason for which the peer ends the connection after the handshake;
    None if the peer gives no reason. In TLS 1.3 a server that requires a client certificate reports
    a missing certificate only after the handshake."""
    stream = await connect(network, address, secure)
    if not isinstance(stream, TlsStream):
        return None
    try:
        with trio.move_on_after(min(network.timeout, TLS_SECONDS)):
            while True:
                await trio.lowlevel.wait_readable(stream.fileno())
                with suppress(BlockingIOError):
                    if not stream.recv(1):
                        return None
    except OSError as error:
        failure = classify(error)
        return None if failure.trouble is Trouble.NONE else failure
    finally:
        stream.close()
    return None


def unverifying(host: str) -> Secure:
    """Return TLS that accepts any certificate. It is for connections on which nothing secret is
    sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = NamedObject
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def wrap(sock: socket) -> TlsStream:
        return TlsStream(sock, context, Shared(PIECE), host)

    return Secure(host, wrap)
