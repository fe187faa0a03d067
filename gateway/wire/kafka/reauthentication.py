"""Reauthentication of clients on open connections, before their credential expires (KIP-368).

If the gateway verifies clients, it responds to their reauthentication itself, and forwards nothing
of it to brokers. A client must keep its name: if it shows a credential of another name, or no valid
credential, it is refused and its connection ends.
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
    """A response to the client. `denial`: why the client is refused, so that its connection must
    end. `principal`: the client's, if it has shown a newer credential. `credential`: the newer
    credential, if the gateway can forward it to a broker."""

    data: bytes
    denial: Denial | None = None
    principal: Principal | None = None
    credential: Credential | None = None


@dataclass(slots=True)
class Settling:
    """The job that verifies a client's credential; see `contract.Job`. `until`: the time after
    which the job's result comes too late; `-math.inf` once the job is over. `result`: the job's
    result. `is_asked`: the job was started."""

    step: Settle
    until: float
    result: StepResult = field(default=None)
    is_asked: bool = False

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = _LATE
    late: ClassVar[Denial] = _LATE

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """Verify the credential, and keep the outcome in `result`; see `contract.Job`."""
        self.result = yield self.step
        return b""


class Reauthentication:
    """The reauthentication of one connection's client: its SASL exchange with the gateway."""

    __slots__ = ("_client", "_exchange", "_listener", "_mechanism", "_settling")

    def __init__(self, listener: Listener, client: Client) -> None:
        self._listener = listener
        self._client = client
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._settling: Settling | None = None

    def decide(self, head: Head, frame: bytes, now: float) -> Response | Settling:
        """Return the response to a SaslHandshake or SaslAuthenticate request; or, if the response
        depends on a job that verifies the credential, return this job. Once the job is over, call
        this with the same request again; until then such calls return the same job. Raises
        `PeerError` if the request is truncated."""
        if head.key == SASL_HANDSHAKE:
            return self._chosen(head, frame)
        if self._settling is not None:
            return self._settled(head, self._settling, now)
        token = handshake.token_of(head, frame)
        if not self._mechanism:
            return Response(handshake.misplaced(head), _MISPLACED)
        if self._exchange is None:
            verifier = Verifier(self._listener.settings.services, self._client.subject.host or "")
            self._exchange = mechanisms.begin(self._mechanism, token, verifier)
            return self._step(head, None, now)
        return self._step(head, token, now)

    def _chosen(self, head: Head, frame: bytes) -> Response:
        offered = mechanisms_of(self._listener)
        mechanism = handshake.mechanism_of(head, frame)
        if mechanism not in offered or head.version < 1:
            response = handshake.offer(head, offered, handshake.UNSUPPORTED_SASL_MECHANISM)
            return Response(response, _MISPLACED)
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

    def _over(self, head: Head, outcome: Accepted | Denial) -> Response:
        self._mechanism, self._exchange = "", None
        if isinstance(outcome, Denial):
            return Response(handshake.failed(head), outcome)
        if outcome.principal.name != self._client.principal.name:
            return Response(handshake.failed(head), _OTHER)
        left = self._listener.settings.services.left(outcome.principal)
        response = handshake.response(head, outcome.data, handshake.lifetime_ms(left))
        return Response(response, None, outcome.principal, outcome.credential)
