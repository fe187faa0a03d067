"""What differs between two sets of rules, by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.policy.rules import Rule
from gateway.rules import words

_ABSENT = "none"


def differences(old: Iterable[Rule], new: Iterable[Rule]) -> list[str]:
    """Answer lines: `+` a rule that was added, `-` one that was removed, `~` one that changed."""
    before = {rule.id: rule for rule in old}
    after = {rule.id: rule for rule in new}
    return [
        line
        for id in sorted(before.keys() | after.keys())
        for line in _lines(id, before.get(id), after.get(id))
    ]


def _lines(id: str, old: Rule | None, new: Rule | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{'+' if old is None else '-'} {id}"
    elif old != new:
        yield f"~ {id}"
        yield from (f"    {line}" for line in _changes(old, new))


def _changes(old: Rule, new: Rule) -> Iterator[str]:
    before, after = dict(words.values(old)), dict(words.values(new))
    for field in dict.fromkeys([*before, *after]):
        was, is_now = before.get(field, _ABSENT), after.get(field, _ABSENT)
        if was != is_now:
            yield f"{field}: {was} -> {is_now}"
