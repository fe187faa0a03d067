"""Names of files that are made from names that others chose."""

from __future__ import annotations

import re
from typing import Final

from gateway.usage.texts import short_hash

_OTHER = re.compile(r"[^A-Za-z0-9_-]+")

_STEM: Final = 60
"""Characters of a name in a file's name; a hash beside it makes it unique."""


def file_stem(name: str, kind: str = "invoice") -> str:
    """Return the name of a tenant's invoice as a file, without suffix: `invoice-acme`.

    It is never a path, different for each tenant, also where a disk does not tell cases apart, and
    never the name of another page.
    """
    stem = _OTHER.sub("-", name)[:_STEM]
    is_plain = stem == name and stem and stem == stem.lower()
    return f"{kind}-{stem}" if is_plain else f"{kind}-{stem}.{short_hash(name)}"
