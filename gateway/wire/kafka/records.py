"""Counts the messages of record batches in a whole frame, without decompression; see `pieces`."""

from __future__ import annotations

from gateway.errors import PeerError
from gateway.wire.kafka import pieces
from gateway.wire.kafka.slicing import CHEAP
from gateway.wire.kafka.walk import Place
from gateway.wire.slices import Slices


def counted(frame: bytes, place: Place, *, flexible: bool, whole: bool) -> Slices[tuple[int, int]]:
    """Return the size in bytes of the batches in a field of a frame, and the number of messages in
    them. `place`: where the field is; it begins with its length, a compact one if the version is
    `flexible`. `whole`: a torn batch is a violation; otherwise the broker may have cut the last
    one, and consumers fetch it again, so it is not counted. Raises `PeerError` for batches that
    cannot be."""
    data, end = bytearray(frame[place.start : place.end]), place.end - place.start
    _, at = pieces.length(data, 0, end, 0 if flexible else 4)
    size, messages, number = end - at, 0, 0
    while at < end:
        number += 1
        if number % CHEAP == 0:
            yield
        length, count = pieces.batch(data, at, end, end - at)
        if length <= 0 or (whole and length > end - at):
            raise PeerError("a batch that is torn")
        messages += count
        at += length
    return size, messages
