"""Writes files in such a way that readers never see a part of the content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_at_once(path: Path, text: str) -> None:
    """Replace the content of a file by a text. A reader sees either the old content or the new
    content, never a part of it. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
