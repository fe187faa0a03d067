"""Names of topics: `persistent://tenant/namespace/topic`, and `...-partition-N`."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 1024
"""Characters of a name that is kept, of a topic or anything else. Real ones have 20 to 100."""

_DOMAINS = frozenset({"persistent", "non-persistent"})
_PARTITION = re.compile(r"(.+)-partition-([0-9]{1,9})", re.DOTALL | re.ASCII)


class TopicName(NamedTuple):
    """`namespace`: tenant and namespace. `partition`: -1 where the name is of no partition."""

    domain: str
    namespace: str
    local: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local}"

    @property
    def partition(self) -> int:
        found = _PARTITION.fullmatch(self.local)
        return int(found[2]) if found else -1

    @property
    def base(self) -> TopicName:
        """The topic that this is a partition of, or this topic."""
        found = _PARTITION.fullmatch(self.local)
        return self._replace(local=found[1]) if found else self

    def part(self, number: int) -> TopicName:
        """A partition of this topic."""
        return self._replace(local=f"{self.local}-partition-{number}")


def parse(text: str) -> TopicName | None:
    """Read a full name, or a short one (`topic`, `tenant/namespace/topic`); None where it is none.

    Odd characters are no mistake: clients look up patterns as if they were topics.
    """
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = "persistent", text if text.count("/") >= 2 else f"public/default/{text}"
    parts = rest.split("/", 2)
    if len(text) > LONGEST or domain not in _DOMAINS or len(parts) != 3 or not all(parts):
        return None
    return TopicName(domain, f"{parts[0]}/{parts[1]}", parts[2])
