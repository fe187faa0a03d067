"""`gateway rules promote ID`: enforces a recommended rule, which until then only counts what it
would do.

`gateway pipeline recommend` overwrites its file each time. So the promoted rule is written to
another file, under an id of its own, and the recommendation is kept in its file for comparison. In
both files each rule is a block of lines with the comments above it. The files are changed as texts,
so that comments are kept.

A recommendation expires, because the usage that it is based on becomes outdated. A promoted rule
was chosen by a person, so it expires only if the command requests that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.errors import ConfigurationError
from gateway.policy.expiry import written
from gateway.rules import files
from gateway.system.whole_files import write_at_once

_HEAD = """\
# Limits that were recommended, and are enforced: `gateway rules promote ID` adds them here.
version: 1
rules:
"""

_ID = re.compile(r"^  - id: (\S+)$", re.MULTILINE)
_EXPIRES = re.compile(r"^    expires: .*\n", re.MULTILINE)

RECOMMENDED, PROMOTED = "recommended.", "promoted."
"""Prefixes of the ids of recommended and of promoted rules."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What to promote: the id of the rule, its file, and the file to which the promoted rule is
    written. `expires`: when the promoted rule expires; None: never."""

    id: str
    source: Path
    target: Path
    expires: datetime | None = None


def promote(promotion: Promotion, now: datetime) -> str:
    """Promote a rule; return a line of text that reports this. Raises `ConfigurationError` if there
    is no such rule, if the rule has expired or is not a shadow rule, or if a file is wrong. `now`:
    in UTC."""
    id, source, target = promotion.id, promotion.source, promotion.target
    source_blocks = blocks(source.read_text()) if source.is_file() else {}
    rules = {rule.id: rule for rule in files.rules_of(files.load([source]))}
    block, rule = source_blocks.get(id), rules.get(id)
    if block is None or rule is None:
        known = ", ".join(sorted(source_blocks)) or "none"
        raise ConfigurationError(f"{source}: has no rule {id}; one of {known}")
    if rule.expires is not None and rule.expires <= now:
        raise ConfigurationError(
            f"{source}: {id} expired at {written(rule.expires)}; run gateway pipeline recommend"
        )
    if "\n    mode: shadow\n" not in block:
        raise ConfigurationError(f"{source}: {id} is no shadow; it is enforced where it is read")
    if promotion.expires is not None and promotion.expires <= now:
        raise ConfigurationError(f"--expires {written(promotion.expires)} is over; a later moment")
    promoted = PROMOTED + id.removeprefix(RECOMMENDED)
    kept = blocks(target.read_text()) if target.exists() else {}
    if target.exists():
        files.load([target])
    done = "replaced" if promoted in kept else "added"
    kept[promoted] = _enforced(block, promotion, promoted, now)
    _write(target, _HEAD + "".join(text for _, text in sorted(kept.items())))
    until = (
        "never expires" if promotion.expires is None else f"expires at {written(promotion.expires)}"
    )
    return f"{target}: {promoted} is {done}, from {source}; it {until}"


def blocks(text: str) -> dict[str, str]:
    """Return the rules of a file as texts, by id. Each text has the lines of the rule and the
    comments above it."""
    by_id, comments = dict[str, str](), list[str]()
    id = None
    for line in text.splitlines(keepends=True):
        if line.startswith("  # "):
            comments.append(line)
            id = None
            continue
        begins = _ID.match(line)
        if begins is not None:
            id = begins[1]
            by_id[id] = "".join(comments) + line
            comments = []
        elif id is not None:
            by_id[id] += line
    return by_id


def _enforced(block: str, promotion: Promotion, promoted: str, now: datetime) -> str:
    text = block.replace(f"  - id: {promotion.id}\n", f"  - id: {promoted}\n")
    text = text.replace("\n    mode: shadow\n", "\n    mode: enforce\n")
    text = _EXPIRES.sub("", text)
    if promotion.expires is not None:
        text += f"    expires: '{written(promotion.expires)}'\n"
    return f"  # promoted {now.date().isoformat()}\n{text}"


def _write(path: Path, text: str) -> None:
    """Write a file of rules at once. Raises `ConfigurationError` if it would be wrong: nothing is
    written then."""
    _, mistakes = files.read(text, str(path))
    if mistakes:
        raise ConfigurationError(f"{path}: would be wrong: {mistakes[0].text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, text)
