"""TLS of the checks: handshakes with peers, what they agree on, and why they fail."""

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
    """TLS for connections to a host. `wrap`: puts it over a connected socket, whose handshake comes
    first."""

    host: str
    wrap: Callable[[socket], TlsStream]


async def shaken(network: Network, sock: socket, secure: Secure) -> TlsStream | Insecure:
    """Do the handshake over a socket, which is closed if that fails."""
    stream = secure.wrap(sock)
    try:
        with trio.move_on_after(network.timeout):
            await shake(stream)
            return stream
        found = Insecure(Trouble.SILENT)
    except OSError as error:
        found = classify(error)
    except BaseException:
        stream.close()
        raise
    stream.close()
    return found


async def connect(
    network: Network, address: Address, secure: Secure | None
) -> Stream | Insecure | Unreached:
    """Connect to an IP literal, with TLS unless `secure` is None."""
    sock = await network.connect(address)
    if secure is None or isinstance(sock, Unreached):
        return sock
    return await shaken(network, sock, secure)


def agreed_of(stream: TlsStream) -> Agreed:
    """Return what both sides agreed on. `stream`: of a client, after its handshake."""
    shown = None
    if stream.certificate is not None:
        with suppress(ValueError):  # OpenSSL reads some that `cryptography` does not
            shown = facts_of(x509.load_der_x509_certificate(stream.certificate))
    return Agreed(stream.version or "TLS", stream.cipher or "an unknown cipher", shown)


async def explain(network: Network, address: Address, host: str, found: Insecure) -> Insecure:
    """Add the certificate that the peer shows, if that is the trouble."""
    if found.trouble not in OF_CERTIFICATE:
        return found
    return replace(found, shown=await _shown(network, address, host))


async def _shown(network: Network, address: Address, host: str) -> Facts | None:
    """Return the certificate of a peer, whoever it is; None if it shows none."""
    stream = await connect(network, address, unverifying(host))
    if not isinstance(stream, TlsStream):
        return None
    try:
        return agreed_of(stream).shown
    finally:
        stream.close()


async def farewell(network: Network, address: Address, secure: Secure) -> Insecure | None:
    """Return why a peer ends connections after the handshake, such as for want of a certificate,
    which TLS 1.3 says only then. None if it does not say."""
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
        found = classify(error)
        return None if found.trouble is Trouble.NONE else found
    finally:
        stream.close()
    return None


def unverifying(host: str) -> Secure:
    """Return what puts TLS over a socket and takes any certificate: nothing secret is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = NamedObject
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def wrap(sock: socket) -> TlsStream:
        return TlsStream(sock, context, Shared(PIECE), host)

    return Secure(host, wrap)
