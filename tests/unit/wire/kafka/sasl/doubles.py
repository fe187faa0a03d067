"""Services that know some users, and a client that answers challenges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gateway.identity.scram import Phantoms, line, read_users
from gateway.wire.contract import Credential, Denial, Principal, Refusal, Settle
from gateway.wire.kafka.sasl.exchange import Accepted, Challenge, Exchange, Verifier
from gateway.wire.kafka.sasl.mechanisms import begin
from gateway.wire.scram import ScramSecret
from tests.playbooks.services import FakeServices

WRONG = Denial(Refusal.UNAUTHENTICATED, "wrong")
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
NONCE = "3rfcNHYJY1ZVvWVs7j"
"""The gateway's."""


class SaslServices(FakeServices):
    """Knows alice, whose password is `secret`, and `alice's token`."""

    def __init__(self, *, settles: bool = False, methods: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.settles = settles
        self.known = methods
        self.shown: list[Credential] = []
        self.ended: list[tuple[str, bool]] = []
        lines = [
            line("alice", "secret", it, 4096, b"0123456789abcdef") for it in (SHA_256, SHA_512)
        ]
        self.users = dict(read_users("\n".join(lines).encode(), "The file"))

    @property
    def methods(self) -> tuple[str, ...]:
        return self.known

    def authenticate(
        self, credential: Credential, host: str, certificate: bytes | None = None
    ) -> Principal | Denial | Settle:
        self.shown.append(credential)
        return super().authenticate(credential, host, certificate)

    def _principal(self, credential: Credential) -> Principal | Denial:
        if credential == Credential("basic", b"alice:secret"):
            return Principal("alice", verified=True)
        if credential == Credential("token", b"alice's token"):
            return Principal("alice", verified=True, expires_at=1000.0)
        return WRONG

    def scram(self, user: str, mechanism: str) -> ScramSecret:
        made_up = Phantoms(self.users, b"key").secret(user, mechanism)
        return self.users.get((user, mechanism), made_up)

    def scram_ended(self, secret: ScramSecret, *, right: bool) -> Principal | Denial:
        self.ended.append((secret.user, right))
        return Principal(secret.user, verified=True) if right else WRONG


class Played(NamedTuple):
    """How an exchange went. `challenges`: what the client was sent."""

    outcome: Accepted | Denial
    challenges: list[bytes]


def play(exchange: Exchange, responses: Iterator[bytes | Callable[[bytes], bytes]]) -> Played:
    """Play a client that answers each challenge, and wait for what has to be waited for."""
    challenges: list[bytes] = []
    result: bytes | Principal | Denial | None = None
    while True:
        try:
            move = exchange.send(result)
        except StopIteration as end:
            return Played(end.value, challenges)
        if isinstance(move, Challenge):
            challenges.append(move.data)
            response = next(responses)
            result = response if isinstance(response, bytes) else response(move.data)
        else:
            assert isinstance(move, Settle)
            result = _now(move)


def _now(settle: Settle) -> Principal | Denial | None:
    """Return the response of a `Settle` that waits for nothing."""
    try:
        settle.response().__await__().send(None)
    except StopIteration as end:
        found: Principal | Denial | None = end.value
        return found
    raise AssertionError("it waits")


def verified(
    mechanism: str,
    token: bytes,
    *responses: bytes | Callable[[bytes], bytes],
    services: SaslServices | None = None,
    nonce: str = NONCE,
) -> Played:
    """Return how a client fares that sends these tokens."""
    verifier = Verifier(services or SaslServices(), "192.0.2.1", b"certificate")
    return play(begin(mechanism, token, verifier, nonce), iter(responses))
