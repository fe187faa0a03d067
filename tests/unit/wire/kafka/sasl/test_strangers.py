"""Whatever strangers say is refused, or is a violation, and never a bug."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import PeerError
from gateway.wire.contract import Credential, Denial
from gateway.wire.kafka.frames import request
from gateway.wire.kafka.sasl.client import Proving, client
from gateway.wire.kafka.sasl.handshake import (
    SASL_HANDSHAKE,
    mechanism_of,
    read_answer,
    read_offer,
    token_of,
)
from gateway.wire.kafka.sasl.mechanisms import METHODS
from gateway.wire.scram import SCRAM_HASHES
from tests.unit.wire.kafka.sasl.doubles import NONCE, verified

PIECES = [
    *(b"n,,", b"y,,", b"p=x,,", b"n,a=alice,", b"n=alice", b"n=carol", b",", b"=", b"=2C", b"\0"),
    *(b"r=abc", b"r=", b"c=biws", b"p=", b"AAAA", b"=" * 2, b"\x01", b"auth=Bearer ", b"a.b.c"),
    *(b"x=1", b"alice", b"wrong", b"s=c2FsdHNhbHQ=", b"i=4096", b"i=0", b"v=", b"e=", b"\xff"),
    *(NONCE.encode(), b"r=abc" + NONCE.encode()),
]
TOKENS = st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)


@given(st.sampled_from(list(METHODS)), TOKENS, TOKENS)
def test_a_stranger_is_nobody(mechanism: str, first: bytes, second: bytes) -> None:
    outcome = verified(mechanism, first, second).outcome
    assert isinstance(outcome, Denial)


@given(st.sampled_from(list(SCRAM_HASHES)), TOKENS, TOKENS)
def test_a_broker_that_is_a_stranger_is_not_believed(
    mechanism: str, challenge: bytes, response: bytes
) -> None:
    proving = client(mechanism, Credential("basic", b"alice:secret"), nonce="abc")
    next(proving)
    with pytest.raises(PeerError):
        _say(proving, challenge, response)


def _say(proving: Proving, *responses: bytes) -> None:
    for it in responses:
        proving.send(it)


BODIES = st.binary(max_size=60)


@given(st.sampled_from([(17, 0), (17, 1), (36, 0), (36, 1), (36, 2)]), BODIES)
def test_a_request_of_a_stranger_is_a_violation_at_worst(api: tuple[int, int], body: bytes) -> None:
    key, version = api
    frame = bytes(4) + struct.pack(">hhih", key, version, 7, -1) + body
    with suppress(PeerError):
        (mechanism_of if key == SASL_HANDSHAKE else token_of)(request(frame), frame)


@given(st.integers(0, 2), BODIES)
def test_an_answer_of_a_stranger_is_a_violation_at_worst(version: int, body: bytes) -> None:
    with suppress(PeerError):
        read_answer(version, bytes(8) + body)
    with suppress(PeerError):
        read_offer(min(version, 1), bytes(8) + body)
