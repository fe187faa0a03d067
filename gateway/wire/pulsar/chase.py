"""Follows the redirects of one lookup on side connections, so that the client never has to.

Each hop sends the client's own LOOKUP again (listener name, properties and unknown fields with
it) to the broker that the last answer named, with the `authoritative` flag of that answer.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from gateway.errors import PeerError
from gateway.wire.contract import (
    Address,
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
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.addresses import parse
from gateway.wire.pulsar.commands import decode, encode
from gateway.wire.pulsar.context import Client, Listener

HOPS = 20
"""Redirects followed for one lookup, as Java's client does; real clusters need one or two."""

_LOST = Denial(Refusal.NOT_READY, "the topic's broker was not found")


@dataclass(frozen=True, slots=True)
class Hop:
    """Where the next answer comes from."""

    address: Address
    authoritative: bool


def next_hop(answer: CommandLookupTopicResponse) -> Hop | None:
    """Whom a Redirect names; None for any other answer."""
    if not answer.HasField("response") or answer.response != CommandLookupTopicResponse.Redirect:
        return None
    address = parse(answer.brokerServiceUrl or answer.brokerServiceUrlTls)
    return None if address is None else Hop(address, answer.authoritative)


@dataclass(frozen=True, slots=True)
class Chase:
    """A job: see `contract.Job`. Its outcome is the last broker's LOOKUP_RESPONSE."""

    listener: Listener
    client: Client
    lookup: bytes
    hop: Hop

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """Hop from broker to broker."""
        hop = self.hop
        for _ in range(HOPS):
            frame = yield from self._ask(hop)
            if isinstance(frame, Denial):
                return frame
            answer = decode(frame).lookupTopicResponse
            following = next_hop(answer)
            if following is None:
                return frame
            self.listener.gate.redirected()
            hop = following
        return _LOST

    def _ask(self, hop: Hop) -> Generator[Step, StepResult, bytes | Denial]:
        """Dial, greet if the connection is fresh, ask."""
        dialled = yield Dial(hop.address)
        if not isinstance(dialled, Dialled):
            return dialled if isinstance(dialled, Denial) else _LOST
        if dialled.fresh:
            refused = yield from self._greet()
            if refused is not None:
                return refused
        yield Transmit(Peer.BROKER, self._request(hop))
        return (yield from self._await(BaseCommand.LOOKUP_RESPONSE))

    def _greet(self) -> Generator[Step, StepResult, Denial | None]:
        greeting = self.client.greeting(self.listener)
        if isinstance(greeting, Denial):
            return greeting
        yield Transmit(Peer.BROKER, greeting)
        answer = yield from self._await(BaseCommand.CONNECTED)
        return answer if isinstance(answer, Denial) else None

    def _request(self, hop: Hop) -> bytes:
        command = decode(self.lookup)
        command.lookupTopic.authoritative = hop.authoritative
        return encode(command)

    def _await(
        self, wanted: BaseCommand.Type.ValueType
    ) -> Generator[Step, StepResult, bytes | Denial]:
        """The next frame of this type. A PING on a pooled connection is answered."""
        while True:
            frame = yield Receive(Peer.BROKER)
            if not isinstance(frame, bytes):
                return frame if isinstance(frame, Denial) else _LOST
            command = decode(frame)
            if command.type == wanted:
                return frame
            if command.type == BaseCommand.PING:
                yield Transmit(Peer.BROKER, _PONG)
            elif command.type == BaseCommand.ERROR:
                text = self.listener.gate.clean(command.error.message)
                return Denial(Refusal.NOT_READY, text)
            elif command.type != BaseCommand.PONG:
                raise PeerError(f"a broker answered a lookup by command {command.type}")


def _pong() -> bytes:
    command = BaseCommand(type=BaseCommand.PONG)
    command.pong.SetInParent()
    return encode(command)


_PONG = _pong()
