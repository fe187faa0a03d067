"""Frames that were once understood in two ways: they reach no broker, or are understood in one way.

`CASES` failed before commands had to be canonical. `ALIKE_BEFORE` did not, and guard against a
future parser.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import Direction
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.frames import Kind
from tests.playbooks.frames import (
    auth_response,
    error,
    producer,
    producer_success,
    subscribe,
    success,
)
from tests.playbooks.script import listener
from tests.support.frames import command, data, frame, metadata_of, number, send, tail
from tests.support.requests import to_session

from .oracle import Oracles
from .play import Record
from .run import judged
from .watched import House, WatchedServices

UNKNOWN_TO_4 = 70
"""A type that brokers 4.x do not know and the gateway once let pass."""

TOPIC = b"persistent://public/default/t"
SECRET = b"persistent://pulsar/system/reports"


def _body(whole: bytes) -> bytes:
    """Return the fields of a command of less than 128 bytes."""
    at = 12 if whole[9] < 16 else 13
    return whole[at : 8 + int.from_bytes(whole[4:8])]


def _twice(kind: int, body: bytes, rest: bytes = b"") -> bytes:
    """Return a command of this type followed by a type that brokers 4.x do not know."""
    return frame(number(1, kind) + number(1, UNKNOWN_TO_4) + data(kind, body), rest)


def _bodies(kind: int, *bodies: bytes) -> bytes:
    return frame(number(1, kind) + b"".join(data(kind, body) for body in bodies))


def _producer(topic: bytes, id: int = 5) -> bytes:
    return data(1, topic) + number(2, id) + number(3, 50)


def _token(proof: bytes) -> bytes:
    return data(2, data(1, b"token") + data(2, proof))


_CONSUMER = number(3, 0) + number(4, 1) + number(5, 50)
_PAYLOAD = tail(metadata_of(7), b"payload")
_SEND = number(1, 1) + number(2, 7)
_CUT_ID = bytes.fromhex("1209 080210001800200028 20 818080808080808040 2803")
"""The length of the message id ends within a number. A decoder that reads on is off by one: it
takes what follows for the tag of a value that reaches into the payload."""


def _flow(id: int) -> bytes:
    return frame(command(Kind.FLOW, number(1, id) + number(2, 1000)))


class Case(NamedTuple):
    """`frames`: sent by the client once producer 1 and consumer 1 are open; `responses`: then sent
    by the broker; `after`: then sent by the client. `ceiling`: messages of an account."""

    frames: tuple[bytes, ...]
    mode: Mode = Mode.PASS_THROUGH
    limited: bool = True
    ceiling: int | None = None
    responses: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()


CASES = {
    "a SEND behind a second type": Case((_twice(Kind.SEND, _SEND, _PAYLOAD),)),
    "SENDs behind a second type, above a limit": Case(
        (_twice(Kind.SEND, _SEND, _PAYLOAD),) * 50, ceiling=1
    ),
    "a PRODUCER behind a second type": Case((_twice(Kind.PRODUCER, _producer(SECRET)),)),
    "a SUBSCRIBE behind a second type": Case(
        (_twice(Kind.SUBSCRIBE, data(1, SECRET) + _body(subscribe(4, topic="t"))[3:]),)
    ),
    "a credential behind a second type": Case(
        (_twice(Kind.AUTH_RESPONSE, _body(auth_response(b"bob's token"))),), Mode.VERIFY
    ),
    "a CONNECT behind a second type": Case(
        (_twice(Kind.CONNECT, data(1, b"v") + data(3, b"bob's token") + data(5, b"token")),)
    ),
    "a second type at the end": Case(
        (frame(command(Kind.UNSUBSCRIBE, number(1, 1) + number(2, 9)) + number(1, 76)),)
    ),
    "a credential that is verified, and another one": Case(
        (_bodies(Kind.AUTH_RESPONSE, _token(b"alice's newer token"), data(2, data(1, b"token"))),),
        Mode.VERIFY_AND_FORWARD,
    ),
    "a credential within, twice": Case(
        (_bodies(Kind.AUTH_RESPONSE, _token(b"alice's newer token") + data(2, data(1, b"token"))),),
        Mode.VERIFY_AND_FORWARD,
    ),
    "an open producer's id for another topic": Case(
        (producer(1, request=50, topic="another"), send(1, 1))
    ),
    "an open consumer's id for another topic": Case((subscribe(1, request=50, topic="another"),)),
    "an open consumer's id for another subscription": Case(
        (frame(command(Kind.SUBSCRIBE, data(1, TOPIC) + data(2, b"another") + _CONSUMER)),)
    ),
    "permits of a consumer whose id was refused another topic": Case(
        (subscribe(1, request=50, topic=SECRET.decode()), _flow(1)), ceiling=1
    ),
    "permits of a consumer that was asked for twice": Case(
        (subscribe(2, request=50), subscribe(2, request=51)),
        ceiling=1,
        responses=(error(51), success(50)),
        after=(_flow(2),),
    ),
    "a topic that ends with a slash": Case((producer(5, request=50, topic="t/"),)),
    "a topic with a slash in front": Case((producer(5, request=50, topic="//t"),)),
    "a MESSAGE whose nested length cuts a number": Case(
        (
            frame(
                number(1, Kind.MESSAGE) + data(Kind.MESSAGE, number(1, 1) + _CUT_ID),
                _PAYLOAD,
            ),
        )
    ),
    "a domain in capital letters": Case(
        (producer(5, request=50, topic="PERSISTENT://public/default/t"),)
    ),
    "a domain with a letter that is another one in capitals": Case(
        (producer(5, request=50, topic="per\u017fistent://public/default/t"),)
    ),
}

ALIKE_BEFORE = {
    "an unknown field in front": Case(
        (frame(data(100, b"\x08\x12") + command(Kind.PRODUCER, _producer(SECRET))),)
    ),
    "the type behind its field": Case(
        (frame(data(Kind.PRODUCER, _producer(SECRET)) + number(1, Kind.PING)),)
    ),
    "two bodies, the forbidden one first": Case(
        (_bodies(Kind.PRODUCER, _producer(SECRET), _producer(TOPIC)),)
    ),
    "two bodies that are merged or replaced": Case(
        (_bodies(Kind.PRODUCER, _producer(TOPIC), number(2, 6) + number(3, 51)),)
    ),
    "two requests in a CLOSE_PRODUCER": Case(
        (_bodies(Kind.CLOSE_PRODUCER, number(1, 1) + number(2, 9), number(1, 7) + number(2, 8)),)
    ),
    "a type of more than 32 bits": Case(
        (frame(number(1, (1 << 32) + Kind.PRODUCER) + data(Kind.PRODUCER, _producer(SECRET))),)
    ),
    "a topic that is not UTF-8": Case(
        (frame(command(Kind.LOOKUP, data(1, b"\xff/n/x") + number(2, 9))),)
    ),
    "a SEND whose number is cut by its payload": Case(
        (frame(number(1, Kind.SEND) + data(Kind.SEND, _SEND + b"\x18"), _PAYLOAD),)
    ),
    "a nested length that runs out into the payload": Case(
        (
            frame(
                number(1, Kind.SEND) + data(Kind.SEND, _SEND + b"\x4a\x20\x08\x01\x10\x02"),
                number(3, 1000) + _PAYLOAD,
            ),
        )
    ),
    "a SEND of 2^31 messages": Case((send(1, 7, num_messages=(1 << 31) - 1),)),
    "a group": Case((frame(command(Kind.PRODUCER, _producer(TOPIC) + b"\x63\x64")),)),
    "an empty topic": Case((producer(5, request=50, topic=""),)),
}


def _played(case: Case) -> Record:
    services = WatchedServices(case.ceiling)
    record = Record(House(), listener(services, case.mode, limited=case.limited), services)
    session = record.watched.session
    record.say(Direction.TO_BROKER, producer(1, request=1))
    record.opens((Action.PRODUCE, 1))
    record.say(Direction.TO_CLIENT, to_session(session, producer_success(1)))
    record.say(Direction.TO_BROKER, subscribe(1, request=2))
    record.opens((Action.CONSUME, 1))
    record.say(Direction.TO_CLIENT, to_session(session, success(2)))
    for said in case.frames:
        if not record.watched.over:
            record.say(Direction.TO_BROKER, said)
    for said in case.responses:
        record.opens((Action.CONSUME, 2))
        record.say(Direction.TO_CLIENT, to_session(session, said))
    for said in case.after:
        record.say(Direction.TO_BROKER, said)
    return record


@pytest.mark.parametrize("name", [*CASES, *ALIKE_BEFORE])
def test_a_frame_reaches_no_broker_or_is_understood_in_one_way(oracles: Oracles, name: str) -> None:
    played = _played((CASES | ALIKE_BEFORE)[name]).played()
    assert played.steps[0].to_broker
    assert [str(finding) for finding in judged(oracles, played)] == []
