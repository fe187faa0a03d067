"""Makes TLS streams: the server side of a listener, and the client side of a cluster.

A side loads its files when it is made, and again when they change (`renewal`). Streams that are
open keep what they began with.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from gateway.system.files import Sign, sign
from gateway.tls.files import (
    Expiry,
    KeyPair,
    expiries_of,
    load_authorities,
    load_pair,
    load_revocations,
    names_of,
)
from gateway.tls.greeting import X25519, groups_shared
from gateway.tls.stream import NamedObject, Shared, TlsStream

GROUPS = "X25519:P-256:P-384"
"""The groups of the key exchange."""

GROUP, LIKED_GROUP = "prime256v1", "X25519"
"""The two groups that are set alone, where OpenSSL can be given one only: the group that all
clients know, and the one for which most send a key share first."""

TICKETS = 1
"""Session tickets that a client gets: enough to open its next connection without a certificate."""


Signs = frozenset[Sign]


def signs_of(files: Sequence[Path]) -> Signs:
    """Return the signs of files: values that are different after any of the files has changed (see
    `system.files`)."""
    return frozenset(map(sign, files))


class Side(Protocol):
    """The TLS of one listener or cluster. `files`: all files that it reads. `signs`: the signs of
    the files in force, taken before the files were read. `expiries`: when the content of each file
    expires."""

    @property
    def files(self) -> Sequence[Path]: ...

    @property
    def signs(self) -> Signs: ...

    @property
    def expiries(self) -> Sequence[Expiry]: ...

    def load(self) -> Callable[[], None]:
        """Read all files. Return a function that puts their content in force for new connections.

        Raises `ConfigurationError` if a file is wrong. This reads from the disk, so it may run in a
        thread; the returned function may not.
        """
        ...


class ClientCertificates(StrEnum):
    """Whether clients must show a certificate. `OPTIONAL`: clients without a certificate are
    admitted too."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


_VERIFICATION = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """TLS settings of a listener. `pairs`: the first is shown to clients that name no server, or
    one that no certificate is for. `minimum`: the oldest version of TLS. `authorities`: files of
    the authorities that sign clients' certificates. `revocations`: files of lists of revoked
    certificates. `application`: the protocol that clients are offered (RFC 7301); None: clients are
    not asked."""

    pairs: Sequence[KeyPair]
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    client_certificates: ClientCertificates = ClientCertificates.NONE
    authorities: Sequence[Path] = ()
    revocations: Sequence[Path] = ()
    application: str | None = None


class ServerSide:
    """Makes the TLS streams of a listener's clients. Raises `ConfigurationError` if a file is
    wrong."""

    def __init__(self, settings: ServerSettings, shared: Shared) -> None:
        self._settings = settings
        self._shared = shared
        pairs = [path for pair in settings.pairs for path in pair]
        self.files = (*pairs, *settings.authorities, *settings.revocations)
        self.load()()

    def load(self) -> Callable[[], None]:
        """See `Side`."""
        signs, choose = signs_of(self.files), _choice_of(self._settings)
        expiries = tuple(
            expiries_of(
                [pair.certificate for pair in self._settings.pairs],
                self._settings.authorities,
                self._settings.revocations,
            )
        )

        def adopt() -> None:
            self._context, self.signs, self.expiries = choose, signs, expiries

        return adopt

    def stream(self, sock: socket.socket) -> TlsStream:
        """Return a TLS stream over a connected, non-blocking socket, before its handshake."""
        return TlsStream(sock, self._context, self._shared, None)


