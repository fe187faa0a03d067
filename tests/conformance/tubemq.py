"""TubeMQ in the battery: each block of a frame stops, and nothing passes."""

from __future__ import annotations

import struct

from gateway.wire.tubemq.frames import HEAD, MOST_BLOCKS, TOKEN
from gateway.wire.tubemq.scanning import FIRST, BlockScanner
from tests.unit.wire.tubemq.frames import Vector, in_blocks, vectors

from .battery import Frame, Lie, Sample, Spec, Subject

LARGEST = 1 << 20


def _make() -> Subject:
    return Subject(BlockScanner(LARGEST), {})


def _stops(*blocks: bytes) -> tuple[Frame, ...]:
    """Return the stop frames of one frame with these blocks."""
    first, *others = blocks
    head = HEAD.pack(TOKEN, 7, len(blocks)) + struct.pack(">I", len(first))
    data = [head + first, *(struct.pack(">I", len(it)) + it for it in others)]
    return tuple(Frame(it, stop=True) for it in data)


def _stop(vector: Vector) -> tuple[Frame, ...]:
    return _stops(*in_blocks(vector.frame))


_HUGE = HEAD.pack(TOKEN, 7, 1) + struct.pack(">I", LARGEST)

SAMPLES = (
    Sample("nothing", ()),
    Sample("what real peers say", tuple(it for vector in vectors() for it in _stop(vector))),
    Sample("blocks of one byte", _stops(*[b"x"] * 20)),
    Sample("empty blocks", _stops(b"", b"", b"x", b"")),
    Sample("full blocks", _stops(*[bytes(8192)] * 3, b"rest")),
    Sample("a large block", _stops(bytes(200_000), bytes(70_000))),
    Sample("the most blocks", _stops(*[b""] * MOST_BLOCKS)),
    Sample("what has begun", (*_stops(b"a", b"b"), Frame(_HUGE, stop=True, absent=LARGEST))),
)


def _head(token: int, blocks: int) -> bytes:
    return struct.pack(">IiIi", token, 7, blocks, 5) + b"12345"


LIES = (
    Lie("another token", _head(TOKEN - 1, 1)),
    Lie("no blocks", _head(TOKEN, 0)),
    Lie("too many blocks", _head(TOKEN, MOST_BLOCKS + 1)),
    Lie("less than no blocks", _head(TOKEN, 2**32 - 1)),
    Lie("a block that is too large", HEAD.pack(TOKEN, 7, 1) + struct.pack(">I", LARGEST + 1)),
    Lie("a block of less than nothing", HEAD.pack(TOKEN, 7, 1) + b"\xff" * 4),
)


class BlockSpec(Spec):
    """A spec whose stop frames may be parts of a frame, which stand in no other order."""

    def frames(self, longest: int) -> list[Frame]:
        """See `Spec`: frames of one block."""
        found = super().frames(longest)
        return [it for it in found if it.data[: HEAD.size] == HEAD.pack(TOKEN, 7, 1)]


SPECS = (BlockSpec("tubemq", _make, SAMPLES, LIES, limits=False, carry_bound=FIRST - 1),)
