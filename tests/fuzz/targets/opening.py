"""Conversations: the opening of a connection, and the chase of a lookup."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Direction,
    EndReason,
    Opened,
    Peek,
    Peer,
    Receive,
    Refusal,
    Refused,
    Settle,
    Step,
    StepResult,
    Transmit,
    Wait,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.context import ListenerContext
from gateway.wire.pulsar.entry import PulsarEntry
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.session import PulsarSession
from tests.fuzz.grammar import any_frame, frame_of
from tests.fuzz.listeners import drawn_listener
from tests.fuzz.pair import Pair
from tests.fuzz.reading import shown, walk, whole
from tests.fuzz.source import Source
from tests.fuzz.targets.session import play
from tests.playbooks.services import BROKER_1, ORIGIN, OWN

_LIKELY = {
    Peer.CLIENT: (Kind.CONNECT, Kind.CONNECT, Kind.AUTH_RESPONSE),
    Peer.BROKER: (Kind.CONNECTED, Kind.CONNECTED, Kind.AUTH_CHALLENGE, Kind.ERROR),
}


class Spoken(NamedTuple):
    """What a conversation came to, and how many frames it heard."""

    outcome: Any
    heard: int
    last: Peer


_FAULTS = {
    EndReason.CLIENT_VIOLATION: Peer.CLIENT,
    EndReason.CLIENT_CLOSED: Peer.CLIENT,
    EndReason.BROKER_VIOLATION: Peer.BROKER,
    EndReason.BROKER_REFUSED: Peer.BROKER,
    EndReason.BROKER_LOST: Peer.BROKER,
}
"""Who was heard last, where an end blames a peer."""


def opening(data: bytes) -> int:
    """A client connects, and if it comes to a pair, goes on; answers how many frames were said."""
    source = Source(data)
    listener, services = drawn_listener(source)
    entry = PulsarEntry(listener)
    spoken = converse(source, entry.open(ORIGIN), listener)
    if not isinstance(spoken.outcome, Opened):
        assert isinstance(spoken.outcome, Refused)
        assert _FAULTS.get(spoken.outcome.reason, spoken.last) is spoken.last
        told = whole(spoken.outcome.farewell)
        assert [command.type for command in told] in ([], [BaseCommand.ERROR])
        assert not any(map(shown, told))
        return spoken.heard
    session = spoken.outcome.session
    assert isinstance(session, PulsarSession)
    return spoken.heard + play(source, Pair(session, services))


def converse(
    source: Source, steps: Generator[Step, StepResult, Any], listener: ListenerContext
) -> Spoken:
    """Have a conversation with nonsense. It must come to an end when nobody says more."""
    result: StepResult = None
    heard, last = 0, Peer.CLIENT
    for _ in range(4 * listener.bounds.rounds + 6):
        try:
            step = steps.send(result)
        except StopIteration as stop:
            return Spoken(stop.value, heard, last)
        if isinstance(step, Receive):
            heard, last = heard + 1, step.peer
        result = _result(source, step, listener)
    raise AssertionError("a conversation without an end")


def _result(source: Source, step: Step, listener: ListenerContext) -> StepResult:
    match step:
        case Receive(peer):
            return _said(source, peer)
        case Transmit(peer, data):
            _is_fit(peer, data, listener)
            return None
        case Wait(seconds):
            assert seconds > 0
            return None
        case Dial(target):
            return _REFUSED if source.odd(8) else Dialled(target or BROKER_1)
        case Settle():
            raise AssertionError("the services of this target answer at once")
        case Peek():
            raise AssertionError("an opening of Pulsar receives whole frames")


_REFUSED = Denial(Refusal.TARGET, "not allowed")
_SILENCES = tuple(
    Denial(refusal, "silence") for refusal in (Refusal.CLOSED, Refusal.TIMEOUT, Refusal.TOO_MANY)
)


def _said(source: Source, peer: Peer) -> bytes | Denial:
    """One frame by its total size, which is all that the front reads of it."""
    if not source.left:
        return _SILENCES[0]
    shape = source.byte()
    if shape >= 240:
        return _SILENCES[shape % len(_SILENCES)]
    if shape < 200:
        likely = frame_of(source, _LIKELY[peer][shape % len(_LIKELY[peer])])
        return likely if shape < 160 else _lying(source, likely)
    data = any_frame(source, Direction(peer))[4:]
    return len(data).to_bytes(4) + data


def _lying(source: Source, frame: bytes) -> bytes:
    """With another size of its command."""
    return frame[:4] + source.pick((0, 1, len(frame), 1 << 31)).to_bytes(4) + frame[8:]


def _is_fit(peer: Peer, data: bytes, listener: ListenerContext) -> None:
    """Of whole frames; to the client without a trace of brokers; to brokers in our own name."""
    for said in walk(data):
        assert said.total == len(data)
        assert not said.is_impossible
        command = said.command
        if command is None:
            continue
        if peer is Peer.CLIENT:
            assert shown(command) == []
        elif command.type == BaseCommand.CONNECT:
            _is_in_our_name(command, listener)


def _is_in_our_name(command: BaseCommand, listener: ListenerContext) -> None:
    connect = command.connect
    assert listener.chained or not connect.HasField("proxy_to_broker_url")
    if listener.mode is not Mode.PASS_THROUGH:
        assert connect.auth_data == OWN.data
        assert connect.original_principal
