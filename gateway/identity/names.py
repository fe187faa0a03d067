"""Names of principals: which names are valid, and how configured rules map names to other names."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config.expressions import Expression
from gateway.config.model import GROUP

LONGEST_NAME = 2048
"""Characters of a principal. SPIFFE IDs have at most so many, other names fewer. A principal is
kept as long as its connection, and in each limit per principal."""


def is_proper(name: str) -> bool:
    """Return True if a name can be the name of a principal.

    Names are sent to brokers as UTF-8, which cannot encode one half of a surrogate pair. A name
    with control characters could look like another name in a list, and no issuer would intend to
    give such a name.
    """
    if not name or len(name) > LONGEST_NAME:
        return False
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in name)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A rule that maps names. If all of a name matches `pattern`, the name becomes `template`, in
    which `{1}` or `{name}` stands for a group of the pattern, and `{0}` for the whole name."""

    pattern: Expression
    template: str

    def apply(self, name: str) -> str | None:
        """Return the name that this rule maps `name` to; None if `name` does not match the
        pattern."""
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        groups = {str(number): text for number, text in enumerate((name, *match.groups()))}
        groups |= match.groupdict()
        return GROUP.sub(lambda reference: groups.get(reference[1]) or "", self.template)


def mapped(name: str, rules: Sequence[Mapping]) -> str | None:
    """Return the name that the first matching rule maps `name` to; `name` itself if there are no
    rules. Return None if no rule matches, or if `name` or the mapped name cannot be the name of a
    principal."""
    if not rules:
        return name
    if not is_proper(name):
        return None
    written = (new for rule in rules if (new := rule.apply(name)) is not None)
    new = next(written, None)
    return new if new is not None and is_proper(new) else None
