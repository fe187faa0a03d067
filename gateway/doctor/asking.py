"""Sends the first request of a protocol to an address, and finds out which protocol the peer at
this address speaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from socket import socket
from typing import Generic, TypeVar

import trio

from gateway.doctor import secured
from gateway.doctor.checks import Spoken
from gateway.doctor.finding import Finding
from gateway.doctor.insecure import Agreed, Insecure, Trouble, judge_agreed
from gateway.doctor.reach import Network, Unreached
from gateway.doctor.secured import Secure
from gateway.doctor.strangers import Stranger, recognize
from gateway.errors import PeerError
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.tls.stream import TlsStream
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled, Step, StepResult

T = TypeVar("T")
"""The response of a peer that speaks the protocol."""

_UNSURE = frozenset({Stranger.CLOSED, Stranger.SILENT})
"""Outcomes that are ambiguous: a TLS server, too, closes or keeps silent when it gets plain
bytes."""


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A request to a peer, as a conversation of one protocol. `steps`: returns the conversation,
    which begins with a `Dial` and may raise `PeerError`. `frame_length`: see `contract.Entry`.
    `largest`: the most bytes that a response may have."""

    steps: Callable[[], Generator[Step, StepResult, T | Stranger | Unreached]]
    frame_length: Callable[[bytearray], int]
    largest: int


@dataclass(frozen=True, slots=True)
class TimedAnswer(Generic[T]):
    """The outcome of a `Question`. `answer`: the peer's response, or why there is none. `seconds`:
    how long it took to connect; 0.0 if no connection was established. `agreed`: what the TLS
    handshake agreed on; None without TLS."""

    answer: T | Stranger | Unreached | Insecure
    seconds: float
    agreed: Agreed | None = None


async def ask(
    network: Network,
    address: Address,
    question: Question[T],
    plain: Question[T],
    secure: Secure | None = None,
) -> TimedAnswer[T]:
    """Connect to an address whose host is an IP literal, send the question, and return the outcome.
    `secure`: the TLS of the connection; None: no TLS. `plain`: the question that is sent without
    TLS if the peer should speak TLS and does not; it must contain no secret."""
    began = trio.current_time()
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return TimedAnswer(sock, 0.0)
    seconds = trio.current_time() - began
    if secure is None:
        plainly = await _ask_plain(network, sock, address, question)
        return TimedAnswer(plainly, seconds)
    stream = await secured.shaken(network, sock, secure)
    if isinstance(stream, Insecure):
        return TimedAnswer(await _explain(network, address, secure.host, stream, plain), seconds)
    outcome = await _ask_secured(network, stream, address, question, secure)
    return TimedAnswer(outcome[0], seconds, outcome[1])


async def _ask_plain(
    network: Network, sock: socket, address: Address, question: Question[T]
) -> T | Stranger | Unreached:
    with sock:
        leg = Leg(sock, question.frame_length, question.largest)
        answer = await _converse(network, leg, address, question)
    if isinstance(answer, Stranger) and answer in _UNSURE and await network.speaks_tls(address):
        return Stranger.TLS
    return answer


async def _ask_secured(
    network: Network,
    stream: TlsStream,
    address: Address,
    question: Question[T],
    secure: Secure,
) -> tuple[T | Stranger | Unreached | Insecure, Agreed | None]:
    leg = Leg(stream, question.frame_length, question.largest)
    try:
        agreed = secured.agreed_of(stream)
        answer = await _converse(network, leg, address, question)
    finally:
        leg.close()
    if answer is Stranger.CLOSED:
        return await secured.farewell(network, address, secure) or answer, None
    return answer, agreed


async def _explain(
    network: Network, address: Address, host: str, failed: Insecure, plain: Question[T]
) -> Stranger | Insecure:
    """Return what a peer is whose TLS handshake failed."""
    if failed.trouble is not Trouble.NONE:
        return await secured.explain(network, address, host, failed)
    if await network.speaks_tls(address):
        return Insecure(Trouble.AMBIGUOUS, failed.words)
    answer = (await ask(network, address, plain, plain)).answer
    if not isinstance(answer, Stranger | Unreached | Insecure):
        return Stranger.PLAIN
    return answer if answer is Stranger.HTTP else failed


async def _converse(
    network: Network, leg: Leg, address: Address, question: Question[T]
) -> T | Stranger | Unreached:
    async def reach(_target: Address | None) -> tuple[Leg, Dialled] | Denial:
        return leg, Dialled(address)

    conversation = Conversation(trio.current_time() + network.timeout, reach)
    try:
        answer = await conversation.run(question.steps())
    except PeerError:
        answer = Stranger.STRANGE
    return recognize(answer, bytes(leg.received)) if isinstance(answer, Stranger) else answer


def spoken_of(answer: T | Stranger | Unreached | Insecure, protocol: str) -> Spoken | None:
    """Return which protocol a peer speaks, given its response to a question; None if no connection
    could be established. `protocol`: the name of the protocol of the question."""
    if isinstance(answer, Unreached):
        return None
    if isinstance(answer, Insecure):
        wants = answer.trouble is Trouble.WANTED
        return Spoken(wants, "speaks TLS and wants a certificate" if wants else "speaks no TLS")
    if isinstance(answer, Stranger):
        return Spoken(False, answer.words(protocol))
    return Spoken(True, f"speaks {protocol}")


# -- findings --------------------------------------------------------------------------------


def name_address(broker: Address, address: Address) -> str:
    """Return how findings name one IP address of a broker: by the broker's address, followed by the
    IP address if the broker's host is a host name."""
    return str(broker) if broker == address else f"{broker} ({address.host})"


def judge_tls(broker: Address, address: Address, agreed: Agreed | None) -> list[Finding]:
    """Return a list with the finding about the TLS of a broker at one of its IP addresses; an empty
    list if the connection has no TLS."""
    if agreed is None:
        return []
    return [judge_agreed(f"TLS of {name_address(broker, address)}", agreed, time.time())]
