"""A client of TLS that makes its own records, as the libraries of Python cannot.

OpenSSL does the handshake, and reads what the server sends. The records that the forger sends
are encrypted here, with the keys that OpenSSL has logged.
"""

from __future__ import annotations

import hmac
import socket
import ssl
from collections.abc import Callable
from hashlib import sha256, sha384
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from gateway.tls.stream import Shake, TlsStream

ALERT, HANDSHAKE, DATA = 21, 22, 23
"""Types of the content of records (RFC 8446 section 5.1)."""

KEY_UPDATE = 24
"""The type of a handshake message (RFC 8446 section 4)."""

LARGEST = 16 * 1024
"""Bytes of plaintext in the largest record."""


def message(kind: int, body: bytes = b"") -> bytes:
    """Return a handshake message (RFC 8446 section 4)."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


class Forger:
    """A client after its handshake with `server`. `sock`: the other end of the server's socket.
    `folder`: for the log of keys. `version`: 1.2 or 1.3."""

    def __init__(
        self,
        server: TlsStream,
        sock: socket.socket,
        trusted: bytes,
        name: str,
        folder: Path,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=trusted.decode())
        context.minimum_version = context.maximum_version = version
        context.keylog_filename = str(folder / "keys")
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self.sock = sock
        self.hello = b""
        """The first message of the handshake."""
        self._server_hello = b""
        self._shake(server)
        logged = dict[str, list[bytes]]()
        for line in (folder / "keys").read_text().splitlines():
            kind, *values = line.split()
            if kind != "#":
                logged[kind] = [bytes.fromhex(value) for value in values]
        if version is ssl.TLSVersion.TLSv1_3:
            self._make: Callable[[int, bytes, int], bytes] = self._sealed
            self._take(logged["CLIENT_TRAFFIC_SECRET_0"][1])
        else:
            self._make = self._sealed_1_2
            self._take_1_2(*logged["CLIENT_RANDOM"])

    def _shake(self, server: TlsStream) -> None:
        done = False
        while not done:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            said = self._outgoing.read()
            self.hello = self.hello or said[5:]
            self.sock.sendall(said)
            done = server.shake() is Shake.DONE and done
            self.receive()

    # -- keys --------------------------------------------------------------------------------

    @property
    def _is_384(self) -> bool:
        cipher = self._tls.cipher()
        assert cipher is not None
        return cipher[0].endswith("SHA384")

    @property
    def _key_size(self) -> int:
        return 32 if self._is_384 else 16

    def _expanded(self, label: str, size: int) -> bytes:
        """Return HKDF-Expand-Label without context (RFC 8446 section 7.1)."""
        name = b"tls13 " + label.encode()
        info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
        algorithm = SHA384() if self._is_384 else SHA256()
        return HKDFExpand(algorithm, size, info).derive(self._secret)

    def _take(self, secret: bytes) -> None:
        """Use the keys of a secret (RFC 8446 section 7.3)."""
        self._secret = secret
        self._cipher = AESGCM(self._expanded("key", self._key_size))
        self._iv = self._expanded("iv", 12)
        self._number = 0

    def _take_1_2(self, client_random: bytes, secret: bytes) -> None:
        """Use the keys of a master secret (RFC 5246 sections 5 and 6.3)."""
        digest: Any = sha384 if self._is_384 else sha256
        server_random = self._server_hello[11:43]
        seed = made = b"key expansion" + server_random + client_random
        block = b""
        while len(block) < 2 * self._key_size + 8:
            made = hmac.digest(secret, made, digest)
            block += hmac.digest(secret, made + seed, digest)
        self._cipher = AESGCM(block[: self._key_size])
        self._iv = block[2 * self._key_size :][:4]
        self._number = 1  # the end of the handshake was the first

    # -- records -----------------------------------------------------------------------------

    def record(self, content: bytes, kind: int = DATA, padding: int = 0) -> bytes:
        """Return the next record. `padding`: bytes of zeros, in TLS 1.3."""
        return self._make(kind, content, padding)

    def _sealed(self, kind: int, content: bytes, padding: int) -> bytes:
        inner = content + bytes([kind]) + bytes(padding)
        head = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        nonce = int.from_bytes(self._iv, "big") ^ self._number
        self._number += 1
        return head + self._cipher.encrypt(nonce.to_bytes(12, "big"), inner, head)

    def _sealed_1_2(self, kind: int, content: bytes, _padding: int) -> bytes:
        number = self._number.to_bytes(8, "big")
        self._number += 1
        head = bytes([kind]) + b"\x03\x03"
        bound = number + head + len(content).to_bytes(2, "big")
        sealed = number + self._cipher.encrypt(self._iv + number, content, bound)
        return head + len(sealed).to_bytes(2, "big") + sealed

    def key_update(self, *, requested: bool = False) -> bytes:
        """Return a record that announces new keys, and use them from then on (RFC 8446 section
        7.2). `requested`: the server shall take new keys too."""
        record = self.record(message(KEY_UPDATE, bytes([requested])), HANDSHAKE)
        size = 48 if self._is_384 else 32
        self._take(self._expanded("traffic upd", size))
        return record

    # -- the server's side -------------------------------------------------------------------

    def receive(self) -> int:
        """Take the ciphertext that the socket has; return its size."""
        size = 0
        while True:
            try:
                said = self.sock.recv(1 << 16)
            except BlockingIOError:
                return size
            if not said:
                return size
            self._server_hello = self._server_hello or said
            self._incoming.write(said)
            size += len(said)

    def hear(self) -> bytes:
        """Return the plaintext that has arrived; raise `ssl.SSLError` at a fatal alert."""
        self.receive()
        heard = b""
        while True:
            try:
                more = self._tls.read()
            except ssl.SSLWantReadError:
                return heard
            if not more:
                return heard
            heard += more
