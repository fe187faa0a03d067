"""Which versions clients are offered: those that both the broker and the gateway know.

What only brokers and controllers ask each other is not offered at all. Features of the cluster, and
tagged fields that are not known, stay in the response.

Source: KIP-35 and KIP-511. Since Kafka 4.0 brokers take Produce from version 3 on, and still say
that they take 0: librdkafka compresses only where it sees the old versions (KAFKA-18659). So the
least version of Produce stays as the broker says it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import PRODUCE
from gateway.wire.kafka.frames import API_VERSIONS, Head
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.walk import (
    Found,
    Place,
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
"""What brokers offer to everybody and clients do not get, with the reason."""

OF_PRINCIPALS = frozenset({38, 39, 40, 41, 50, 51})
"""APIs about credentials of whoever asks, and of users: delegation tokens, and those of SCRAM.
Where brokers know the gateway alone, a client would get tokens of the gateway's own principal, so
none of them is offered."""

CLIENT_METRICS = frozenset({71, 72})
"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): a client that is not offered them tells
brokers nothing of itself."""

MOST = 1000
"""APIs of a response; Kafka has some ninety."""

_UNSUPPORTED = struct.pack(">h", UNSUPPORTED_VERSION)

LONGEST_LIBRARY = 64
"""Characters of the name, and of the version, of a client's library; real ones have some 20."""

_LIBRARY = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What both consist of (KIP-511). Brokers refuse others."""

_RANGE = struct.Struct(">hhh")


class Offer(NamedTuple):
    """The versions of one API. `rest`: the tagged fields behind it."""

    key: int
    least: int
    most: int
    rest: bytes


def offered(
    schema: Schema, version: int, frame: bytes, start: int, hidden: Set[int] = frozenset()
) -> bytes:
    """Return a response of ApiVersions whose body begins at `start`, with what the gateway offers.
    Raises `PeerError` if it is torn. `hidden`: further APIs that it does not offer."""
    found, place, flexible = _place(schema, version, frame, start)
    told = _common(frame, place, hidden, flexible=flexible)
    return splice(frame, found, [(place, _listed(told, flexible=flexible))])


def offers_in(
    schema: Schema, version: int, frame: bytes, start: int, hidden: Set[int] = frozenset()
) -> tuple[Offer, ...]:
    """Return what the gateway offers because of such a response. Raises `PeerError`."""
    _, place, flexible = _place(schema, version, frame, start)
    told = _common(frame, place, hidden, flexible=flexible)
    return tuple(it._replace(rest=b"\0") for it in told)


def as_offered(version: int, offers: Sequence[Offer]) -> bytes:
    """Return the body of a response that offers this. It names no features of the cluster, which
    clients ask for again when they are known."""
    known = api(API_VERSIONS)
    assert known is not None
    flexible = version >= known.response.flexible
    throttle = bytes(4) if version >= 1 else b""
    return bytes(2) + _listed(offers, flexible=flexible) + throttle + (b"\0" if flexible else b"")


def _place(schema: Schema, version: int, frame: bytes, start: int) -> tuple[Found, Place, bool]:
    """Return where a response lists APIs. A broker that does not know the version says so in
    version 0."""
    if frame[start : start + 2] == _UNSUPPORTED:
        version = 0
    found = plan(schema, version, frozenset({"ApiKeys"})).walk(frame, start, len(frame))
    (place,) = found.places
    return found, place, version >= schema.flexible


def _common(frame: bytes, place: Place, hidden: Set[int], *, flexible: bool) -> list[Offer]:
    listed = _read(frame, place.start, place.end, flexible)
    return [ours for it in listed if it.key not in hidden and (ours := _ours(it))]


def _listed(offers: Sequence[Offer], *, flexible: bool) -> bytes:
    length = unsigned(len(offers) + 1) if flexible else struct.pack(">i", len(offers))
    return length + b"".join(_RANGE.pack(*it[:3]) + (it.rest if flexible else b"") for it in offers)


def library_of(schema: Schema, head: Head, frame: bytes) -> str:
    """Return the client's library and its version, as a request of ApiVersions names them; empty if
    it does not. Raises `PeerError` if it is torn."""
    wanted = frozenset({"ClientSoftwareName", "ClientSoftwareVersion"})
    found = plan(schema, head.version, wanted).walk(frame, head.body, len(frame))
    flexible = head.version >= schema.flexible
    texts = [text_at(frame, place, flexible=flexible) or b"" for place in found.places]
    readable = [it[:LONGEST_LIBRARY].decode("ascii", errors="replace") for it in texts]
    return " ".join(it for it in readable if _LIBRARY.fullmatch(it))


def unsupported() -> bytes:
    """Return the body, of version 0, for a version of ApiVersions that the gateway does not know:
    clients ask again with one that it names."""
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
    """Return whether clients may ask this API."""
    known = api(key)
    return known is not None and known.is_for_clients and key not in HIDDEN


def _ours(it: Offer) -> Offer | None:
    """Return what both know; None: nothing, or nothing that clients may ask."""
    known = api(it.key)
    if known is None or not is_offered(it.key):
        return None
    most = min(it.most, known.request.last)
    if most < max(it.least, known.request.first):
        return None
    least = it.least if it.key == PRODUCE else max(it.least, known.request.first)
    return it._replace(least=least, most=most)
