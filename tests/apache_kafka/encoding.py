"""Random bodies of each message and version, written by its schema."""

from __future__ import annotations

import struct
from collections.abc import Collection
from random import Random

from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.walk import SIZES, unsigned

UNKNOWN_TAG = 99
"""A tag that no message has."""


class Body:
    """Writes one body. `data`: what is written. `noted`: names and bytes of wanted fields, in the
    order in which they stand."""

    def __init__(
        self, version: int, *, flexible: bool, wanted: Collection[str], random: Random
    ) -> None:
        self.data = bytearray()
        self.noted: list[tuple[str, bytes]] = []
        self._version = version
        self._flexible = flexible
        self._wanted = wanted
        self._random = random

    def struct(self, fields: tuple[Field, ...]) -> None:
        """Write a struct."""
        present = list(of(fields, self._version))
        for it in present:
            if it.tagged > self._version:
                self._field(it)
        if self._flexible:
            self._tags([it for it in present if it.tagged <= self._version])

    def _field(self, it: Field) -> None:
        start = len(self.data)
        self._value(it)
        if it.name in self._wanted:
            self.noted.append((it.name, bytes(self.data[start:])))

    def _value(self, it: Field) -> None:
        kind = it.kind.removeprefix("[]")
        is_null = it.nullable <= self._version and self._random.random() < 0.3
        if it.kind.startswith("[]"):
            count = -1 if is_null else self._random.randrange(4)
            self._length(count, 4)
            for _ in range(count):
                self._plain(it, kind)
        elif kind == "{}" and it.nullable <= self._version:
            self.data.append(255 if is_null else 1)
            if not is_null:
                self.struct(it.fields)
        elif is_null:
            self._length(-1, 2 if kind == "string" else 4)
        else:
            self._plain(it, kind)

    def _plain(self, it: Field, kind: str) -> None:
        if kind == "{}":
            self.struct(it.fields)
        elif kind == "bool":
            self.data.append(self._random.randrange(2))
        elif kind == "float64":
            self.data += struct.pack(">d", self._random.random())
        elif kind in SIZES:
            self.data += self._random.randbytes(SIZES[kind])
        else:
            text = "".join(self._random.choices("abcdefghijklmnopqrstuvwxyz.-", k=200))
            length = self._random.choice([0, 1, 7, 126, 127, 128, 200])
            self._length(length, 2 if kind == "string" else 4)
            self.data += text[:length].encode()

    def _length(self, length: int, size: int) -> None:
        self.data += unsigned(length + 1) if self._flexible else length.to_bytes(size, signed=True)

    def _tags(self, known: list[Field]) -> None:
        chosen = [it for it in sorted(known, key=lambda it: it.tag) if self._random.random() < 0.7]
        unknown = self._random.random() < 0.2
        self.data += unsigned(len(chosen) + unknown)
        for it in chosen:
            before, self.data = self.data, bytearray()
            self._field(it)
            content, self.data = self.data, before
            self.data += unsigned(it.tag) + unsigned(len(content)) + content
        if unknown:
            self.data += unsigned(UNKNOWN_TAG) + unsigned(3) + b"new"


def body(schema: Schema, version: int, wanted: Collection[str], seed: int) -> Body:
    """Return a random body."""
    made = Body(
        version, flexible=version >= schema.flexible, wanted=wanted, random=Random(f"{seed}")
    )
    made.struct(schema.fields)
    return made
