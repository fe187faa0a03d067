"""Heads of requests and answers, and what ApiVersions offers."""

from __future__ import annotations

import struct

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.frames import (
    API_VERSIONS,
    Head,
    body_of_response,
    correlation,
    request,
    response,
)
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.versions import MOST, UNSUPPORTED_VERSION, offered, unsupported
from gateway.wire.kafka.walk import unsigned
from tests.support.versions import versions

KEPT = b"\x01\x63\x03new"
"""Tagged fields with one that is not known."""


def _known(key: int) -> Api:
    found = api(key)
    assert found is not None
    return found


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _request(key: int, version: int, rest: bytes, client: bytes = b"app") -> bytes:
    return _framed(struct.pack(">hhih", key, version, 7, len(client)) + client + rest)


def test_a_head_has_no_tagged_fields_before_the_first_flexible_version() -> None:
    assert request(_request(3, 8, b"body")) == Head(3, 8, 7, b"app", 17)


def test_a_flexible_head_has_them_and_they_are_stepped_over() -> None:
    frame = _request(3, 9, KEPT + b"body")
    assert frame[request(frame).body :] == b"body"


def test_a_client_may_have_no_name() -> None:
    frame = _framed(struct.pack(">hhih", 3, 8, 7, -1) + b"body")
    assert request(frame) == Head(3, 8, 7, None, 14)


@pytest.mark.parametrize(("key", "version"), [(3, 99), (999, 0), (3, -1)])
def test_the_body_of_what_is_not_known_is_nowhere(key: int, version: int) -> None:
    assert request(_request(key, version, b"")).body == -1


@pytest.mark.parametrize(
    "frame",
    [
        _framed(b""),
        _framed(bytes(9)),
        _framed(struct.pack(">hhih", 3, 9, 7, -2)),
        _framed(struct.pack(">hhih", 3, 9, 7, 100) + b"short"),
        _framed(struct.pack(">hhih", 3, 9, 7, 2000) + bytes(2000)),
        _request(3, 9, b""),
        _request(3, 9, b"\x05"),
        _request(3, 9, b"\x01\x00\x7f"),
    ],
)
def test_a_torn_head_is_a_violation(frame: bytes) -> None:
    with pytest.raises(PeerError):
        request(frame)


@pytest.mark.parametrize("version", [8, 9])
def test_an_answer_has_the_head_of_its_version(version: int) -> None:
    frame = response(_known(3), version, 7, b"body")
    assert correlation(frame) == 7
    assert frame[body_of_response(_known(3), version, frame) :] == b"body"


def test_the_answer_of_api_versions_never_has_tagged_fields_in_its_head() -> None:
    frame = response(_known(API_VERSIONS), 4, 7, b"body")
    assert frame[4:] == struct.pack(">i", 7) + b"body"
    assert body_of_response(_known(API_VERSIONS), 4, frame) == 8


def test_an_answer_without_a_head_is_a_violation() -> None:
    with pytest.raises(PeerError):
        correlation(_framed(b"abc"))


# -- ApiVersions -----------------------------------------------------------------------------------

SCHEMA = _known(API_VERSIONS).response


def _told(version: int, *ranges: tuple[int, int, int]) -> bytes:
    """What a broker answers."""
    flexible = version >= SCHEMA.flexible
    length = unsigned(len(ranges) + 1) if flexible else struct.pack(">i", len(ranges))
    rest = KEPT if flexible else b""
    data = b"".join(struct.pack(">hhh", *it) + rest for it in ranges)
    throttle = bytes(4) if version else b""
    return bytes(2) + length + data + throttle + rest


@pytest.mark.parametrize("version", versions(SCHEMA))
def test_clients_are_offered_what_both_know(version: int) -> None:
    last = _known(1).request.last
    told = _told(version, (1, 0, 99), (3, 5, 7), (18, 0, 4))
    ours = _told(version, (1, 0, last), (3, 5, 7), (18, 0, 4))
    assert offered(SCHEMA, version, told, 0) == ours


@pytest.mark.parametrize(
    "one",
    [
        pytest.param((52, 0, 2), id="of controllers"),
        pytest.param((80, 0, 1), id="of voters"),
        pytest.param((85, 0, 1), id="of brokers"),
        pytest.param((999, 0, 1), id="unknown"),
        pytest.param((1, 90, 99), id="too new"),
    ],
)
def test_others_are_not_offered(one: tuple[int, int, int]) -> None:
    assert offered(SCHEMA, 3, _told(3, one, (3, 0, 1)), 0) == _told(3, (3, 0, 1))


def test_the_least_version_of_produce_is_the_brokers() -> None:
    assert offered(SCHEMA, 0, _told(0, (0, 0, 99)), 0) == _told(0, (0, 0, 13))


def test_more_apis_than_there_can_be_are_a_violation() -> None:
    with pytest.raises(PeerError, match="APIs"):
        offered(SCHEMA, 0, _told(0, *[(1, 0, 1)] * (MOST + 1)), 0)


def test_a_version_that_is_not_known_is_told_the_ones_that_are() -> None:
    last = _known(API_VERSIONS).request.last
    assert unsupported() == struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, last)
