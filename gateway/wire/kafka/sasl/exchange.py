"""What happens between a client and the gateway that verifies it.

An *exchange* is a generator that begins with the client's first token. It yields a `Challenge`, and
is sent the token that the client answers with; or it yields a step of a conversation, such as a
`Settle`, and is sent the result. It ends with whom the client has proven to be, or with a denial.

What a denial says is for logs alone. Every client gets the same response, so that nobody can try
out who is known here.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from gateway.wire.contract import (
    Credential,
    Denial,
    Principal,
    Refusal,
    Step,
    StepResult,
    settled,
)
from gateway.wire.services import Services

LARGEST_TOKEN = 32 * 1024
"""Bytes. The largest are JSON Web Tokens, of which the gateway takes 16 KiB, and extensions behind
one; Kafka's own brokers take 512 KiB."""

MALFORMED = Denial(Refusal.UNAUTHENTICATED, "a SASL token that the mechanism does not have")


@dataclass(frozen=True, slots=True)
class Challenge:
    """Send this token to the client, and go on with the one that it answers with."""

    data: bytes

    def __repr__(self) -> str:
        return f"Challenge(<{len(self.data)} bytes>)"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The client is known. `data`: the token that tells it so. `credential`: what it has shown, if
    a broker could be shown it too. `extensions`: what else it said of itself (KIP-342), which
    nothing proves."""

    principal: Principal
    data: bytes = b""
    credential: Credential | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


Exchange = Generator[Challenge | Step, StepResult, Accepted | Denial]

Verifying = Generator[Challenge | Step, StepResult, Principal | Denial]


@dataclass(frozen=True, slots=True)
class Verifier:
    """Verifies one client. `certificate`: that of its TLS, in DER; None without one."""

    services: Services
    certificate: bytes | None = None

    def verify(self, credential: Credential) -> Verifying:
        """Return whose credential it is."""
        return (yield from settled(self.services.authenticate(credential, self.certificate)))


def challenged(data: bytes) -> Generator[Challenge | Step, StepResult, bytes]:
    """Return what a client answers to a challenge."""
    token = yield Challenge(data)
    assert isinstance(token, bytes)
    return token
