"""Rates of the last seconds: of all clients, of tenants and of topics.

Each second the counters of all topics are compared with those of a second ago. That takes 8 µs
for each topic, so it is done only while somebody looks, in slices.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.telemetry.figures import TopicBook, TopicFigures
    from gateway.wire.account import Waits

LONGEST = 5.0
"""Seconds between two looks of which rates are told. After a longer pause they begin anew."""

TOPICS_AT_ONCE = 100
"""Topics that are read or compared between two steps of other tasks: less than a millisecond."""

SHOWN = 50
"""Tenants, topics and waits of a second that are shown: as many as people look at."""

DIRECTIONS = ("to_broker", "to_client")


class Counters(NamedTuple):
    """Counters of a topic or tenant at one moment, or the differences of two."""

    messages_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    bytes_out: int = 0

    def plus(self, more: Counters) -> Counters:
        """Return the sums."""
        return Counters(*(one + other for one, other in zip(self, more, strict=True)))

    def minus(self, before: Counters) -> Counters:
        """Return what came since. A topic that was forgotten and came back began again from 0."""
        return Counters(*(max(0, now - old) for now, old in zip(self, before, strict=True)))

    def rates(self, seconds: float) -> dict[str, dict[str, float]]:
        """Return them for each second, by direction."""
        each = [round(count / seconds, 1) for count in self]
        return {
            "to_broker": {"messages": each[0], "bytes": each[1]},
            "to_client": {"messages": each[2], "bytes": each[3]},
        }


_NOTHING = Counters()

Key = tuple[str, str, str]
"""Cluster, tenant and name of a topic. Folded topics of each tenant have one name."""


class _Row:
    """A topic or a tenant in one look. `counters`: since the start; `came`: since the last look."""

    __slots__ = ("came", "consumers", "counters", "held", "producers")

    def __init__(self) -> None:
        self.counters = self.came = _NOTHING
        self.held = [0, 0]
        self.producers = self.consumers = 0

    def add(self, figures: TopicFigures) -> None:
        made, taken = figures.produced, figures.consumed
        more = Counters(made.messages, made.bytes, taken.messages, taken.bytes)
        self.counters = self.counters.plus(more)
        self.held[0] += made.held
        self.held[1] += taken.held
        self.producers += made.open
        self.consumers += taken.open

    def include(self, topic: _Row) -> None:
        self.came = self.came.plus(topic.came)
        self.held[0] += topic.held[0]
        self.held[1] += topic.held[1]
        self.producers += topic.producers
        self.consumers += topic.consumers

    @property
    def order(self) -> tuple[int, int, int]:
        """Return what rows are ordered by, busiest last; nothing but zeros if there is nothing."""
        size = self.came.bytes_in + self.came.bytes_out
        return size, sum(self.held), self.producers + self.consumers

    def told(self, seconds: float) -> dict[str, Any]:
        return {
            **self.came.rates(seconds),
            "held_bytes": sum(self.held),
            "producers": self.producers,
            "consumers": self.consumers,
        }


class _Busiest:
    """The busiest of many rows, busiest first. Each is looked at once, as it comes."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._heap: list[tuple[tuple[int, int, int], int, Any, _Row]] = []
        self._ties = 0

    def add(self, key: Any, row: _Row) -> None:
        """Add a row, unless nothing is open there and nothing came."""
        order = row.order
        if not any(order):
            return
        if len(self._heap) >= self._shown:
            if order > self._heap[0][0]:
                self._ties += 1
                heapq.heapreplace(self._heap, (order, self._ties, key, row))
            return
        self._ties += 1
        heapq.heappush(self._heap, (order, self._ties, key, row))

    def rows(self) -> list[tuple[Any, _Row]]:
        """Return the busiest with their keys."""
        return [(key, row) for _, _, key, row in sorted(self._heap, reverse=True)]


