"""Frames that real clients and servers of TubeMQ sent to each other.

`vectors.tsv` has them as they were captured, on loopback, between a master and two brokers of
version 2.4 and the clients in Java, Go and C++: of requests what clients had sent, of replies what
servers had.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gateway.wire.tubemq.frames import HEAD, TOKEN

_FILE = Path(__file__).with_name("vectors.tsv")


class Vector(NamedTuple):
    """One captured frame. `sender`: java, go, cpp or server. `name`: what it is. `listener`: master
    or the broker, b1 or b2."""

    sender: str
    is_request: bool
    name: str
    listener: str
    frame: bytes


@cache
def vectors() -> tuple[Vector, ...]:
    """Return all of them."""
    with _FILE.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return tuple(
        Vector(
            row["from"], row["kind"] == "request", row["rpc"], row["listener"],
            bytes.fromhex(row["hex"]),
        )
        for row in rows
    )  # fmt: skip


def vector(name: str, sender: str = "java") -> Vector:
    """Return the first frame of this name and sender."""
    return next(it for it in vectors() if it.name == name and it.sender == sender)


def in_blocks(frame: bytes) -> Iterator[bytes]:
    """Yield the blocks of a frame."""
    at = HEAD.size
    while at < len(frame):
        (size,) = struct.unpack_from(">I", frame, at)
        yield frame[at + 4 : at + 4 + size]
        at += 4 + size


def in_blocks_of(size: int, frame: bytes) -> bytes:
    """Return a frame with the same envelope in blocks of this size."""
    _, serial, _ = HEAD.unpack_from(frame)
    envelope = b"".join(in_blocks(frame))
    blocks = [envelope[at : at + size] for at in range(0, len(envelope), size)]
    data = b"".join(struct.pack(">I", len(it)) + it for it in blocks)
    return HEAD.pack(TOKEN, serial, len(blocks)) + data
