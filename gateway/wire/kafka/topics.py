"""The names of topics by their ids, learned from brokers.

From Produce 13 and Fetch 13 on, requests name topics by id alone (KIP-516). Every client requests
Metadata first, and brokers state the ids in responses to Metadata from version 10 on. If no
response on this listener has stated an id, or if the id was forgotten, the gateway asks a broker
for its name.
"""

from __future__ import annotations

from collections import OrderedDict

from gateway.errors import PeerError
from gateway.wire.kafka.names import is_name

ID = 16
"""Bytes of an id."""

NONE = bytes(ID)
"""The id of a topic that has no id: it does not exist, or its broker is too old for ids."""

MOST = 20_000
"""Ids that are kept, 2 to 6 MB. The least recently used id is forgotten first."""


class TopicIds:
    """A bounded cache of topic names by topic id, filled from Metadata responses."""

    def __init__(self, most: int = MOST) -> None:
        self._names: OrderedDict[bytes, bytes] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, id: bytes) -> bool:
        return id in self._names

    def name(self, id: bytes) -> bytes | None:
        """Return the name of the topic with this id; None if the id is not known."""
        name = self._names.get(id)
        if name is not None:
            self._names.move_to_end(id)
        return name

    def learn(self, id: bytes, name: bytes) -> None:
        """Note the name of a topic. Raises `PeerError` if the name is invalid."""
        if not is_name(name):
            raise PeerError("a topic of a name that cannot be")
        self._names[id] = name
        self._names.move_to_end(id)
        if len(self._names) > self._most:
            self._names.popitem(last=False)
