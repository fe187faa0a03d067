"""Follows the redirects of one lookup on side connections, so that the client need not.

Each hop sends the client's own LOOKUP (with listener name, properties and unknown fields) to the
broker that the last response named, with the `authoritative` flag of that response. A side
connection is opened in the client's name. The gateway itself responds to PINGs and AUTH_CHALLENGEs
there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Peer,
    Receive,
    Refusal,
    Step,
    StepResult,
    Transmit,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
    ServerError,
)
from gateway.wire.pulsar.commands import auth_response, decode, encode, kind_of
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import kind_name
from gateway.wire.pulsar.urls import choose, parse

HOPS = 20
"""Redirects to follow for one lookup, as in Java's client; real clusters need one or two."""

NOT_FOUND = Denial(Refusal.NOT_READY, "the topic's broker was not found")
TOO_SLOW = Denial(Refusal.TIMEOUT, "the topic's broker was not found in time")

PATIENCE = 10.0
"""Seconds for one chase. Clients give a lookup 30 s, and all delays of one lookup share them."""


@dataclass(frozen=True, slots=True)
class Hop:
    """The broker to which a redirected lookup is sent next. `authoritative`: the redirect's flag of
    that name."""

    address: Address
    authoritative: bool


def is_redirect(response: CommandLookupTopicResponse) -> bool:
    """Return whether a lookup response redirects to another broker."""
    redirect = CommandLookupTopicResponse.Redirect  # also the default of an absent field
    return response.HasField("response") and response.response == redirect


def next_hop(response: CommandLookupTopicResponse, *, tls: bool) -> Hop | None:
    """Return the broker to which a lookup response redirects; None if the response is no redirect,
    or has no usable URL. `tls`: the broker's TLS URL is preferred."""
    if not is_redirect(response):
        return None
    address = parse(choose(response.brokerServiceUrl, response.brokerServiceUrlTls, tls=tls))
    return None if address is None else Hop(address, response.authoritative)


@dataclass(frozen=True, slots=True)
class Chase:
    """The `contract.Job` that follows the redirects of one lookup. Its outcome is the last
    LOOKUP_RESPONSE.

    `lookup`: the client's frame, with its `request_id`.
    """

    listener: ListenerContext
    client: Client
    request_id: int
    lookup: bytes
    hop: Hop
    patience: ClassVar[float] = PATIENCE
    failed: ClassVar[Denial] = NOT_FOUND
    late: ClassVar[Denial] = TOO_SLOW

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """Send the lookup to one broker after another, as each response redirects. Return the first
        response that does not redirect."""
        hop = self.hop
        for _ in range(HOPS):
            frame = yield from self._ask(hop)
            if isinstance(frame, Denial):
                return frame
            following = next_hop(decode(frame).lookupTopicResponse, tls=self.listener.brokers_tls)
            if following is None:
                return frame
            self.listener.services.redirected()
            hop = following
        return NOT_FOUND

    def _ask(self, hop: Hop) -> Generator[Step, StepResult, bytes | Denial]:
        """Dial a broker, send CONNECT if the connection is new, and send the LOOKUP."""
        dialled = yield Dial(hop.address)
        if not isinstance(dialled, Dialled):
            return dialled if isinstance(dialled, Denial) else NOT_FOUND
        if dialled.fresh:
            refused = yield from self._greet()
            if refused is not None:
                return refused
        yield Transmit(Peer.BROKER, self._request(hop))
        frame = yield from self._await(BaseCommand.LOOKUP_RESPONSE, opened=True)
        if isinstance(frame, bytes):
            self._check_response(frame)
        return frame

    def _greet(self) -> Generator[Step, StepResult, Denial | None]:
        greeting = self.client.greeting(self.listener, side=True)
        if isinstance(greeting, Denial):
            return greeting
        yield Transmit(Peer.BROKER, greeting)
        response = yield from self._await(BaseCommand.CONNECTED, opened=False)
        return response if isinstance(response, Denial) else None

    def _request(self, hop: Hop) -> bytes:
        command = decode(self.lookup)
        command.lookupTopic.authoritative = hop.authoritative
        return encode(command)

    def _check_response(self, frame: bytes) -> None:
        answered = decode(frame).lookupTopicResponse.request_id
        if answered != self.request_id:
            raise PeerError(f"a broker answered lookup {answered} instead of {self.request_id}")

    def _await(
        self, wanted: BaseCommand.Type.ValueType, *, opened: bool
    ) -> Generator[Step, StepResult, bytes | Denial]:
        """Return the next frame of the type `wanted`. Respond to other frames meanwhile."""
        while True:
            frame = yield Receive(Peer.BROKER)
            if not isinstance(frame, bytes):
                return frame if isinstance(frame, Denial) else NOT_FOUND
            command = decode(frame)
            if command.type == wanted and command.HasField("type"):
                return frame
            reply = self._reply(command, kind_of(frame), opened=opened)
            if isinstance(reply, Denial):
                return reply
            if reply:
                yield Transmit(Peer.BROKER, reply)

    def _reply(self, command: BaseCommand, kind: int, *, opened: bool) -> bytes | Denial:
        """Return the reply to another frame than the awaited one; empty: none."""
        if kind == BaseCommand.PING:
            return _PONG
        if kind == BaseCommand.PONG:
            return b""
        if kind == BaseCommand.AUTH_CHALLENGE:
            proof = self.client.proof(self.listener, opened=opened)
            ours = self.listener.version
            return proof if isinstance(proof, Denial) else auth_response(proof, ours)
        if kind == BaseCommand.ERROR:
            refusal = _REFUSALS.get(command.error.error, Refusal.NOT_READY)
            return Denial(refusal, self.listener.rewriter.cleaned(command.error.message))
        raise PeerError(f"a broker answered a lookup by {kind_name(kind)}")


_REFUSALS = {
    ServerError.AuthenticationError: Refusal.UNAUTHENTICATED,
    ServerError.AuthorizationError: Refusal.UNAUTHORIZED,
}
"""Errors that keep their code, because the client must not just try again."""


def _pong() -> bytes:
    command = BaseCommand(type=BaseCommand.PONG)
    command.pong.SetInParent()
    return encode(command)


_PONG = _pong()
