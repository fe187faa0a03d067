"""Streams of many frames that leave the connection open, and frames that end it.

Each frame is tried on a session first: whatever it ends, or leaves within a frame, is *poison*.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.errors import PeerError
from gateway.wire.contract import Direction, End
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.session import PulsarSession
from tests.fuzz.grammar import any_frame, metadata
from tests.fuzz.source import Source
from tests.playbooks.frames import connect_to, redirect_to
from tests.playbooks.script import Play
from tests.support.effects import at_once
from tests.support.frames import data, frame, message, number, receipt, send, simple, tail
from tests.support.scanners import scanners_of

IDS = (1001, 1002, 1003, 70_001)
"""Of producers and consumers that nobody closes: no frame of the grammar has these ids."""

TOPIC = "persistent://public/default/siege"

COMMON = 12
"""So many SENDs or MESSAGEs come for each other frame."""

LONG = 1500
"""Frames of one stream."""

END = frame(number(1, Kind.PONG) + data(Kind.PONG, data(15, b"the end of a stream")))
"""The last frame of each stream."""


@dataclass(frozen=True, slots=True)
class Stream:
    data: bytes
    frames: int


@dataclass(frozen=True, slots=True)
class Arsenal:
    """All that one direction can say."""

    streams: tuple[Stream, ...]
    poison: tuple[bytes, ...]


def requests() -> bytes:
    """What opens all `IDS`."""
    return b"".join(
        simple(Kind.PRODUCER, topic=TOPIC, producer_id=id, request_id=2 * id)
        + simple(
            Kind.SUBSCRIBE,
            topic=TOPIC,
            subscription="s",
            subType=0,
            consumer_id=id,
            request_id=2 * id + 1,
        )
        for id in IDS
    )


def responses() -> bytes:
    """A broker's yes to them."""
    return b"".join(
        simple(Kind.PRODUCER_SUCCESS, request_id=2 * id, producer_name="p")
        + simple(Kind.SUCCESS, request_id=2 * id + 1)
        for id in IDS
    )


def arsenal(direction: Direction, seed: int, many: int, broker: str) -> Arsenal:
    """So many streams, the same for each seed. `broker`: its address, which no client may see."""
    noise = random.Random(f"{seed} {direction}")
    streams, poison = [], list[bytes]()
    for _ in range(many):
        frames = list(_harmless(direction, noise, broker, poison))
        streams.append(Stream(b"".join(frames) + END, len(frames) + 1))
    return Arsenal(tuple(streams), tuple(poison))


def _harmless(
    direction: Direction, noise: random.Random, broker: str, poison: list[bytes]
) -> Iterator[bytes]:
    session = Play().session
    said = 0
    while said < LONG:
        for each in _drawn(direction, noise, broker):
            if _is_harmless(session, direction, each):
                said += 1
                yield each
            else:
                session = Play().session
                poison.append(each)


def _drawn(direction: Direction, noise: random.Random, broker: str) -> Iterator[bytes]:
    """A run of what is most of the traffic, then anything else."""
    source = Source(noise.randbytes(600))
    common = _send if direction is Direction.TO_BROKER else _message
    for _ in range(noise.randrange(2 * COMMON)):
        yield common(noise, source)
    if direction is Direction.TO_CLIENT and noise.random() < 0.1:
        lead = noise.choice((redirect_to, connect_to))
        yield lead(f"pulsar://{broker}", noise.randrange(6))
    yield any_frame(source, direction)


def _send(noise: random.Random, source: Source) -> bytes:
    shape = noise.random()
    id, sequence = noise.choice(IDS), noise.randrange(1 << noise.choice((7, 14, 28, 60)))
    if shape < 0.8:
        return send(id, sequence, bytes(noise.randrange(200)))
    if shape < 0.9:
        return send(id, sequence, num_messages=noise.randrange(1, 300))
    width = noise.randrange(11)
    fields = [number(1, id, width), number(2, sequence), number(3, noise.randrange(1 << 32))]
    noise.shuffle(fields)
    of = number(1, Kind.SEND) + data(Kind.SEND, b"".join(fields))
    return frame(of, tail(metadata(source), b"payload"))


def _message(noise: random.Random, source: Source) -> bytes:
    id = noise.choice(IDS)
    match noise.randrange(4):
        case 0:
            return receipt(id, noise.randrange(1 << 20))
        case 1:
            return message(id, tail(metadata(source), bytes(noise.randrange(100))))
        case _:
            return message(id)


def _is_harmless(session: PulsarSession, direction: Direction, frame: bytes) -> bool:
    """Nobody is at fault, and the next frame begins behind it."""
    scanner = scanners_of(session)[direction]
    try:
        cleared = scanner.scan(bytearray(frame), 0, len(frame))
        if not scanner.stop:
            return cleared == len(frame) and not scanner.owed
        if (cleared, scanner.stop) != (0, len(frame)):
            return False
        return not any(isinstance(e, End) for e in at_once(session.decide(direction, frame, 0.0)))
    except PeerError:
        return False
    finally:
        scanner.owed = 0
