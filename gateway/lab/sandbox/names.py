"""Names of topics: `persistent://tenant/namespace/topic`, and `...-partition-N`."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 1024
"""Most characters of a stored name, of a topic or anything else. Real names have 20 to 100."""

_DOMAINS = frozenset({"persistent", "non-persistent"})
_PARTITION = re.compile(r"(.+)-partition-([0-9]{1,9})", re.DOTALL | re.ASCII)


class FullTopicName(NamedTuple):
    """The parts of a topic's name. `namespace`: tenant and namespace. `partition`: the number of
    the partition; -1 if the name is no partition's."""

    domain: str
    namespace: str
    local: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local}"

    @property
    def is_persistent(self) -> bool:
        return self.domain == "persistent"

    @property
    def partition(self) -> int:
        match = _PARTITION.fullmatch(self.local)
        return int(match[2]) if match else -1

    @property
    def base(self) -> FullTopicName:
        """Return the name of the partitioned topic to which this partition belongs; this name
        itself if it is no partition's."""
        match = _PARTITION.fullmatch(self.local)
        return self._replace(local=match[1]) if match else self

    def part(self, number: int) -> FullTopicName:
        """Return the name of one partition of this topic."""
        return self._replace(local=f"{self.local}-partition-{number}")


def parse_topic(text: str) -> FullTopicName | None:
    """Return the parts of a topic's full or short name (`topic`, `tenant/namespace/topic`); None if
    the name is invalid.

    Unusual characters are allowed, because clients look up patterns as if these were topics.
    """
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = "persistent", text if text.count("/") >= 2 else f"public/default/{text}"
    parts = rest.split("/", 2)
    if len(text) > LONGEST or domain not in _DOMAINS or len(parts) != 3 or not all(parts):
        return None
    return FullTopicName(domain, f"{parts[0]}/{parts[1]}", parts[2])
