"""Keeps two kinds of offsets of a cluster: the end offset of each partition, and the offset that
each group has committed. The lag of a group is the difference of the two.

Brokers send the two offsets on different connections, and one process has only some of these
connections. So the gateway exposes both offsets as metrics, and the reader of the metrics subtracts
one from the other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS = 10_000
"""Topics whose end offsets are kept, some 300 bytes each and 60 for a partition. The topic that was
opened longest ago is forgotten first."""

POSITIONS = 10_000
"""Partitions of groups, some 150 bytes each. Clients choose names of groups, so beyond this the
group that has committed longest ago is forgotten."""


class Position(NamedTuple):
    """One offset of a partition. `group`: the group that has committed this offset; empty if it is
    the partition's end."""

    group: str
    topic: str
    partition: int
    offset: int


class Progress:
    """The offsets of one cluster. `topics`: the most topics whose end offsets are kept.
    `positions`: the most committed offsets that are kept."""

    def __init__(self, topics: int = TOPICS, positions: int = POSITIONS) -> None:
        self._most_topics = topics
        self._most_positions = positions
        self._ends: OrderedDict[str, dict[int, int]] = OrderedDict()
        self._groups: OrderedDict[str, dict[tuple[str, int], int]] = OrderedDict()
        self._positions = 0

    def of(self, topic: str) -> dict[int, int]:
        """Return the end offsets of a topic, by partition. Callers write an end offset into this
        dict when a broker reports it."""
        ends = self._ends.get(topic)
        if ends is None:
            ends = self._ends[topic] = {}
            if len(self._ends) > self._most_topics:
                self._ends.popitem(last=False)
        self._ends.move_to_end(topic)
        return ends

    def commit(self, position: Position) -> None:
        """Keep an offset that a group has committed. If there are too many offsets, those of the
        group that has committed longest ago are forgotten; if only this group has offsets, the
        offset is not kept."""
        of_group = self._groups.setdefault(position.group, {})
        self._groups.move_to_end(position.group)
        key = position.topic, position.partition
        if key not in of_group:
            if self._positions >= self._most_positions and len(self._groups) > 1:
                self._positions -= len(self._groups.popitem(last=False)[1])
            if self._positions >= self._most_positions:
                return
            self._positions += 1
        of_group[key] = position.offset

    def forget(self, group: str) -> None:
        """Forget the offsets of a group that was deleted."""
        self._positions -= len(self._groups.pop(group, ()))

    def ends(self) -> Iterator[Position]:
        """Yield the end offset of each partition. End offsets may change between two steps."""
        for topic, ends in tuple(self._ends.items()):
            for partition, offset in tuple(ends.items()):
                yield Position("", topic, partition, offset)

    def committed(self) -> Iterator[Position]:
        """Yield the committed offsets of all groups. Groups may commit further offsets between two
        steps."""
        for group, offsets in tuple(self._groups.items()):
            for (topic, partition), offset in tuple(offsets.items()):
                yield Position(group, topic, partition, offset)