def _choice_of(settings: ServerSettings) -> Callable[[bytes], ssl.SSLContext]:
    """Return the function that chooses a context for a client by its ClientHello.

    Those contexts have the first certificate, and choose another by the name that a client asks for
    (RFC 6066 section 3).
    """
    contexts = [_server_context(settings, pair) for pair in settings.pairs]
    first, by_name = contexts[0], dict[str, ssl.SSLContext]()
    for pair, context in zip(settings.pairs, contexts, strict=True):
        for name in names_of(pair.certificate):
            by_name.setdefault(name, context)

    def choose(tls: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        assert isinstance(tls, NamedObject)
        tls.asked_name = name
        if name is not None:
            candidates = (by_name.get(pattern) for pattern in _patterns(name.lower()))
            tls.context = next(
                (candidate for candidate in candidates if candidate is not None), first
            )

    first.sni_callback = choose
    if hasattr(first, "set_groups"):
        return lambda _: first
    liked = _server_context(settings, settings.pairs[0])
    try:
        liked.set_ecdh_curve(LIKED_GROUP)  # a connection keeps it when its context is another later
    except ssl.SSLError:  # Python 3.11.2, which Debian 12 has, cannot name this group
        return lambda _: first
    liked.sni_callback = choose
    return lambda greeting: liked if X25519 in groups_shared(greeting) else first


def _patterns(name: str) -> Iterator[str]:
    """Yield the names of certificates that are for a host (RFC 6125 section 6.4.3)."""
    yield name
    _, dot, domain = name.partition(".")
    if dot:
        yield f"*.{domain}"


def _server_context(settings: ServerSettings, pair: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure(context, settings.minimum)
    context.num_tickets = TICKETS
    if settings.application is not None:
        context.set_alpn_protocols([settings.application])
    _restrict_groups(context)
    load_pair(context, pair)
    context.verify_mode = _VERIFICATION[settings.client_certificates]
    for path in settings.authorities:
        load_authorities(context, path)
    for path in settings.revocations:
        load_revocations(context, path)
    return context


def _restrict_groups(context: ssl.SSLContext) -> None:
    """Allow only cheap groups in the key exchange.

    OpenSSL would take whatever group a client likes, among them ffdhe8192, with which a handshake
    costs 100 ms, not 1. Before Python 3.15 one group at most can be named. All clients know P-256
    (RFC 8446 section 9.1); those that begin with another one than X25519 need one more round trip.
    """
    if hasattr(context, "set_groups"):
        context.set_groups(GROUPS)
    else:
        context.set_ecdh_curve(GROUP)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """TLS settings of a cluster. `authorities`: files of the authorities that sign brokers'
    certificates; empty: the authorities that the machine trusts. `pair`: shown to brokers; None:
    nothing is shown. `verify_host`: a broker's certificate must be for the host that is dialled."""

    authorities: Sequence[Path] = ()
    pair: KeyPair | None = None
    verify_host: bool = True


class ClientSide:
    """Makes the TLS streams to the brokers of a cluster. Raises `ConfigurationError` if a file is
    wrong."""

    def __init__(self, settings: ClientSettings, shared: Shared) -> None:
        self._settings = settings
        self._shared = shared
        self.files = (*settings.authorities, *(settings.pair or ()))
        self.load()()

    def load(self) -> Callable[[], None]:
        """See `Side`."""
        settings = self._settings
        signs, context = signs_of(self.files), _client_context(settings)
        shown = [settings.pair.certificate] if settings.pair else []
        expiries = tuple(expiries_of(shown, settings.authorities, ()))

        def adopt() -> None:
            self._context, self.signs, self.expiries = context, signs, expiries

        return adopt

    def stream(self, sock: socket.socket, host: str) -> TlsStream:
        """Return a TLS stream over a connected, non-blocking socket to `host`, before its
        handshake. A dot at the end of the host is left out of the server name (RFC 6066 section
        3)."""
        return TlsStream(sock, self._context, self._shared, host.removesuffix("."))


def _client_context(settings: ClientSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _configure(context, ssl.TLSVersion.TLSv1_2)
    context.check_hostname = settings.verify_host
    for path in settings.authorities:
        load_authorities(context, path)
    if not settings.authorities:
        context.load_default_certs()
    if settings.pair is not None:
        load_pair(context, settings.pair)
    return context


def _configure(context: ssl.SSLContext, minimum: ssl.TLSVersion) -> None:
    context.sslobject_class = NamedObject
    context.minimum_version = minimum
    # A peer could have keys exchanged again and again, and reading would have to wait for sending.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
