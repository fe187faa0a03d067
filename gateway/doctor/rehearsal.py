"""TLS handshakes in memory, between the server side of a listener and a client, both in this
process. No port is needed."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from gateway.doctor.insecure import Agreed, Trouble, classify
from gateway.doctor.secured import agreed_of
from gateway.tls.stream import PIECE, NamedObject, Shake, Shared, TlsStream

_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL: dates have a finding of their own."""

_STEPS = 20
"""Most steps of a handshake; OpenSSL takes four."""

Serve = Callable[[socket.socket], TlsStream]
"""Returns the server's stream over a socket."""


def rehearse(serve: Serve, client: ssl.SSLContext, host: str) -> Agreed:
    """Do a handshake for a host name, and return what both sides agreed on. `serve`: makes the
    server's side. `client`: the context of the client's side. Raises `OSError` if the handshake
    fails."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        server, stream = serve(near), TlsStream(far, client, Shared(PIECE), host)
        for _ in range(_STEPS):
            if stream.shake() is Shake.DONE:
                return agreed_of(stream)
            server.shake()
    raise OSError("the handshake does not end")


def is_trusted_here(context: ssl.SSLContext) -> bool:
    """Return whether this machine trusts the authority that signed the certificate in the context
    of a server."""
    context.sslobject_class = NamedObject
    client = trusting()
    client.load_default_certs()
    shared = Shared(PIECE)
    try:
        rehearse(lambda sock: TlsStream(sock, lambda _: context, shared, None), client, "localhost")
    except OSError as error:
        return classify(error).trouble is not Trouble.AUTHORITY
    return True


def trusting(authority: str | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts one authority (PEM), self-signed or not; None: no
    authority. The client checks neither the host nor the dates of certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = NamedObject
    context.check_hostname = False
    context.verify_flags = ssl.VerifyFlags(
        context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    )
    if authority is not None:
        context.load_verify_locations(cadata=authority)
    return context
