"""Sends one CONNECT to an address, and finds out what answers there."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from gateway.doctor.pulsar.hello import Answer, NotPulsar, Probe, frame_length, greet, recognize
from gateway.doctor.reach import Network, Unreached
from gateway.errors import PeerError
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled

LARGEST_ANSWER = 64 * 1024
"""Bytes of a frame. Answers to CONNECT and LOOKUP have some hundred."""

_UNSURE = frozenset({NotPulsar.CLOSED, NotPulsar.SILENT})
"""Reactions that a TLS server may also show to plain Pulsar."""


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """An answer, and the seconds until the connection was established (0.0 without one)."""

    answer: Answer
    seconds: float


async def ask(network: Network, address: Address, probe: Probe) -> TimedAnswer:
    """Send one CONNECT to an IP literal and return the answer."""
    began = trio.current_time()
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return TimedAnswer(sock, 0.0)
    seconds = trio.current_time() - began
    with sock:
        leg = Leg(sock, frame_length, LARGEST_ANSWER)
        answer = await _converse(network, leg, address, probe)
    if answer in _UNSURE and await network.speaks_tls(address):
        answer = NotPulsar.TLS
    return TimedAnswer(answer, seconds)


async def _converse(network: Network, leg: Leg, address: Address, probe: Probe) -> Answer:
    async def reach(_target: Address | None) -> tuple[Leg, Dialled] | Denial:
        return leg, Dialled(address)

    conversation = Conversation(trio.current_time() + network.timeout, reach)
    try:
        answer = await conversation.run(greet(probe))
    except PeerError:
        answer = NotPulsar.STRANGE
    return recognize(answer, bytes(leg.received)) if isinstance(answer, NotPulsar) else answer