class _Look:
    """What one look found. `waits`: by topic and direction (0, 1), and by rule, since the start."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.rows: dict[Key, _Row] = {}
        self.waits: dict[tuple[Key, int], dict[str, tuple[int, float]]] = {}

    def add(self, cluster: str, figures: TopicFigures) -> None:
        """Add a topic, or a part of one."""
        key = cluster, figures.topic.tenant, figures.topic.name
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = _Row()
        row.add(figures)
        if figures.produced_waits is not None:
            self._add_waits((key, 0), figures.produced_waits)
        if figures.consumed_waits is not None:
            self._add_waits((key, 1), figures.consumed_waits)

    def _add_waits(self, where: tuple[Key, int], waits: Waits) -> None:
        sums = self.waits.setdefault(where, {})
        for rule, waited in waits.by_rule.items():
            times, seconds = sums.get(rule, (0, 0.0))
            sums[rule] = times + waited.times, seconds + waited.seconds


class Live:
    """Compares looks at books, by the names of their clusters. `shown`: rows of each table.

    `second`: what the last two looks say; empty before the second one.
    """

    def __init__(self, books: Mapping[str, TopicBook], shown: int = SHOWN) -> None:
        self._books = books
        self._shown = shown
        self._last: _Look | None = None
        self.second: dict[str, Any] = {}

    def look(self, now: float, connections: int) -> Iterator[None]:
        """Take a look, and tell what came since the last one. Yields between slices. `now`:
        monotonic seconds."""
        look, before = _Look(now), self._last
        for number, (cluster, figures) in enumerate(self._topics(), 1):
            look.add(cluster, figures)
            if number % TOPICS_AT_ONCE == 0:
                yield
        self._last = look
        if before is None or now - before.at > LONGEST:
            self.second = {}
            return
        tenants: dict[tuple[str, str], _Row] = {}
        topics = _Busiest(self._shown)
        for number, (key, row) in enumerate(look.rows.items(), 1):
            # Forgotten one by one: to free 10,000 at once takes some milliseconds.
            old = before.rows.pop(key, None)
            row.came = row.counters.minus(_NOTHING if old is None else old.counters)
            topics.add(key, row)
            tenant = tenants.get(key[:2])
            if tenant is None:
                tenant = tenants[key[:2]] = _Row()
            tenant.include(row)
            if number % TOPICS_AT_ONCE == 0:
                yield
        held: list[dict[str, Any]] = []
        for number, where in enumerate(look.waits, 1):
            held += _new_waits(where, look, before)
            if number % TOPICS_AT_ONCE == 0:
                held = self._longest(held)
                yield
        yield from self._tell(look.at - before.at, tenants, topics, connections)
        self.second["held"] = self._longest(held)

    def forget(self) -> None:
        """Forget the last look: nobody looks any more, and 100,000 topics are 60 MB."""
        self._last = None
        self.second = {}

    def _longest(self, held: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(held, key=lambda it: (-it["wait_seconds"], -it["bytes"]))[: self._shown]

    def _topics(self) -> Iterator[tuple[str, TopicFigures]]:
        for cluster, book in self._books.items():
            for figures in book.topics():
                yield cluster, figures

    def _tell(
        self,
        seconds: float,
        tenants: Mapping[tuple[str, str], _Row],
        topics: _Busiest,
        connections: int,
    ) -> Iterator[None]:
        seconds = max(0.001, seconds)
        total, busiest = _Row(), _Busiest(self._shown)
        for number, (tenant, row) in enumerate(tenants.items(), 1):
            total.include(row)
            busiest.add(tenant, row)
            if number % TOPICS_AT_ONCE == 0:
                yield
        now = {
            **total.came.rates(seconds),
            "connections": connections,
            "held_bytes": sum(total.held),
        }
        self.second = {
            "now": now,
            "tenants": [
                {"cluster": cluster, "tenant": tenant, **row.told(seconds)}
                for (cluster, tenant), row in busiest.rows()
            ],
            "topics": [
                {"cluster": cluster, "tenant": tenant, "topic": name, **row.told(seconds)}
                for (cluster, tenant, name), row in topics.rows()
            ],
        }


def _new_waits(where: tuple[Key, int], look: _Look, before: _Look) -> Iterator[dict[str, Any]]:
    """Yield the rules for which a topic waited since the last look, or waits now."""
    key, direction = where
    past = before.waits.get(where, {})
    size = look.rows[key].held[direction]
    for rule, (times, seconds) in look.waits[where].items():
        old_times, old_seconds = past.get(rule, (0, 0.0))
        if times > old_times or size:
            yield {
                "topic": key[2],
                "tenant": key[1],
                "direction": DIRECTIONS[direction],
                "rule": rule,
                "bytes": size,
                "waits": times - old_times,
                "wait_seconds": round(seconds - old_seconds, 3),
            }
