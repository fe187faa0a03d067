"""Turns the text format of Prometheus into OpenMetrics 1.0, chunk by chunk.

The samples are the same in both formats. In OpenMetrics, the comments name a counter without
`_total`, and an info without `_info`. The text ends with a mark, by which readers recognize whether
it was truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.telemetry.families import FAMILIES, SEND_SECONDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MEDIA_TYPE = "application/openmetrics-text"
CONTENT_TYPE = f"{MEDIA_TYPE}; version=1.0.0; charset=utf-8"

_RENAMED = frozenset({Kind.COUNTER, Kind.INFO})


_WITH_EXEMPLARS = f"{SEND_SECONDS.exposed}_bucket{{".encode()


def converted(
    chunks: Iterable[bytes], exemplars: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """Yield metrics in the format of OpenMetrics. `chunks`: Prometheus text in whole lines; if a
    chunk has comments, it must begin with one. `exemplars`: texts to append to samples; the key is
    the sample without its value."""
    for chunk in chunks:
        lines = chunk
        if lines.startswith(b"#"):
            lines = _converted(lines)
        if exemplars and _WITH_EXEMPLARS in lines:
            lines = _exemplified(lines, exemplars)
        yield lines
    yield b"# EOF\n"


def _exemplified(chunk: bytes, exemplars: Mapping[str, str]) -> bytes:
    lines = chunk.decode().split("\n")
    return "\n".join(line + exemplars.get(line.rpartition(" ")[0], "") for line in lines).encode()


def _converted(chunk: bytes) -> bytes:
    lines = chunk.decode().split("\n")
    return "\n".join(_comment(line) if line.startswith("#") else line for line in lines).encode()


def _comment(line: str) -> str:
    """Return the line `# HELP name text` or `# TYPE name kind` under the family's own name."""
    mark, word, exposed, rest = line.split(" ", 3)
    family = FAMILIES.get(exposed)
    if family is None or family.kind not in _RENAMED:
        return line
    return f"{mark} {word} {family.name} {family.kind if word == 'TYPE' else rest}"
