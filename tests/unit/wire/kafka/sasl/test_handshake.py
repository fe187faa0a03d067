"""The requests and answers of SASL, in all versions, and torn ones."""

from __future__ import annotations

import math
import struct

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.frames import Head, request
from gateway.wire.kafka.sasl import handshake
from gateway.wire.kafka.sasl.exchange import LARGEST_TOKEN
from gateway.wire.kafka.sasl.handshake import (
    ILLEGAL_SASL_STATE,
    LONGEST_MS,
    SASL_AUTHENTICATE,
    SASL_AUTHENTICATION_FAILED,
    SASL_HANDSHAKE,
    UNSUPPORTED_SASL_MECHANISM,
    Answered,
    Offered,
    ask_for,
    bare,
    failed,
    lifetime_ms,
    mechanism_of,
    misplaced,
    offer,
    read_answer,
    read_bare,
    read_offer,
    response,
    show,
    token_of,
)
from gateway.wire.kafka.schema import api

OFFERED = ("PLAIN", "SCRAM-SHA-256")


def _versions(key: int) -> range:
    found = api(key)
    assert found is not None
    assert (found.request.first, found.request.last) == (found.response.first, found.response.last)
    return range(found.request.first, found.request.last + 1)


HANDSHAKES = pytest.mark.parametrize("version", _versions(SASL_HANDSHAKE))
AUTHENTICATES = pytest.mark.parametrize("version", _versions(SASL_AUTHENTICATE))
CLIENTS = pytest.mark.parametrize("client", [None, b"", b"app"])


def head(key: int, version: int) -> Head:
    return Head(key, version, 7, None, 0)


@HANDSHAKES
@CLIENTS
def test_the_mechanism_of_a_request_is_read_as_it_was_written(
    version: int, client: bytes | None
) -> None:
    frame = ask_for("SCRAM-SHA-256", version, 7, client)
    found = request(frame)
    assert found[:4] == (SASL_HANDSHAKE, version, 7, client)
    assert mechanism_of(found, frame) == "SCRAM-SHA-256"


@AUTHENTICATES
@CLIENTS
@pytest.mark.parametrize("token", [b"", b"\0alice\0secret", bytes(LARGEST_TOKEN)])
def test_the_token_of_a_request_is_read_as_it_was_written(
    version: int, client: bytes | None, token: bytes
) -> None:
    frame = show(token, version, 7, client)
    found = request(frame)
    assert found[:4] == (SASL_AUTHENTICATE, version, 7, client)
    assert token_of(found, frame) == token


def test_requests_have_the_bytes_of_the_protocol_guide() -> None:
    assert ask_for("PLAIN", 1, 7, b"a") == bytes.fromhex(
        "00000012 0011 0001 00000007 0001 61 0005 504c41494e"
    )
    assert show(b"tok", 1, 7, None) == bytes.fromhex(
        "00000011 0024 0001 00000007 ffff 00000003 746f6b"
    )
    assert show(b"tok", 2, 7, None) == bytes.fromhex(
        "00000010 0024 0002 00000007 ffff 00 04 746f6b 00"
    )


def test_answers_have_the_bytes_of_the_protocol_guide() -> None:
    assert offer(head(SASL_HANDSHAKE, 1), ["PLAIN"]) == bytes.fromhex(
        "00000011 00000007 0000 00000001 0005 504c41494e"
    )
    first = bytes.fromhex("0000000f 00000007 0000 ffff 00000003 746f6b")
    assert response(head(SASL_AUTHENTICATE, 0), b"tok", 5) == first
    second = bytes.fromhex("00000017 00000007 0000 ffff 00000003 746f6b 0000000000000005")
    assert response(head(SASL_AUTHENTICATE, 1), b"tok", 5) == second
    third = bytes.fromhex("00000015 00000007 00 0000 00 04 746f6b 0000000000000005 00")
    assert response(head(SASL_AUTHENTICATE, 2), b"tok", 5) == third


@HANDSHAKES
@pytest.mark.parametrize("error", [0, UNSUPPORTED_SASL_MECHANISM])
def test_an_offer_is_read_as_it_was_written(version: int, error: int) -> None:
    for mechanisms in ((), OFFERED):
        frame = offer(head(SASL_HANDSHAKE, version), mechanisms, error)
        assert read_offer(version, frame) == Offered(error, mechanisms)


@AUTHENTICATES
@pytest.mark.parametrize("data", [b"", b"r=abc", bytes(200)])
@pytest.mark.parametrize("lifetime", [0, 1, LONGEST_MS])
def test_an_answer_is_read_as_it_was_written(version: int, data: bytes, lifetime: int) -> None:
    frame = response(head(SASL_AUTHENTICATE, version), data, lifetime)
    assert read_answer(version, frame) == Answered(0, "", data, lifetime if version else 0)


@AUTHENTICATES
def test_a_refusal_says_nothing_else(version: int) -> None:
    found = read_answer(version, failed(head(SASL_AUTHENTICATE, version)))
    assert found == Answered(SASL_AUTHENTICATION_FAILED, "Authentication failed", b"", 0)


@AUTHENTICATES
def test_a_token_that_may_not_come_is_refused(version: int) -> None:
    found = read_answer(version, misplaced(head(SASL_AUTHENTICATE, version)))
    assert found == Answered(ILLEGAL_SASL_STATE, "", b"", 0)


