"""A TLS stream as the data plane expects one (`plane.stream.RecordStream`), and pairs of them.

It uses the interpreter's `ssl` in memory, so that a test sees each of its states.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.plane.stream import IN, OUT, is_open

NAME = "gateway.example"

RAW = 256 * 1024
"""Bytes of ciphertext per read."""


class TlsStream:
    """One end of a connection; see `RecordStream`. `server_name`: the client's SNI."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if is_server else NAME
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, name)
        self._taken = 0  # bytes of the data offered again that are encrypted already
        self._kept = b""  # ciphertext that the socket did not take
        self.receives_on = IN
        self.sends_on = OUT
        self.server_name = name

    # -- the handshake -----------------------------------------------------------------------

    def shake(self) -> bool:
        """Take a step of the handshake; return True once it is done."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._fill()
            return False
        self._flush()
        return True

    @property
    def certificate(self) -> bytes | None:
        """See `RecordStream`."""
        return self._tls.getpeercert(binary_form=True)

    # -- as a socket -------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._sock.fileno()

    def getpeername(self) -> object:
        return self._sock.getpeername()

    def setblocking(self, flag: bool) -> None:
        self._sock.setblocking(flag)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._sock.setsockopt(level, option, value)

    def recv(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(buffer, size)])

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0) -> int:
        size = size or len(buffer)
        view, count = memoryview(buffer), 0
        while count < size:
            try:
                got = int(self._tls.read(size - count, view[count:size]))
            except ssl.SSLWantReadError:
                self._flush()
                try:
                    if self._fill():
                        continue
                except BlockingIOError:
                    if not count:
                        raise
                return count
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return count
            if not got:
                return count
            count += got
        return count

    @property
    def buffered(self) -> bool:
        """See `RecordStream`."""
        return bool(self._tls.pending() or self._incoming.pending)

    def send(self, data: bytes | memoryview) -> int:
        if not self._taken:
            self._taken = self._tls.write(data)
        if not self._flush():
            raise BlockingIOError
        taken, self._taken = self._taken, 0
        return taken

    def shutdown(self, how: int) -> None:
        with contextlib.suppress(ssl.SSLError):  # the peer may close without a close_notify
            self._tls.unwrap()
        self._flush()
        self._sock.shutdown(how)

    def close(self) -> None:
        self._sock.close()

    def is_open(self) -> bool:
        """See `RecordStream`."""
        return is_open(self._sock)

    # -- records -----------------------------------------------------------------------------

    def _fill(self) -> bool:
        """Receive ciphertext; return True if there may be more. Raises `BlockingIOError`."""
        data = self._sock.recv(RAW)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return True

    def _flush(self) -> bool:
        """Send ciphertext; return True if none is left."""
        self._kept += self._outgoing.read()
        while self._kept:
            try:
                self._kept = self._kept[self._sock.send(self._kept) :]
            except BlockingIOError:
                return False
        return True


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server, with a certificate of its own, and of a client that trusts
    it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    text = certificate.public_bytes(pem) + key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.num_tickets = (
        0  # a peer that closes before it has read session tickets resets the connection
    )
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(text)
        server.load_cert_chain(file.name)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=certificate.public_bytes(pem).decode())
    return server, client


def tls_sockets() -> tuple[TlsStream, TlsStream]:
    """Return two ends after their handshake: a server and a client."""
    near, far = socket.socketpair()
    for sock in (near, far):
        sock.setblocking(False)
    server_context, client_context = contexts()
    server = TlsStream(near, server_context, is_server=True)
    client = TlsStream(far, client_context, is_server=False)
    done = False
    while not done:
        done = all([_step(client), _step(server)])
    return server, client


def _step(stream: TlsStream) -> bool:
    try:
        return stream.shake()
    except BlockingIOError:
        return False
