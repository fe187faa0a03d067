"""`gateway rules promote ID`: has a rule enforced that so far only counts.

`gateway pipeline recommend` writes its file anew, so a promoted rule goes to a file of its own,
under an id of its own: the recommendation goes on to be compared beside it. Both files are plain
blocks, a rule each with the comments above it, and are kept as texts so that comments stay.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import yaml

from gateway.errors import ConfigurationError
from gateway.rules import files
from gateway.system.whole_files import write_at_once

_HEAD = """\
# Limits that were recommended, and are enforced: `gateway rules promote ID` adds them here.
version: 1
rules:
"""

_ID = re.compile(r"^  - id: (\S+)$", re.MULTILINE)
_UNTIL = re.compile(r"^  # good until (\d{4}-\d\d-\d\d)$", re.MULTILINE)

RECOMMENDED, PROMOTED = "recommended.", "promoted."
"""How ids begin."""


def promote(id: str, source: Path, target: Path, today: date) -> str:
    """Move a rule on; return what to tell. Raises `ConfigurationError` if there is no such rule, or
    its recommendation is too old, and where a file is wrong."""
    files.load([source])
    found = blocks(source.read_text())
    block = found.get(id)
    if block is None:
        known = ", ".join(sorted(found)) or "none"
        raise ConfigurationError(f"{source}: has no rule {id}; one of {known}")
    until = _UNTIL.search(block)
    if until is not None and date.fromisoformat(until[1]) < today:
        raise ConfigurationError(
            f"{source}: {id} was good until {until[1]}; run gateway pipeline recommend"
        )
    if "\n    mode: shadow\n" not in block:
        raise ConfigurationError(f"{source}: {id} is no shadow; it is enforced where it is read")
    promoted = PROMOTED + id.removeprefix(RECOMMENDED)
    kept = blocks(target.read_text()) if target.exists() else {}
    if target.exists():
        files.load([target])
    is_new = promoted not in kept
    kept[promoted] = _enforced(block, id, promoted, today)
    _write(target, _HEAD + "".join(text for _, text in sorted(kept.items())))
    return f"{target}: {promoted} is {'added' if is_new else 'replaced'}, from {source}"


def blocks(text: str) -> dict[str, str]:
    """Return the rules of a file by id, each as its lines with the comments above it."""
    found, comments = dict[str, str](), list[str]()
    id = None
    for line in text.splitlines(keepends=True):
        if line.startswith("  # "):
            comments.append(line)
            id = None
            continue
        begins = _ID.match(line)
        if begins is not None:
            id = begins[1]
            found[id] = "".join(comments) + line
            comments = []
        elif id is not None:
            found[id] += line
    return found


def _enforced(block: str, id: str, promoted: str, today: date) -> str:
    text = block.replace(f"  - id: {id}\n", f"  - id: {promoted}\n")
    text = text.replace("\n    mode: shadow\n", "\n    mode: enforce\n")
    return _UNTIL.sub(f"  # promoted {today.isoformat()}", text)


def _write(path: Path, text: str) -> None:
    """Write a file of rules at once. Raises `ConfigurationError` if it would be wrong: nothing is
    written then."""
    _, mistakes = files.build(yaml.safe_load(text))
    if mistakes:
        raise ConfigurationError(f"{path}: would be wrong: {mistakes[0].text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, text)
