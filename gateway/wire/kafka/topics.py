"""The names of topics by the ids that brokers have given them.

From Produce 13 and Fetch 13 on, requests name topics by ids alone (KIP-516). Brokers tell them in
Metadata 10 and later, which every client asks for before. What a connection has not asked for, or
what has been forgotten, has to be asked of a broker.
"""

from __future__ import annotations

from collections import OrderedDict

from gateway.errors import PeerError
from gateway.wire.kafka.names import is_name
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan, text_at

ID = 16
"""Bytes of an id."""

NONE = bytes(ID)
"""The id of a topic that has none: it does not exist, or its broker is too old."""

MOST = 20_000
"""Ids that are kept, 2 to 6 MB. The one that was not used for longest is forgotten first."""

_WANTED = frozenset({"Name", "TopicId"})


class TopicIds:
    """Names by id, as brokers told them."""

    def __init__(self, most: int = MOST) -> None:
        self._names: OrderedDict[bytes, bytes] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, id: bytes) -> bool:
        return id in self._names

    def name(self, id: bytes) -> bytes | None:
        """Return the name of a topic; None: it is not known."""
        found = self._names.get(id)
        if found is not None:
            self._names.move_to_end(id)
        return found

    def learn(self, schema: Schema, version: int, frame: bytes, start: int) -> None:
        """Learn ids from a response of Metadata whose body begins at `start`. Raises `PeerError` if
        it is torn."""
        found = plan(schema, version, _WANTED).walk(frame, start, len(frame))
        flexible = version >= schema.flexible
        name: bytes | None = None
        for place in found.places:
            if place.name == "Name":
                name = text_at(frame, place, flexible=flexible)
            elif name is not None and (id := frame[place.start : place.end]) != NONE:
                self._add(bytes(id), name)

    def _add(self, id: bytes, name: bytes) -> None:
        if not is_name(name):
            raise PeerError("a topic of a name that cannot be")
        self._names[id] = name
        self._names.move_to_end(id)
        if len(self._names) > self._most:
            self._names.popitem(last=False)
