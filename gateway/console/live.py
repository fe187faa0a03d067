"""Rates of the last seconds: of all clients, of tenants and of topics.

Each second the counters of all topics are compared with those of a second ago. That takes 8 µs for
each topic, so it is done only while the console has readers, in slices.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.telemetry.figures import TopicBook, TopicFigures
    from gateway.wire.account import Waits
    from gateway.wire.subject import TopicName

LONGEST = 5.0
"""Most seconds between two readings from which rates are computed. After a longer pause they begin
anew."""

TOPICS_AT_ONCE = 100
"""Topics that are read or compared between two steps of other tasks: less than a millisecond."""

SHOWN = 50
"""Most tenants, topics and waits of a second that are shown: as many as people look at."""

DIRECTIONS = ("to_broker", "to_client")


class Counters(NamedTuple):
    """The counters of a topic or tenant at one moment, or what they grew by between two moments."""

    messages_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    bytes_out: int = 0

    def plus(self, more: Counters) -> Counters:
        """Return the sum of these counters and `more`."""
        return Counters(*(one + other for one, other in zip(self, more, strict=True)))

    def rates(self, seconds: float) -> dict[str, dict[str, float]]:
        """Return the counters divided by `seconds`, by direction."""
        each = [round(count / seconds, 1) for count in self]
        return {
            "to_broker": {"messages": each[0], "bytes": each[1]},
            "to_client": {"messages": each[2], "bytes": each[3]},
        }


_NOTHING = Counters()


class _Row:
    """A topic or a tenant in one reading. `messages_in` and so on: since the start; `came`: since
    the previous reading.

    There is one for each topic, and it lives for two readings. Whatever else lived so long would
    bring the next collection of all garbage nearer, which stops the process for 80 ms with 10,000
    topics.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "came",
        "consumers",
        "held_in",
        "held_out",
        "messages_in",
        "messages_out",
        "producers",
    )

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.messages_out = self.bytes_out = 0
        self.held_in = self.held_out = self.producers = self.consumers = 0
        self.came = _NOTHING

    def add(self, figures: TopicFigures) -> None:
        made, taken = figures.produced, figures.consumed
        self.messages_in += made.messages
        self.bytes_in += made.bytes
        self.messages_out += taken.messages
        self.bytes_out += taken.bytes
        self.held_in += made.held
        self.held_out += taken.held
        self.producers += made.open
        self.consumers += taken.open

    def compare(self, before: _Row) -> None:
        """Set `came` to the growth of the counters since the previous reading, `before`. A counter
        that has decreased, because the topic was forgotten meanwhile, counts as 0."""
        came = (
            self.messages_in - before.messages_in,
            self.bytes_in - before.bytes_in,
            self.messages_out - before.messages_out,
            self.bytes_out - before.bytes_out,
        )
        if any(came):
            self.came = Counters(*(max(0, count) for count in came))

    def include(self, topic: _Row) -> None:
        if topic.came is not _NOTHING:
            self.came = self.came.plus(topic.came)
        self.held_in += topic.held_in
        self.held_out += topic.held_out
        self.producers += topic.producers
        self.consumers += topic.consumers

    @property
    def held(self) -> int:
        return self.held_in + self.held_out

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the sort key, which is highest for the busiest row: bytes since the previous
        reading, held bytes, and number of open producers and consumers."""
        size = self.came.bytes_in + self.came.bytes_out
        return size, self.held, self.producers + self.consumers

    def values(self, seconds: float) -> dict[str, Any]:
        return {
            **self.came.rates(seconds),
            "held_bytes": self.held,
            "producers": self.producers,
            "consumers": self.consumers,
        }


_NO_ROW = _Row()


class _Busiest:
    """The busiest of many rows, busiest first. Each is looked at once, as it comes."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._heap: list[tuple[tuple[int, int, int], int, Any, _Row]] = []
        self._ties = 0

    def add(self, key: Any, row: _Row) -> None:
        """Add a row if it has traffic, held bytes, or an open producer or consumer."""
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
        """Return the busiest rows with their keys, busiest first."""
        return [(key, row) for _, _, key, row in sorted(self._heap, reverse=True)]


