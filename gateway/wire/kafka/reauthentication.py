"""Clients that show a credential again on an open connection, before the last one ends (KIP-368).

The gateway answers, where it verifies clients; their brokers learn nothing of it. A client stays
who it is: one that shows another name, or nothing valid, is refused, and its connection ends.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gateway.wire.contract import Credential, Denial, Principal, Refusal, Settle, Step, StepResult
from gateway.wire.kafka.authenticating import mechanisms_of
from gateway.wire.kafka.context import Client, Listener
from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.sasl import handshake, mechanisms
from gateway.wire.kafka.sasl.exchange import Accepted, Challenge, Exchange, Verifier
from gateway.wire.kafka.sasl.handshake import SASL_HANDSHAKE

_OTHER = Denial(Refusal.UNAUTHENTICATED, "a client that becomes another one")
_MISPLACED = Denial(Refusal.UNAUTHENTICATED, "SASL out of its order")
_LATE = Denial(Refusal.TIMEOUT, "it took too long to check the credential")


class Response(NamedTuple):
    """A response to the client. `denial`: it is refused, and its connection has to end.
    `principal`: it has shown a newer credential, this one if its broker could be shown it too."""

    data: bytes
    denial: Denial | None = None
    principal: Principal | None = None
    credential: Credential | None = None


@dataclass(slots=True)
class Settling:
    """The job that waits for a response about a client; see `contract.Job`. `until`: when it comes
    too late, or has come. `result`: the response. `is_asked`: the job was started."""

    step: Settle
    until: float
    result: StepResult = field(default=None)
    is_asked: bool = False

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = _LATE
    late: ClassVar[Denial] = _LATE

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `contract.Job`."""
        self.result = yield self.step
        return b""


class Reauthentication:
    """What one connection shows again."""

    __slots__ = ("_client", "_exchange", "_listener", "_mechanism", "_settling")

    def __init__(self, listener: Listener, client: Client) -> None:
        self._listener = listener
        self._client = client
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._settling: Settling | None = None

    def decide(self, head: Head, frame: bytes, now: float) -> Response | Settling:
        """Return the response to SaslHandshake or SaslAuthenticate; or what must be waited for,
        after which the same request is decided again, and perhaps before. Raises `PeerError` if it
        is torn."""
        if head.key == SASL_HANDSHAKE:
            return self._chosen(head, frame)
        if self._settling is not None:
            return self._settled(head, self._settling, now)
        token = handshake.token_of(head, frame)
        if not self._mechanism:
            return Response(handshake.misplaced(head), _MISPLACED)
        if self._exchange is None:
            verifier = Verifier(self._listener.settings.services)
            self._exchange = mechanisms.begin(self._mechanism, token, verifier)
            return self._step(head, None, now)
        return self._step(head, token, now)

    def _chosen(self, head: Head, frame: bytes) -> Response:
        offered = mechanisms_of(self._listener)
        mechanism = handshake.mechanism_of(head, frame)
        if mechanism not in offered or head.version < 1:
            told = handshake.offer(head, offered, handshake.UNSUPPORTED_SASL_MECHANISM)
            return Response(told, _MISPLACED)
        self._mechanism, self._exchange = mechanism, None
        return Response(handshake.offer(head, offered))

    def _settled(self, head: Head, settling: Settling, now: float) -> Response | Settling:
        if now < settling.until:
            return settling
        self._settling = None
        if settling.result is None:
            return self._over(head, _LATE)
        return self._step(head, settling.result, now)

    def _step(self, head: Head, result: StepResult, now: float) -> Response | Settling:
        assert self._exchange is not None
        try:
            step = self._exchange.send(result)
        except StopIteration as stop:
            return self._over(head, stop.value)
        if isinstance(step, Challenge):
            return Response(handshake.response(head, step.data))
        assert isinstance(step, Settle)
        self._settling = Settling(step, now + Settling.patience)
        return self._settling

    def _over(self, head: Head, found: Accepted | Denial) -> Response:
        self._mechanism, self._exchange = "", None
        if isinstance(found, Denial):
            return Response(handshake.failed(head), found)
        if found.principal.name != self._client.principal.name:
            return Response(handshake.failed(head), _OTHER)
        left = self._listener.settings.services.left(found.principal)
        told = handshake.response(head, found.data, handshake.lifetime_ms(left))
        return Response(told, None, found.principal, found.credential)
