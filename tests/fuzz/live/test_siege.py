"""Some seconds of hostile peers on both sides of a gateway."""

from __future__ import annotations

from pathlib import Path

from .siege import run

FRAMES = 150_000


def test_a_gateway_between_hostile_peers(tmp_path: Path) -> None:
    row = run(tmp_path, FRAMES, seed=3, say=print, connections=48)
    print(row)
    assert row.findings == ()
    assert row.frames >= FRAMES
