"""Turns the text format of Prometheus into OpenMetrics 1.0, chunk by chunk.

Both have the same samples. In OpenMetrics comments name a counter without `_total` and an info
without `_info`, and the text ends with a mark, so that a reader knows a cut one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.telemetry.families import FAMILIES, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MEDIA_TYPE = "application/openmetrics-text"
CONTENT_TYPE = f"{MEDIA_TYPE}; version=1.0.0; charset=utf-8"

_RENAMED = frozenset({Kind.COUNTER, Kind.INFO})


def converted(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield an exposition in OpenMetrics. Each chunk holds whole lines."""
    for chunk in chunks:
        yield _converted(chunk) if chunk.startswith(b"#") or b"\n#" in chunk else chunk
    yield b"# EOF\n"


def _converted(chunk: bytes) -> bytes:
    lines = chunk.decode().split("\n")
    return "\n".join(_comment(it) if it.startswith("#") else it for it in lines).encode()


def _comment(line: str) -> str:
    """Return the line `# HELP name text` or `# TYPE name kind` under the family's own name."""
    mark, word, exposed, rest = line.split(" ", 3)
    family = FAMILIES.get(exposed)
    if family is None or family.kind not in _RENAMED:
        return line
    return f"{mark} {word} {family.name} {family.kind if word == 'TYPE' else rest}"
