"""The doctor's requests to a Kafka broker: ApiVersions, SASL if the gateway has a credential, then
Metadata.

A broker responds to ApiVersions even if the client is not authenticated. If the broker requires
SASL, and the doctor has no credential to show, it closes the connection when Metadata comes.

Source: the protocol guide of Apache Kafka; KIP-35 for ApiVersions, KIP-152 for SASL and requests
before SASL.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from gateway.config.units import MOST_IDS
from gateway.doctor.asking import Question
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger, read_silence
from gateway.errors import PeerError
from gateway.wire.address import Address, parse_address
from gateway.wire.contract import (
    Credential,
    Dial,
    Dialled,
    Peer,
    Receive,
    Step,
    StepResult,
    Transmit,
)
from gateway.wire.kafka.addresses import METADATA, Node, nodes
from gateway.wire.kafka.authenticating import Rejected, show
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, body_of_response, correlation
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.walk import plan

SPOKEN = "Kafka"
"""The protocol's name, in texts."""

CLIENT = b"gateway-doctor"
"""The client id, by which brokers' logs and metrics name the doctor."""

METADATA_VERSION = 1
"""The first version in which a client can ask for no topic. Every broker knows it."""

LARGEST_ANSWER = 512 * 1024
"""Bytes of a frame: as many brokers as a listener may have ids, with the longest hosts."""

_HEAD = struct.Struct(">hhih")
_RANGE = struct.Struct(">hhh")
_COUNT = struct.Struct(">i")


class Versions(NamedTuple):
    """The versions of an API that a broker supports: the first and the last one."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Broker:
    """The responses of a broker. `versions`: by API key. `metadata`: the addresses of all brokers,
    by id. If there was no Metadata response, it is a `Stranger` in place of them: `CLOSED` if the
    broker requires SASL first. `login`: whether the broker accepts the gateway's credential; None
    if none was shown."""

    versions: Mapping[int, Versions]
    metadata: Mapping[int, Address] | Stranger
    login: Login | Rejected | None = None


class Login(NamedTuple):
    """The gateway's credential, and the SASL mechanism by which a broker gets it."""

    credential: Credential
    mechanism: str


Answer = Broker | Stranger | Unreached


def frame_length(head: bytearray) -> int:
    """Return the whole size of a frame whose first bytes are `head`; 0 if `head` is too short.
    A negative size is read as a size that is too large. See `contract.Entry`."""
    return int.from_bytes(head[: SIZE.size]) + SIZE.size if len(head) >= SIZE.size else 0


def greet(login: Login | None = None) -> Generator[Step, StepResult, Answer]:
    """Send ApiVersions, authenticate by `login` if it is given, send Metadata, and return the
    responses. Raises `PeerError` if a response before that to Metadata is malformed."""
    if not isinstance((yield Dial()), Dialled):
        return Unreached(None)
    yield Transmit(Peer.BROKER, _request(API_VERSIONS, 0))
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        return read_silence(frame)
    versions = read_versions(frame)
    if login is not None:
        outcome = yield from show(login.credential, login.mechanism)
        if isinstance(outcome, Rejected):
            return Broker(versions, Stranger.CLOSED, outcome)
    yield Transmit(Peer.BROKER, _request(METADATA, METADATA_VERSION, _COUNT.pack(0)))
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        return Broker(versions, read_silence(frame), login)
    try:
        return Broker(versions, read_brokers(frame), login)
    except PeerError:
        return Broker(versions, Stranger.STRANGE, login)


def question(login: Login | None = None) -> Question[Broker]:
    """Return the question to a broker. `login`: see `greet`."""
    return Question(partial(greet, login), frame_length, LARGEST_ANSWER)


def known_api(key: int) -> Api:
    """Return the API with this key. The gateway must know it."""
    known = api(key)
    assert known is not None
    return known


def _request(key: int, version: int, body: bytes = b"") -> bytes:
    """Return a request without tagged fields. The API stands for the correlation id, too."""
    rest = _HEAD.pack(key, version, key, len(CLIENT)) + CLIENT + body
    return SIZE.pack(len(rest)) + rest


def read_versions(frame: bytes) -> dict[int, Versions]:
    """Return the versions of each API in a response to ApiVersions 0, by API key. Raises
    `PeerError`."""
    known = known_api(API_VERSIONS)
    start = _body(known, 0, frame)
    walk = plan(known.response, 0, frozenset({"ApiKeys"})).walk(frame, start, len(frame))
    (place,) = walk.places
    ranges = _RANGE.iter_unpack(frame[place.start + _COUNT.size : place.end])
    return {key: Versions(least, most) for key, least, most in ranges}


def read_brokers(frame: bytes) -> dict[int, Address]:
    """Return the addresses of brokers in a response to Metadata, by broker id; at most `MOST_IDS`
    of them. Raises `PeerError`."""
    known = known_api(METADATA)
    start = _body(known, METADATA_VERSION, frame)
    brokers = nodes(known.response, METADATA_VERSION, frame, start)
    return {node.id: _address(node) for node in sorted(brokers)[:MOST_IDS]}


def _body(known: Api, version: int, frame: bytes) -> int:
    if correlation(frame) != known.key:
        raise PeerError("an answer to another request")
    return body_of_response(known, version, frame)


def _address(node: Node) -> Address:
    if node.id < 0:
        raise PeerError(f"a broker with the id {node.id}")
    host = f"[{node.host}]" if ":" in node.host else node.host
    try:
        return parse_address(f"{host}:{node.port}")
    except ValueError as error:
        raise PeerError("a broker at what is no address") from error
