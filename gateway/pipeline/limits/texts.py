"""Files of rules that jobs write: a rule is a block, below comments that say what it is based on.

The texts are checked by the model that gateways read them by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway.errors import InternalError
from gateway.rules import files
from gateway.system.whole_files import write_at_once


def block(evidence: Iterable[str], rule: Mapping[str, Any]) -> str:
    """Return a rule as lines of a file, below lines of evidence."""
    lines = yaml.safe_dump([dict(rule)], sort_keys=False, allow_unicode=False, width=1000)
    comments = "".join(f"  # {it}\n" for it in evidence)
    return comments + "".join(f"  {line}\n" for line in lines.splitlines())


def checked(text: str) -> str:
    """Return the text of a file. Raises `InternalError` if gateways would refuse it."""
    _, mistakes = files.read(text, "rules")
    if mistakes:
        raise InternalError(f"a rule that was written is none: {mistakes[0]}")
    return text


def readable(name: str, otherwise: str) -> str:
    """Return what of a name an id may have, 24 characters at most."""
    kept = "".join(it if it.isascii() and it.isalnum() else "-" for it in name)[:24].strip("-")
    return kept or otherwise


def write(path: Path, text: str | None) -> bool:
    """Write a file at once, or remove it; return whether it has changed."""
    before = path.read_text() if path.exists() else None
    if before == text:
        return False
    if text is None:
        path.unlink()
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, text)
    return True