class _Where(NamedTuple):
    """A topic of a cluster, in one direction."""

    cluster: str
    topic: TopicName
    direction: int


class _Look:
    """The content of one reading. `rows`: by cluster and topic; the folded topics of each tenant
    have one name. `waits`: by rule, since the start."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.rows: dict[str, dict[TopicName, _Row]] = {}
        self.waits: dict[_Where, dict[str, tuple[int, float]]] = {}

    def add(self, cluster: str, figures: TopicFigures) -> None:
        """Add the counters of a topic, or of a part of a topic."""
        topic, rows = figures.topic, self.rows.setdefault(cluster, {})
        row = rows.get(topic)
        if row is None:
            row = rows[topic] = _Row()
        row.add(figures)
        if figures.produced_waits is not None:
            self._add_waits(_Where(cluster, topic, 0), figures.produced_waits)
        if figures.consumed_waits is not None:
            self._add_waits(_Where(cluster, topic, 1), figures.consumed_waits)

    def all(self) -> Iterator[tuple[str, TopicName, _Row]]:
        """Yield each row with its cluster and topic."""
        for cluster, rows in self.rows.items():
            for topic, row in rows.items():
                yield cluster, topic, row

    def _add_waits(self, where: _Where, waits: Waits) -> None:
        sums = self.waits.setdefault(where, {})
        for rule, waited in waits.by_rule.items():
            times, seconds = sums.get(rule, (0, 0.0))
            sums[rule] = times + waited.times, seconds + waited.seconds


class Live:
    """Computes rates from two successive readings of the counters in `books`, which are by cluster.
    `shown`: number of rows in each table.

    `second`: the rates between the last two readings; empty before the second reading.
    """

    def __init__(self, books: Mapping[str, TopicBook], shown: int = SHOWN) -> None:
        self._books = books
        self._shown = shown
        self._last: _Look | None = None
        self.second: dict[str, Any] = {}

    def look(self, now: float, connections: int) -> Iterator[None]:
        """Read the counters, and set `second` to the rates since the previous reading. The work is
        done in slices, with a yield after each. `now`: monotonic seconds. `connections`: number of
        open connections."""
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
        for number, (cluster, topic, row) in enumerate(look.all(), 1):
            # Forgotten one by one: to free 10,000 at once takes some milliseconds.
            row.compare(before.rows.get(cluster, {}).pop(topic, _NO_ROW))
            topics.add((cluster, topic), row)
            key = cluster, topic.tenant
            tenant = tenants.get(key)
            if tenant is None:
                tenant = tenants[key] = _Row()
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
        """Drop the last reading, because the console has no readers any more: the counters of
        100,000 topics take 60 MB."""
        self._last = None
        self.second = {}

    def _longest(self, held: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(held, key=lambda wait: (-wait["wait_seconds"], -wait["bytes"]))[: self._shown]

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
            "held_bytes": total.held,
        }
        self.second = {
            "now": now,
            "tenants": [
                {"cluster": cluster, "tenant": tenant, **row.values(seconds)}
                for (cluster, tenant), row in busiest.rows()
            ],
            "topics": [
                {
                    "cluster": cluster,
                    "tenant": topic.tenant,
                    "topic": topic.name,
                    **row.values(seconds),
                }
                for (cluster, topic), row in topics.rows()
            ],
        }


def _new_waits(where: _Where, look: _Look, before: _Look) -> Iterator[dict[str, Any]]:
    """Yield the rules for which a topic waited since the last look, or waits now."""
    past, row = before.waits.get(where, {}), look.rows[where.cluster][where.topic]
    size = row.held_out if where.direction else row.held_in
    for rule, (times, seconds) in look.waits[where].items():
        old_times, old_seconds = past.get(rule, (0, 0.0))
        if times > old_times or size:
            yield {
                "topic": where.topic.name,
                "tenant": where.topic.tenant,
                "direction": DIRECTIONS[where.direction],
                "rule": rule,
                "bytes": size,
                "waits": times - old_times,
                "wait_seconds": round(seconds - old_seconds, 3),
            }
