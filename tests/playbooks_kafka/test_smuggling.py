"""A request that is one thing to the gateway and another to a broker."""

from __future__ import annotations

import struct

import pytest

from gateway.errors import PeerError
from gateway.wire.account import Right
from gateway.wire.kafka.pieces import HEAD
from gateway.wire.kafka.walk import unsigned

from .frames import PRODUCE, asked, batch, produce, produced
from .script import KafkaServices, Play

TOPICS = 639
"""What a broker reads in the bytes 128 and 5; the first alone says 127."""


def hidden(version: int) -> bytes:
    """Return a request of 639 topics, one of which is `secret`, in which the gateway could see 127
    topics, of which the first is pub1 and its batch has all the others."""
    lead = b"ub1" + b"\2" + bytes(4) + bytes(3)  # of the first name that a broker reads
    fill = b"\2x\1\0"
    secret = b"\7secret\2" + bytes(4) + unsigned(HEAD + 41) + batch(3, 40) + b"\0\0"
    for size in range(16_000, 40_000):
        filler = unsigned(size + 1) + b"z" * size + b"\1\0"
        first = bytes(111 - len(lead) - HEAD).replace(b"\0", b"y") + b"\1\0"
        rest = fill * (TOPICS - 4 - 126) + b"\2x\1\1\x7f\2"
        body = first + secret + filler + rest
        head = struct.pack(">qiib40xi", 0, HEAD - 12 + len(body), 0, 2, 1)
        lengths = unsigned(HEAD + len(body) + 1)
        if max(lengths[:-1], default=0) >= 128 and _is_text(lengths + head):
            break
    else:
        raise AssertionError("no length is a text")
    topics = b"\x80\5pub1\2" + bytes(4) + lengths + head + body + b"\0\0" + b"\5pub1\1\0" * 126
    said = struct.pack(">hhih", PRODUCE, version, 7, 6) + b"client" + b"\0\0"
    said += struct.pack(">hi", 1, 1000) + topics + b"\0"
    return struct.pack(">i", len(said)) + said


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("version", [9, 12])
def test_no_topic_is_hidden_behind_a_number_of_topics_of_two_bytes(version: int) -> None:
    services = KafkaServices()
    services.forbidden = {(Right.PRODUCE, "secret")}
    play = Play(services)
    play.client(produce(version, 1, pub1=batch(1)))
    play.broker(produced(version, 1, pub1=0))
    said = hidden(version)
    reached = b""
    try:
        reached = play.client(said)
    except PeerError:
        return  # what is beside the topics is no request
    assert "secret" not in {it["Name"] for it in asked(reached)["TopicData"]}
    assert reached != said
