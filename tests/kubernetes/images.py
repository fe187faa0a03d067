"""What stands for images: programs of this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.gateways import CHECKOUT


@dataclass(frozen=True, slots=True)
class Image:
    """`commands`: what stands for the first word of a container's command. `path`: of Python's
    packages."""

    commands: Mapping[str, Sequence[str]]
    path: Path = CHECKOUT


def gateway(checkout: Path = CHECKOUT) -> Image:
    """Return the gateway's image, as it would be built from a checkout."""
    python = [sys.executable]
    return Image({"gateway": [*python, "-m", "gateway"], "python": python}, checkout)
