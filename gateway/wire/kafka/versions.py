"""The API versions that clients are offered: those that both the broker and the gateway know.

APIs that only brokers and controllers use among themselves are not offered. The features of the
cluster that a response states, and unknown tagged fields, are not changed.

Source: KIP-35 and KIP-511. Since Kafka 4.0 brokers accept Produce from version 3 on, and still
advertise version 0: librdkafka compresses only where it sees the old versions (KAFKA-18659). So
does the gateway.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.frames import API_VERSIONS, Head
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.walk import (
    Place,
    Walk,
    over_tags,
    plan,
    read_unsigned,
    splice,
    text_at,
    unsigned,
)

UNSUPPORTED_VERSION = 35

HIDDEN = {
    80: "administrators tell addresses of controllers, which nobody behind a gateway can know",
    81: "administrators name controllers by it too",
    **dict.fromkeys(range(83, 88), "brokers keep the state of share groups by it"),
}
"""APIs that brokers offer to everybody and the gateway does not, by key, with the reason."""

OF_PRINCIPALS = frozenset({38, 39, 40, 41, 50, 51})
"""APIs about credentials of the requesting principal and of users: delegation tokens, and SCRAM
credentials. Where brokers know all clients by the gateway's principal, a client would get tokens of
that principal, so the gateway does not offer them."""

CLIENT_METRICS = frozenset({71, 72})
"""GetTelemetrySubscriptions and PushTelemetry (KIP-714). A client that is not offered them sends
brokers no metrics of its own."""

MOST = 1000
"""The most APIs in a response to ApiVersions; Kafka has some ninety."""

_UNSUPPORTED = struct.pack(">h", UNSUPPORTED_VERSION)

LONGEST_LIBRARY = 64
"""The most characters of a client library's name, and of its version; real ones have some 20."""

_LIBRARY = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""The form of a library's name and version (KIP-511). Brokers refuse others."""

_RANGE = struct.Struct(">hhh")


class Offer(NamedTuple):
    """The version range of one API. `rest`: the encoded tagged fields that follow the range."""

    key: int
    least: int
    most: int
    rest: bytes


def offered(
    schema: Schema, version: int, frame: bytes, start: int, hidden: Set[int] = frozenset()
) -> bytes:
    """Return a broker's response to ApiVersions, whose body begins at `start`, reduced to the APIs
    and versions that the gateway offers. `hidden`: the keys of further APIs that are not offered.
    Raises `PeerError` if the response is truncated."""
    walk, place, flexible = _place(schema, version, frame, start)
    offers = _common(frame, place, hidden, flexible=flexible)
    return splice(frame, walk, [(place, _listed(offers, flexible=flexible))])


def offers_in(
    schema: Schema, version: int, frame: bytes, start: int, hidden: Set[int] = frozenset()
) -> tuple[Offer, ...]:
    """Return the version ranges that the gateway offers, given a broker's response to ApiVersions;
    the arguments are those of `offered`. Raises `PeerError` if the response is truncated."""
    _, place, flexible = _place(schema, version, frame, start)
    offers = _common(frame, place, hidden, flexible=flexible)
    return tuple(offer._replace(rest=b"\0") for offer in offers)


def as_offered(version: int, offers: Sequence[Offer]) -> bytes:
    """Return the body of an ApiVersions response with these version ranges. The response states no
    features of the cluster: clients send ApiVersions again once they are authenticated."""
    known = api(API_VERSIONS)
    assert known is not None
    flexible = version >= known.response.flexible
    throttle = bytes(4) if version >= 1 else b""
    return bytes(2) + _listed(offers, flexible=flexible) + throttle + (b"\0" if flexible else b"")


def _place(schema: Schema, version: int, frame: bytes, start: int) -> tuple[Walk, Place, bool]:
    """Return the walk over a response, where it lists APIs, and whether it is flexible. A broker
    that does not know the requested version responds in version 0."""
    if frame[start : start + 2] == _UNSUPPORTED:
        version = 0
    walk = plan(schema, version, frozenset({"ApiKeys"})).walk(frame, start, len(frame))
    (place,) = walk.places
    return walk, place, version >= schema.flexible


def _common(frame: bytes, place: Place, hidden: Set[int], *, flexible: bool) -> list[Offer]:
    listed = _read(frame, place.start, place.end, flexible)
    return [ours for offer in listed if offer.key not in hidden and (ours := _ours(offer))]


def _listed(offers: Sequence[Offer], *, flexible: bool) -> bytes:
    length = unsigned(len(offers) + 1) if flexible else struct.pack(">i", len(offers))
    return length + b"".join(
        _RANGE.pack(*offer[:3]) + (offer.rest if flexible else b"") for offer in offers
    )


def library_of(schema: Schema, head: Head, frame: bytes) -> str:
    """Return the client's library and its version, separated by a space, as an ApiVersions request
    states them; empty if it states neither. Raises `PeerError` if the request is truncated."""
    wanted = frozenset({"ClientSoftwareName", "ClientSoftwareVersion"})
    walk = plan(schema, head.version, wanted).walk(frame, head.body, len(frame))
    flexible = head.version >= schema.flexible
    texts = [text_at(frame, place, flexible=flexible) or b"" for place in walk.places]
    readable = [text[:LONGEST_LIBRARY].decode("ascii", errors="replace") for text in texts]
    return " ".join(text for text in readable if _LIBRARY.fullmatch(text))


def unsupported() -> bytes:
    """Return the body of the response to an ApiVersions request whose version the gateway does not
    know. The response has version 0, and lists the known versions, so that the client retries with
    one of them."""
    known = api(API_VERSIONS)
    assert known is not None
    own = _RANGE.pack(API_VERSIONS, known.request.first, known.request.last)
    return struct.pack(">hi", UNSUPPORTED_VERSION, 1) + own


def _read(frame: bytes, at: int, end: int, flexible: bool) -> Iterator[Offer]:  # noqa: FBT001
    if flexible:
        count, at = read_unsigned(frame, at, end)
        count -= 1
    else:
        count, at = int.from_bytes(frame[at : at + 4], signed=True), at + 4
    if count > MOST:
        raise PeerError(f"{count} APIs")
    for _ in range(count):
        key, least, most = _RANGE.unpack_from(frame, at)
        at += _RANGE.size
        until = over_tags(frame, at, end) if flexible else at
        yield Offer(key, least, most, frame[at:until])
        at = until


def is_offered(key: int) -> bool:
    """Return whether the gateway offers the API with this key to clients."""
    known = api(key)
    return known is not None and known.is_for_clients and key not in HIDDEN


def _ours(offer: Offer) -> Offer | None:
    """Return the versions that broker and gateway both know; None if there are none, or the API is
    not for clients."""
    known = api(offer.key)
    if known is None or not is_offered(offer.key):
        return None
    most = min(offer.most, known.request.last)
    if most < max(offer.least, known.request.first):
        return None
    return offer._replace(least=max(offer.least, known.request.first), most=most)
