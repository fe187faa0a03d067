"""The authentication of a client at the gateway.

An *exchange* is a generator that begins with the client's first token. When it yields a
`Challenge`, it is sent the client's next token. When it yields a step of a conversation, such as a
`Settle`, it is sent the step's result. It returns `Accepted` or a denial.

The text of a denial is written to logs alone. Every refused client is sent the same response, so
that nobody can find out which users exist.
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
"""The most bytes of a token. The largest are JSON Web Tokens, of which the gateway takes 16 KiB,
with extensions behind them; Kafka's own brokers take 512 KiB."""

MALFORMED = Denial(Refusal.UNAUTHENTICATED, "a SASL token that the mechanism does not have")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A step of an exchange: send the token `data` to the client, and receive the client's next
    token."""

    data: bytes

    def __repr__(self) -> str:
        return f"Challenge(<{len(self.data)} bytes>)"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The result for an authenticated client. `data`: the token that tells the client that it is
    accepted. `credential`: the client's own, if the gateway can forward it to a broker; else None.
    `extensions`: further values that the client sent about itself (KIP-342), which nothing proves.
    """

    principal: Principal
    data: bytes = b""
    credential: Credential | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


Exchange = Generator[Challenge | Step, StepResult, Accepted | Denial]

Verifying = Generator[Challenge | Step, StepResult, Principal | Denial]


@dataclass(frozen=True, slots=True)
class Verifier:
    """Verifies the credentials of one client. `host`: the client's address. `certificate`: its TLS
    certificate, in DER; None if it has none."""

    services: Services
    host: str
    certificate: bytes | None = None

    def verify(self, credential: Credential) -> Verifying:
        """Verify a credential; return the principal that it proves, or a denial."""
        response = self.services.authenticate(credential, self.host, self.certificate)
        return (yield from settled(response))


def challenged(data: bytes) -> Generator[Challenge | Step, StepResult, bytes]:
    """Send the client a challenge with this data; return the client's next token."""
    token = yield Challenge(data)
    assert isinstance(token, bytes)
    return token
