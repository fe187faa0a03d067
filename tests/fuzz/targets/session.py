"""An open pair: both peers say anything, jobs end anyhow, and the gateway stops at any time."""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import PeerError
from gateway.wire.contract import Denial, Dial, Dialled, Direction, Receive, StepResult, Transmit
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.session import PulsarSession
from tests.fuzz.grammar import any_frame, frame_of, true_frame
from tests.fuzz.listeners import drawn_client, drawn_listener
from tests.fuzz.pair import LATE, Pair
from tests.fuzz.reading import walk
from tests.fuzz.source import Source
from tests.playbooks.frames import error, producer_success, queued, success
from tests.playbooks.services import BROKER_1, BROKER_2

MOST = 64
"""Happenings of one run."""

MOST_STEPS = 40
"""Of a chase that brokers keep busy; time ends it in the gateway."""


def session(data: bytes) -> int:
    """Answers how many frames were said."""
    source = Source(data)
    listener, services = drawn_listener(source)
    client = drawn_client(source, listener.mode)
    size = source.pick((0, 1 << 20, -1, (1 << 31) - 1))
    broker = None if listener.chained else BROKER_1
    whole = PulsarSession(listener, client, broker, size)
    return play(source, Pair(whole, services, traced=source.odd(8)))


def play(source: Source, pair: Pair) -> int:
    """Whatever happens until the bytes are used up."""
    said = 0
    for _ in range(MOST):
        if pair.over or not source.left:
            break
        said += _HAPPENINGS[source.below(len(_HAPPENINGS))](source, pair)
    if pair.jobs and not pair.over:
        for number in tuple(pair.jobs):
            pair.resume(number, LATE)
    pair.close()
    return said


def _client_says(source: Source, pair: Pair) -> int:
    pair.say(Direction.TO_BROKER, _cut(source, any_frame(source, Direction.TO_BROKER)))
    return 1


def _broker_says(source: Source, pair: Pair) -> int:
    pair.say(Direction.TO_CLIENT, _cut(source, any_frame(source, Direction.TO_CLIENT)))
    return 1


def _client_asks(source: Source, pair: Pair) -> int:
    """What opens, closes and looks up."""
    pair.say(Direction.TO_BROKER, frame_of(source, source.pick(_REQUESTS)))
    return 1


_REQUESTS = (
    Kind.PRODUCER,
    Kind.SUBSCRIBE,
    Kind.LOOKUP,
    Kind.CLOSE_PRODUCER,
    Kind.CLOSE_CONSUMER,
    Kind.UNSUBSCRIBE,
    Kind.SEND,
)


def _broker_answers(source: Source, pair: Pair) -> int:
    """What a broker would, to any of the latest requests."""
    if not pair.asked:
        return 0
    at = source.below(len(pair.asked))
    response = _response(source, pair.asked[at])
    del pair.asked[at]
    pair.say(Direction.TO_CLIENT, response)
    return 1


def _response(source: Source, asked: BaseCommand) -> bytes:
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(asked.type)
    request = getattr(getattr(asked, field.name), "request_id", 0) if field else 0
    if source.odd(6):
        return error(request)
    match asked.type:
        case BaseCommand.PRODUCER:
            return queued(request) if source.odd(6) else producer_success(request)
        case BaseCommand.LOOKUP:
            return _looked_up(source, request)
    return success(request)


def _looked_up(source: Source, request: int) -> bytes:
    """A response of any kind, to this request."""
    drawn = frame_of(source, Kind.LOOKUP_RESPONSE)
    (said,) = walk(drawn)
    command = said.command
    assert command is not None
    command.lookupTopicResponse.request_id = request
    body = command.SerializePartialToString()
    return (len(body) + 4).to_bytes(4) + len(body).to_bytes(4) + body


def _cut(source: Source, data: bytes) -> bytes:
    """Whole in most cases; what is missing never comes."""
    return data[: source.below(len(data))] if source.odd(16) and data else data


def _many_say(source: Source, pair: Pair) -> int:
    """Several frames in one chunk, as scanners like it."""
    direction = Direction(source.below(2))
    frames = [true_frame(source, direction) for _ in range(1 + source.below(5))]
    pair.say(direction, b"".join(frames * (1 + source.below(3))))
    return len(frames)


def _hold(source: Source, pair: Pair) -> int:
    for handle in pair.session.incarnations.handles:
        if not source.odd(3):
            handle.account.hold()
    return 0


def _grant(source: Source, pair: Pair) -> int:
    most = ENDLESS if source.odd(2) else source.below(4)
    for handle in tuple(pair.session.incarnations.handles):
        if not pair.over and not handle.released:
            pair.grant(handle.account, most, ENDLESS)
    return 0


def _leave(source: Source, pair: Pair) -> int:
    pair.leave()
    return 0


def _wait(source: Source, pair: Pair) -> int:
    pair.wait(source.below(6) / 2)
    return 0


def _chase(source: Source, pair: Pair) -> int:
    """One job to its end, with brokers that answer anything."""
    if not pair.jobs:
        return 0
    token = source.pick(tuple(pair.jobs))
    outcome, heard = _chased(source, pair, token)
    pair.resume(token, outcome)
    return heard


def _chased(source: Source, pair: Pair, token: int) -> tuple[bytes | Denial, int]:
    steps, heard = pair.jobs[token][0].converse(), 0
    result: StepResult = None
    for _ in range(MOST_STEPS):
        try:
            step = steps.send(result)
        except StopIteration as stop:
            return stop.value, heard
        except PeerError:
            return LATE, heard
        if isinstance(step, Receive):
            heard += 1
            result = _heard(source, pair.jobs[token][0].request_id)
        elif isinstance(step, Dial):
            result = LATE if source.odd(8) else Dialled(BROKER_2, fresh=not source.odd(3))
        else:
            assert isinstance(step, Transmit), "a chase waits for nobody but brokers"
            assert all(said.total == len(step.data) for said in walk(step.data))
            result = None
    return LATE, heard


def _heard(source: Source, request: int) -> bytes | Denial:
    """Of a broker that is asked for a lookup."""
    if not source.left:
        return LATE
    shape = source.byte()
    if shape < 100:
        return _looked_up(source, request)
    if shape < 240:
        return frame_of(source, _ON_THE_SIDE[shape % len(_ON_THE_SIDE)])
    data = any_frame(source, Direction.TO_CLIENT)[4:]
    return len(data).to_bytes(4) + data


_ON_THE_SIDE = (
    Kind.CONNECTED,
    Kind.CONNECTED,
    Kind.LOOKUP_RESPONSE,
    Kind.PING,
    Kind.PONG,
    Kind.AUTH_CHALLENGE,
    Kind.ERROR,
)

_HAPPENINGS: tuple[Callable[[Source, Pair], int], ...] = (
    _client_asks,
    _broker_answers,
    _client_says,
    _broker_says,
    _broker_answers,
    _many_say,
    _client_asks,
    _broker_answers,
    _hold,
    _grant,
    _leave,
    _wait,
    _chase,
)
