"""Sends one CONNECT to an address, and finds out what answers there."""

from __future__ import annotations

from dataclasses import dataclass
from socket import socket

import trio

from gateway.doctor import secured
from gateway.doctor.insecure import Agreed, Insecure, Trouble
from gateway.doctor.pulsar.hello import (
    Accepted,
    Answer,
    NotPulsar,
    Probe,
    Rejected,
    anonymous,
    frame_length,
    greet,
    recognize,
)
from gateway.doctor.reach import Network, Unreached
from gateway.doctor.secured import Secure
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
    """An answer, and the seconds until the connection was established (0.0 without one).
    `agreed`: the TLS of the connection, if it has one."""

    answer: Answer
    seconds: float
    agreed: Agreed | None = None


async def ask(
    network: Network, address: Address, probe: Probe, secure: Secure | None = None
) -> TimedAnswer:
    """Send one CONNECT to an IP literal, under TLS if `secure` is given, and return the answer."""
    began = trio.current_time()
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return TimedAnswer(sock, 0.0)
    seconds = trio.current_time() - began
    if secure is not None:
        answer, agreed = await _ask_secured(network, sock, address, probe, secure)
        return TimedAnswer(answer, seconds, agreed)
    with sock:
        leg = Leg(sock, frame_length, LARGEST_ANSWER)
        answer = await _converse(network, leg, address, probe)
    if answer in _UNSURE and await network.speaks_tls(address):
        answer = NotPulsar.TLS
    return TimedAnswer(answer, seconds)


async def _ask_secured(
    network: Network, sock: socket, address: Address, probe: Probe, secure: Secure
) -> tuple[Answer, Agreed | None]:
    stream = await secured.shaken(network, sock, secure)
    if isinstance(stream, Insecure):
        return await _explain(network, address, secure.host, stream), None
    leg = Leg(stream, frame_length, LARGEST_ANSWER)
    try:
        agreed = secured.agreed_of(stream)
        answer = await _converse(network, leg, address, probe)
    finally:
        leg.close()
    if answer is NotPulsar.CLOSED:
        return await secured.farewell(network, address, secure) or answer, None
    return answer, agreed


async def _explain(network: Network, address: Address, host: str, failed: Insecure) -> Answer:
    """Return what a peer is with which no handshake succeeds. It gets no credential."""
    if failed.trouble is not Trouble.NONE:
        return await secured.explain(network, address, host, failed)
    if await network.speaks_tls(address):
        return Insecure(Trouble.AMBIGUOUS, failed.words)
    plain = (await ask(network, address, anonymous())).answer
    if isinstance(plain, Accepted | Rejected):
        return NotPulsar.PLAIN
    return NotPulsar.HTTP if plain is NotPulsar.HTTP else failed


async def _converse(network: Network, leg: Leg, address: Address, probe: Probe) -> Answer:
    async def reach(_target: Address | None) -> tuple[Leg, Dialled] | Denial:
        return leg, Dialled(address)

    conversation = Conversation(trio.current_time() + network.timeout, reach)
    try:
        answer = await conversation.run(greet(probe))
    except PeerError:
        answer = NotPulsar.STRANGE
    return recognize(answer, bytes(leg.received)) if isinstance(answer, NotPulsar) else answer
