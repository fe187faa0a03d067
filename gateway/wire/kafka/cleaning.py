"""Removes broker addresses from the texts of responses: error messages, and settings of brokers.

Fields that hold only an address are rewritten by `addresses`, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Protocol

from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.walk import Place, as_text, plan, splice, text_at

DESCRIBE_CONFIGS = 32

SETTINGS = frozenset(
    {
        b"advertised.listeners",
        b"controller.quorum.bootstrap.servers",
        b"controller.quorum.voters",
        b"host.name",
        b"listeners",
        b"zookeeper.connect",
    }
)
"""Settings of brokers whose values are addresses. Clients get null instead."""

MESSAGES = frozenset(
    {"ErrorMessage", "AcknowledgeErrorMessage", "BatchIndexErrorMessage", "StatusDetail"}
)
"""Fields with texts of brokers."""
_OF_CONFIGS = MESSAGES | {"Name", "Value"}

LONGEST = 2**15 - 1
"""Bytes of the longest text whose length has two bytes. A text may grow when addresses are
removed."""


class Clean(Protocol):
    """A function that returns a text without the broker addresses in it. `whole`: the function must
    not shorten the text."""

    def __call__(self, text: bytes, *, whole: bool) -> bytes: ...


def cleaned(
    key: int, schema: Schema, version: int, frame: bytes, start: int, clean: Clean
) -> bytes:
    """Return a response, whose body begins at `start`, without the broker addresses in its texts;
    the same object if it has none. `key`: the response's API key. `clean`: removes the addresses
    from one text. Raises `PeerError` if the response is truncated."""
    wanted = _OF_CONFIGS if key == DESCRIBE_CONFIGS else MESSAGES
    if not _has(schema, version, wanted):
        return frame
    flexible = version >= schema.flexible
    walk = plan(schema, version, wanted).walk(frame, start, len(frame))
    changes: list[tuple[Place, bytes]] = []
    name = b""
    for place in walk.places:
        text = text_at(frame, place, flexible=flexible)
        if place.name == "Name":
            name = text or b""
        elif place.name == "Value" and name in SETTINGS:
            changes.append((place, b"\0" if flexible else b"\xff\xff"))
        elif text:
            other = clean(text, whole=place.name == "Value")
            if other != text:
                if not flexible:
                    other = other[:LONGEST].decode(errors="ignore").encode()
                changes.append((place, as_text(other, flexible=flexible)))
    return splice(frame, walk, changes) if changes else frame


@cache
def _has(schema: Schema, version: int, wanted: frozenset[str]) -> bool:
    """Return whether a version has any of these fields."""
    return not wanted.isdisjoint(_names(schema.of(version), version))


def _names(fields: Iterable[Field], version: int) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(of(field.fields, version), version)
