"""One test for many places of one form: it names all that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterable


def assert_none(faults: Iterable[str]) -> None:
    """Fail with all faults, one on each line."""
    found = list(faults)
    assert not found, "\n".join([f"{len(found)} at fault:", *found])