@HANDSHAKES
def test_a_mechanism_that_may_not_come_is_refused(version: int) -> None:
    found = read_offer(version, misplaced(head(SASL_HANDSHAKE, version)))
    assert found == Offered(ILLEGAL_SASL_STATE, ())


@pytest.mark.parametrize(
    ("left", "milliseconds"),
    [
        pytest.param(math.inf, 0, id="for ever"),
        pytest.param(1.5, 1500, id="some time"),
        pytest.param(0.0, 1, id="over, which is not for ever"),
        pytest.param(-5.0, 1, id="long over"),
        pytest.param(1e300, LONGEST_MS, id="longer than there is time"),
    ],
)
def test_a_credential_is_good_for_as_long_as_it_is(left: float, milliseconds: int) -> None:
    assert lifetime_ms(left) == milliseconds


def test_a_bare_token_has_its_size_before_it() -> None:
    assert bare(b"tok") == b"\0\0\0\x03tok"
    assert bare(b"") == bytes(4)
    assert read_bare(bare(b"tok")) == b"tok"


# -- torn ones --


def _read(key: int, frame: bytes) -> object:
    return (mechanism_of if key == SASL_HANDSHAKE else token_of)(request(frame), frame)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(ask_for("PLAIN", 1, 7, None)[:-1], id="a torn name"),
        pytest.param(ask_for("PLAIN", 1, 7, None) + b"x", id="more than the name"),
        pytest.param(ask_for("P" * 65, 1, 7, None), id="a long name"),
        pytest.param(ask_for("PLÄIN", 1, 7, None), id="a name beyond ASCII"),
        pytest.param(ask_for("", 1, 7, None)[:-2] + b"\xff\xff", id="no name"),
        pytest.param(ask_for("PLAIN", 2, 7, None), id="a version that there is not"),
        pytest.param(show(b"tok", 1, 7, None)[:-1], id="a torn token"),
        pytest.param(show(b"tok", 1, 7, None) + b"x", id="more than the token"),
        pytest.param(show(b"", 1, 7, None)[:-4] + b"\xff" * 4, id="no token"),
        pytest.param(show(b"", 1, 7, None)[:-4] + b"\x7f\xff\xff\xff", id="a token of 2 GiB"),
        pytest.param(show(bytes(LARGEST_TOKEN + 1), 1, 7, None), id="a huge token"),
        pytest.param(show(b"tok", 2, 7, None)[:-1], id="no tags"),
        pytest.param(show(b"tok", 2, 7, None)[:-1] + b"\x01\x00\x05x", id="a torn tag"),
        pytest.param(show(b"", 2, 7, None)[:-2] + b"\0\0", id="null"),
        pytest.param(show(b"tok", 3, 7, None), id="a later version"),
    ],
)
def test_a_torn_request_is_a_violation(frame: bytes) -> None:
    (key,) = struct.unpack_from(">h", frame, 4)
    with pytest.raises(PeerError):
        _read(key, frame)


def test_a_tag_that_is_not_known_is_stepped_over() -> None:
    frame = show(b"tok", 2, 7, None)[:-1] + b"\x01\x63\x03new"
    assert token_of(request(frame), frame) == b"tok"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(struct.pack(">hi", 0, 1), id="a torn list"),
        pytest.param(struct.pack(">hi", 0, 2**31 - 1), id="a list of two billions"),
        pytest.param(struct.pack(">hi", 0, -1), id="no list"),
        pytest.param(struct.pack(">hih", 0, 1, 5) + b"PLAI", id="a torn name"),
        pytest.param(struct.pack(">hih", 0, 1, 5) + b"PLAIN!", id="more than the list"),
        pytest.param(struct.pack(">hih", 0, 1, 2) + b"\xc3\xa4", id="a name beyond ASCII"),
        pytest.param(struct.pack(">hih", 0, 1, 200) + b"x" * 200, id="a long name"),
    ],
)
def test_a_torn_offer_of_a_broker_is_a_violation(body: bytes) -> None:
    frame = struct.pack(">ii", 4 + len(body), 7) + body
    with pytest.raises(PeerError):
        read_offer(1, frame)


@AUTHENTICATES
def test_a_torn_answer_of_a_broker_is_a_violation(version: int) -> None:
    frame = response(head(SASL_AUTHENTICATE, version), b"data", 5)
    for end in range(8, len(frame)):
        with pytest.raises(PeerError):
            read_answer(version, frame[:end])
    with pytest.raises(PeerError):
        read_answer(version, frame + b"x")
    with pytest.raises(PeerError):
        read_answer(version, response(head(SASL_AUTHENTICATE, version), bytes(LARGEST_TOKEN + 1)))


def test_a_lifetime_below_zero_is_none() -> None:
    frame = response(head(SASL_AUTHENTICATE, 1), b"", -5)
    assert read_answer(1, frame).lifetime_ms == 0


def test_a_bare_token_that_is_huge_is_a_violation() -> None:
    with pytest.raises(PeerError):
        read_bare(bare(bytes(LARGEST_TOKEN + 1)))


def test_no_token_is_shown_in_a_text() -> None:
    assert "secret" not in repr(handshake.Answered(0, "", b"secret", 0))
