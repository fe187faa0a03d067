"""Names as brokers write them into ZooKeeper and into statistics: URL-encoded as Java does it."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import unquote_plus


def decoded(name: str) -> str:
    """Return a name as people write it; as it is if it was not encoded like this."""
    with suppress(UnicodeDecodeError):
        return unquote_plus(name, errors="strict")
    return name
