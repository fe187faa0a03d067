"""Frames of TubeMQ out of random bytes: what real peers have said, and messages that a broker
brings, whole, cut and mutated, in both directions of a session."""

from __future__ import annotations

import random
from contextlib import suppress

from gateway.errors import PeerError
from gateway.wire.tubemq.frames import framed, head, whole
from gateway.wire.tubemq.methods import GET_MESSAGES
from tests.playbooks_tubemq.script import Tube, TubeServices, ask, tell
from tests.unit.wire.tubemq.frames import in_blocks_of, vectors

MOST = 12
"""Frames of one connection."""

LARGEST_IN_SMALL_BLOCKS = 3000
"""Bytes of an envelope in blocks of one byte, of which a frame may have so many."""

NODES = (None, None, 1, 2)
_REQUESTS = [it.frame for it in vectors() if it.is_request]
_REPLIES = [it.frame for it in vectors() if not it.is_request]
_GET, *_GETS = [
    ask(
        GET_MESSAGES,
        serial,
        clientId="c",
        partitionId=1,
        groupName="g",
        topicName="demo",
    )
    for serial in range(900, 908)
]
_GOT, *_GOTS = [
    tell(
        GET_MESSAGES,
        900 + place,
        success=True,
        errCode=200,
        errMsg="OK!",
        messages=[
            {"messageId": 1 << at, "checkSum": at, "payLoadData": bytes(at * size), "flag": at}
            for at in range(place + 1)
        ],
        currOffset=28 * place,
        maxOffset=2800,
    )
    for place, size in enumerate((1, 1, 10, 100, 1000, 3000, 0, 200))
]


def session(data: bytes) -> int:
    """Have peers of a connection say what these bytes choose; return how many frames they said. A
    violation of theirs ends it. Raises what is a bug."""
    noise = random.Random(data)
    play = Tube(TubeServices(), node=noise.choice(NODES))
    if noise.random() < 0.5:
        play.services.forbidden = set()
    replies = _REPLIES
    said = 0
    with suppress(PeerError):
        if noise.random() < 0.4:  # what is like the first reply is read while it passes
            play.client(_GET, *_GETS)
            play.broker(_GOT)
            replies = _GOTS
        for said in range(1, noise.randrange(2, MOST)):  # noqa: B007 - how far it came
            if noise.random() < 0.6:
                play.client(_any(_REQUESTS, noise))
            else:
                frame, cut = _any(replies, noise), noise.randrange(1, 3000)
                play.broker(frame[:cut])
                play.broker(frame[cut:])
    play.session.close()
    assert play.budget_of.taken == 0, "what a connection has taken is given back"
    return said


def _any(frames: list[bytes], noise: random.Random) -> bytes:
    frame = noise.choice(frames)
    return frame if noise.random() < 0.4 else mutated(frame, noise)


def mutated(frame: bytes, noise: random.Random) -> bytes:
    """Return a frame with another envelope, in other blocks, or with another head."""
    envelope = bytearray(whole(frame).envelope)
    for _ in range(noise.choice((0, 1, 1, 2, 5))):
        _mutate(envelope, noise)
    found = framed(head(frame).serial, bytes(envelope) or b"\0")
    if noise.random() < 0.2 and len(envelope) < LARGEST_IN_SMALL_BLOCKS:
        found = in_blocks_of(noise.choice((1, 3, 50)), found)
    if noise.random() < 0.1:
        torn = bytearray(found)
        torn[noise.randrange(min(20, len(torn)))] ^= 1 << noise.randrange(8)
        found = bytes(torn)
    return found


def _mutate(data: bytearray, noise: random.Random) -> None:
    if not data:
        return
    at, size = noise.randrange(len(data)), noise.randrange(1, 6)
    match noise.randrange(4):
        case 0:
            data[at] = noise.choice((noise.randrange(256), 0, 0x80, 0xFF))
        case 1:
            del data[at : at + size]
        case 2:
            data[at:at] = noise.randbytes(size)
        case _:
            other = noise.randrange(len(data))
            data[at:at] = data[other : other + 8 * size]


TUBEMQ = {"tubemq_session": session}
"""Targets of `kafka.storm`."""
