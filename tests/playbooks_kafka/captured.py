"""Frames of a real cluster, which `tests.apache_kafka.capture` has written down."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parent / "captured.tsv"

TOPIC, GROUP = "captured", "a-group"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
"""An id as Kafka writes them."""


class Captured(NamedTuple):
    """A request and its response."""

    key: int
    version: int
    request: bytes
    response: bytes


@cache
def captured() -> tuple[Captured, ...]:
    """Return all of the file."""
    lines = [it.split("\t") for it in FILE.read_text().splitlines() if not it.startswith("#")]
    return tuple(
        Captured(int(key), int(version), bytes.fromhex(request), bytes.fromhex(response))
        for key, version, request, response in lines
    )
