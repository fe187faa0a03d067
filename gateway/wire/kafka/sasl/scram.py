"""SCRAM: client and server prove to each other that they know a password, without showing it (RFC
5802, RFC 7677; KIP-84).

Channel binding is not supported, as Kafka has none. Names and passwords are used as they are
written, without SASLprep, as Kafka's brokers and clients use them. A library that applies SASLprep,
such as `scramp`, would compute other keys than Kafka for some passwords. Such a library would also
compute up to ten million iterations if a broker asked for them.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.contract import Principal
from gateway.wire.kafka.sasl import names
from gateway.wire.kafka.sasl.exchange import (
    LARGEST_TOKEN,
    MALFORMED,
    Accepted,
    Exchange,
    Verifier,
    challenged,
)
from gateway.wire.scram import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_HASHES, ScramKeys

NONCE = 18
"""Random bytes of the gateway's nonce: as many as cannot be guessed, in 24 characters."""

LONGEST_SALT = 1024
"""The most bytes of a salt. Brokers have some 20."""

DELEGATED = "tokenauth"
"""The extension by which a client says that its name is the id of a delegation token (KIP-48),
which the gateway does not know."""

_NONCE = r"[\x21-\x2b\x2d-\x7e]++"
_REST = r"(?>(?:,(?!p=)[A-Za-z]+=[^,\0]+)*)"
_BASE64 = r"[A-Za-z0-9+/]++={0,2}"

_CLIENT_FIRST = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<behalf>{names.NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{names.NAME}),r=(?P<nonce>{_NONCE})(?P<rest>{_REST}))"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<unproven>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_REST}),p=(?P<proof>{_BASE64})"
)
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,9}}){_REST}"
)
_SERVER_FINAL = re.compile(rf"v=(?P<signature>{_BASE64}){_REST}")


class ClientFirst(NamedTuple):
    """The first message of a client. `header`, `bare`: the two parts of the message; the signature
    covers only `bare`."""

    header: bytes
    bare: bytes
    user: str
    nonce: str


class ClientFinal(NamedTuple):
    """The second message of a client. `unproven`: the message without its proof, which is the part
    that is signed. `binding`: the header of the first message, repeated."""

    unproven: bytes
    binding: bytes
    nonce: str
    proof: bytes

    def __repr__(self) -> str:
        return f"ClientFinal(nonce={self.nonce!r})"


class ServerFirst(NamedTuple):
    """The challenge of the server: its nonce, the salt of the user's password, and the number of
    iterations."""

    nonce: str
    salt: bytes
    iterations: int


# -- the side that verifies --------------------------------------------------------------------


def exchange(mechanism: str, token: bytes, verifier: Verifier, nonce: str) -> Exchange:
    """Authenticate a client by SCRAM; see `exchange.Exchange`. `token`: the client's first message.
    `verifier`: has the users' secrets. `nonce`: the gateway's nonce, random characters without a
    comma."""
    first = read_first(token)
    if first is None:
        return MALFORMED
    secret = verifier.services.scram(first.user, mechanism)
    challenge = written_challenge(ServerFirst(first.nonce + nonce, secret.salt, secret.iterations))
    final = read_final((yield from challenged(challenge)))
    if (
        final is None
        or final.nonce != first.nonce + nonce
        or final.binding != first.header
        or len(final.proof) != len(secret.stored_key)
    ):
        return MALFORMED
    hash = SCRAM_HASHES[mechanism]
    signed = b",".join((first.bare, challenge, final.unproven))
    key = _xor(final.proof, hmac.digest(secret.stored_key, signed, hash))
    right = hmac.compare_digest(hashlib.new(hash, key).digest(), secret.stored_key)
    outcome = verifier.services.scram_ended(secret, right=right)
    if not isinstance(outcome, Principal):
        return outcome
    return Accepted(outcome, b"v=" + b64encode(hmac.digest(secret.server_key, signed, hash)))


def read_first(token: bytes) -> ClientFirst | None:
    """Return the first message of a client; None if the message is malformed, needs an unsupported
    extension, or asks to act for another user."""
    match = _matched(_CLIENT_FIRST, token)
    if match is None or match["behalf"] not in (None, match["name"]):
        return None
    keys = (extension.partition("=")[0] for extension in match["rest"].split(","))
    if any(key in (DELEGATED, "m") for key in keys):  # `m`: an extension that must be known
        return None
    user = names.read(match["name"])
    return ClientFirst(match["header"].encode(), match["bare"].encode(), user, match["nonce"])


def read_final(token: bytes) -> ClientFinal | None:
    """Return the second message of a client; None if it is malformed."""
    match = _matched(_CLIENT_FINAL, token)
    binding = proof = None
    if match is not None:
        binding, proof = _decoded(match["binding"]), _decoded(match["proof"])
    if match is None or binding is None or proof is None:
        return None
    return ClientFinal(match["unproven"].encode(), binding, match["nonce"], proof)


def written_challenge(first: ServerFirst) -> bytes:
    """Return the bytes of a server's challenge."""
    return b"r=%s,s=%s,i=%d" % (first.nonce.encode(), b64encode(first.salt), first.iterations)


# -- the side that is verified -----------------------------------------------------------------


def written_first(user: str, nonce: str) -> ClientFirst:
    """Return the first message of a client with this name and nonce."""
    return ClientFirst(b"n,,", f"n={names.written(user)},r={nonce}".encode(), user, nonce)


def read_challenge(challenge: bytes, nonce: str) -> ServerFirst:
    """Return the content of a broker's challenge. `nonce`: the nonce that the gateway has sent.
    Raises `PeerError` if the challenge is malformed, is for another nonce, or asks for too few or
    too many iterations."""
    match = _matched(_SERVER_FIRST, challenge)
    salt = None if match is None else _decoded(match["salt"])
    if match is None or salt is None or len(salt) > LONGEST_SALT:
        raise PeerError("a challenge of SCRAM that is malformed")
    if not match["nonce"].startswith(nonce) or match["nonce"] == nonce:
        raise PeerError("a challenge of SCRAM with the nonce of another one")
    iterations = int(match["iterations"])
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise PeerError(f"a challenge of SCRAM that wants {iterations} iterations")
    return ServerFirst(match["nonce"], salt, iterations)


def proof(
    mechanism: str, first: ClientFirst, challenge: bytes, nonce: str, keys: ScramKeys
) -> tuple[bytes, bytes]:
    """Return the second message of a client, and the signature that a broker must respond with to
    prove that it knows the user's keys. `first`: the client's first message. `nonce`: the nonce in
    the challenge."""
    hash = SCRAM_HASHES[mechanism]
    unproven = b"c=" + b64encode(first.header) + b",r=" + nonce.encode()
    signed = b",".join((first.bare, challenge, unproven))
    shown = _xor(keys.client, hmac.digest(keys.stored, signed, hash))
    return unproven + b",p=" + b64encode(shown), hmac.digest(keys.server, signed, hash)


def check_signature(response: bytes, expected: bytes) -> None:
    """Raise `PeerError` if the broker's last message does not have the expected signature, which
    only a broker that has the user's keys can make."""
    match = _matched(_SERVER_FINAL, response)
    signature = None if match is None else _decoded(match["signature"])
    if signature is None or not hmac.compare_digest(signature, expected):
        raise PeerError("a broker that does not know what it must know of our password")


# -- parts of messages -------------------------------------------------------------------------


def _matched(pattern: re.Pattern[str], token: bytes) -> re.Match[str] | None:
    if len(token) > LARGEST_TOKEN:
        return None
    try:
        return pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        return None


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        return None


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
