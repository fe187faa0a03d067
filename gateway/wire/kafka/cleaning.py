"""Texts of responses that name brokers: reasons of errors, and brokers' own settings.

Addresses in fields of their own are another matter (`addresses`).
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
"""Settings of brokers whose values are addresses. Clients get none."""

MESSAGES = frozenset(
    {"ErrorMessage", "AcknowledgeErrorMessage", "BatchIndexErrorMessage", "StatusDetail"}
)
"""Texts of brokers."""
_OF_CONFIGS = MESSAGES | {"Name", "Value"}

LONGEST = 2**15 - 1
"""Bytes of a text whose length has two bytes. Without addresses it may be longer than with them."""


class Clean(Protocol):
    """Returns a text without the addresses of brokers. `whole`: it is not made shorter."""

    def __call__(self, text: bytes, *, whole: bool) -> bytes: ...


def cleaned(
    key: int, schema: Schema, version: int, frame: bytes, start: int, clean: Clean
) -> bytes:
    """Return a response whose body begins at `start`, whose texts name no broker. Raises
    `PeerError` if it is torn."""
    wanted = _OF_CONFIGS if key == DESCRIBE_CONFIGS else MESSAGES
    if not _has(schema, version, wanted):
        return frame
    flexible = version >= schema.flexible
    found = plan(schema, version, wanted).walk(frame, start, len(frame))
    changes: list[tuple[Place, bytes]] = []
    name = b""
    for place in found.places:
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
    return splice(frame, found, changes) if changes else frame


@cache
def _has(schema: Schema, version: int, wanted: frozenset[str]) -> bool:
    """Return whether a version has any of these fields."""
    return not wanted.isdisjoint(_names(schema.of(version), version))


def _names(fields: Iterable[Field], version: int) -> Iterator[str]:
    for it in fields:
        yield it.name
        yield from _names(of(it.fields, version), version)
