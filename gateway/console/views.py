"""The answers of the console's API, as plain values for JSON.

Each answer reads the gateway's state anew. `live` alone keeps something: rates, while the feed has
a reader.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from gateway.console.live import Live
from gateway.console.quantiles import quantile, since

if TYPE_CHECKING:
    from gateway.console.accounts import OpenAccounts
    from gateway.telemetry.figures import (
        BrokerHealth,
        Denied,
        ListenerFigures,
        PlaneFigures,
        RuleFigures,
        TopicBook,
    )
    from gateway.telemetry.latency import Histogram, ListenerLatencies, SlowSends
    from gateway.wire.subject import Caller

AT_ONCE = 500
"""Connections or topics that are read between two steps of other tasks: a millisecond."""

TENANTS_AT_ONCE = 50
"""Tenants whose latencies are added up between two steps of other tasks: a millisecond."""

MOST_ROWS = 1000
"""Rows of one answer."""

LATENCY_SECONDS = 60
"""Seconds of which latencies are told."""


class ConnectionFacts(NamedTuple):
    """An open connection. `seconds`: since it was accepted. `tls`: version; None without."""

    id: int
    listener: str
    client: str
    caller: Caller
    broker: str | None
    tls: str | None
    seconds: float


class Draining(NamedTuple):
    """A drain under way: connections at its begin, and now."""

    began: int
    connections: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the facts come from. `started_at`: seconds since 1970. `descriptors`: open, and
    most."""

    version: str
    started_at: float
    books: Mapping[str, TopicBook]
    accounts: OpenAccounts
    connections: Callable[[], Iterable[ConnectionFacts]]
    listeners: Mapping[str, ListenerFigures]
    brokers: Callable[[], Iterable[BrokerHealth]]
    rules: Callable[[], Iterable[RuleFigures]]
    denied: Mapping[Denied, int]
    latencies: Mapping[str, ListenerLatencies]
    slow: SlowSends
    delays: Histogram
    plane: Callable[[], PlaneFigures]
    unready: Callable[[], list[str]]
    draining: Callable[[], Draining | None]
    descriptors: Callable[[], tuple[int | None, int | None]]
    configuration: Callable[[], str]


class BadQueryError(Exception):
    """A query that cannot be answered; the text is for its sender."""


class Page(NamedTuple):
    """Which rows are asked for, in which order."""

    search: str = ""
    sort: str = ""
    descending: bool = True
    limit: int = 100
    offset: int = 0


_CONNECTION_ORDERS = (
    *("seconds", "id", "listener", "client", "principal", "library", "method", "broker", "tls"),
    *("producers", "consumers", "held_bytes"),
)
_TOPIC_ORDERS = (
    *("bytes_in", "topic", "tenant", "cluster", "producers", "consumers", "subscriptions"),
    *("messages_in", "messages_out", "bytes_out", "held_bytes", "wait_seconds"),
)


class Views:
    """Answers of the API."""

    def __init__(
        self,
        sources: Sources,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.live = Live(sources.books)
        self._sources = sources
        self._clock = clock
        self._wall_clock = wall_clock
        self._counts: deque[tuple[float, dict[str, list[int]]]] = deque()

    # -- the second --------------------------------------------------------------------------

    async def look(self) -> dict[str, Any] | None:
        """Look at everything, in slices; return the second, or None at the first look."""
        open_now = sum(it.open for it in self._sources.listeners.values())
        for _ in self.live.look(self._clock(), self._wall_clock(), open_now):
            await trio.lowlevel.checkpoint()
        if not self.live.second:
            return None
        latency = await self._latency()
        return self.live.second | self.state() | {"latency": latency}

    def state(self) -> dict[str, Any]:
        """Return what is so now, without rates."""
        sources = self._sources
        draining = sources.draining()
        return {
            "rules": [it._asdict() for it in sources.rules()],
            "denials": [
                it._asdict() | {"number": number} for it, number in dict(sources.denied).items()
            ],
            "brokers": [it._asdict() for it in sources.brokers()],
            "listeners": [
                {
                    "listener": name,
                    "open": it.open,
                    "opening": it.opening,
                    "accepted": it.accepted,
                    "ended": {reason.value: n for reason, n in it.ended.items() if n},
                }
                for name, it in sources.listeners.items()
            ],
            "drain": None if draining is None else draining._asdict(),
            "ready": sources.unready(),
            "process": self._process(),
        }

    def status(self) -> dict[str, Any]:
        """Return the state, with the time."""
        return {"at": self._wall_clock()} | self.state()

    def _process(self) -> dict[str, Any]:
        sources = self._sources
        used, most = sources.descriptors()
        return {
            "version": sources.version,
            "started_at": sources.started_at,
            "loop_delay_p99": quantile(sources.delays.counts, 0.99),
            "buffered_bytes": sources.plane().buffered,
            "descriptors": used,
            "descriptor_limit": most,
            "draining": sources.draining() is not None,
        }

    async def _latency(self) -> list[dict[str, Any]]:
        """Return quantiles of the last minute, or since the first look."""
        now, counts = self._clock(), await self._latency_counts()
        self._counts.append((now, counts))
        while len(self._counts) > 1 and self._counts[1][0] <= now - LATENCY_SECONDS:
            self._counts.popleft()
        _, before = self._counts[0]
        found = []
        for what, each in counts.items():
            came = since(each, before.get(what))
            shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
            quantiles = {name: quantile(came, share) for name, share in shares.items()}
            found.append({"what": what, "count": sum(came), **quantiles})
        return found

    async def _latency_counts(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for listener in self._sources.latencies.values():
            _add(found, "connect", listener.connect.counts)
            for number, tenant in enumerate(tuple(listener.tenants.values()), 1):
                for what in ("send", "own", "lookup", "first_message"):
                    _add(found, what, getattr(tenant, what).counts)
                if number % TENANTS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
        return found

    # -- tables ------------------------------------------------------------------------------

    async def connections(self, page: Page) -> dict[str, Any]:
        """Return open connections. Raises `BadQueryError`."""
        rows = await _in_slices(map(self._connection, self._sources.connections()))
        return _paged(rows, page, _CONNECTION_ORDERS, ("client", "principal", "library", "broker"))

    def connection(self, id: int) -> dict[str, Any] | None:
        """Return one connection with its producers and consumers; None if there is none."""
        facts = next((it for it in self._sources.connections() if it.id == id), None)
        if facts is None:
            return None
        accounts = [
            {
                "action": account.action.value,
                "topic": account.topic,
                "subscription": account.subject.subscription,
                "messages": account.messages,
                "bytes": account.bytes,
                "held_bytes": account.queued,
            }
            for account in list(self._sources.accounts.of(id))[:MOST_ROWS]
        ]
        return self._connection(facts) | {"accounts": accounts}

    def _connection(self, facts: ConnectionFacts) -> dict[str, Any]:
        accounts = self._sources.accounts.of(facts.id)
        producers = sum(account.action == "produce" for account in accounts)
        return {
            "id": facts.id,
            "listener": facts.listener,
            "client": facts.client,
            "principal": facts.caller.principal,
            "library": facts.caller.library,
            "method": facts.caller.method,
            "broker": facts.broker,
            "tls": facts.tls,
            "seconds": round(facts.seconds, 1),
            "producers": producers,
            "consumers": len(accounts) - producers,
            "held_bytes": sum(account.queued for account in accounts),
        }

    async def topics(self, page: Page) -> dict[str, Any]:
        """Return topics and their totals since the start. Raises `BadQueryError`."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for row in await _in_slices(self._topic_rows()):
            key = row["cluster"], row["tenant"], row["topic"]
            known = found.setdefault(key, row)
            if known is not row:  # a part of the same topic
                for name, value in row.items():
                    if not isinstance(value, str):
                        known[name] += value
        return _paged(list(found.values()), page, _TOPIC_ORDERS, ("topic", "tenant"))

    def _topic_rows(self) -> Iterator[dict[str, Any]]:
        for cluster, book in self._sources.books.items():
            for topic, made, taken, *waits in book.topics():
                waited = (it.by_rule.values() for it in waits if it is not None)
                yield {
                    "topic": topic.name,
                    "tenant": topic.tenant,
                    "cluster": cluster,
                    "producers": made.open,
                    "consumers": taken.open,
                    "subscriptions": taken.subscriptions,
                    "messages_in": made.messages,
                    "bytes_in": made.bytes,
                    "messages_out": taken.messages,
                    "bytes_out": taken.bytes,
                    "held_bytes": made.held + taken.held,
                    "wait_seconds": round(sum(it.seconds for each in waited for it in each), 3),
                }

    def slowest(self, topic: str | None) -> dict[str, Any]:
        """Return the slowest sends of the last minutes, of one topic or of all."""
        return {
            "sends": [
                {
                    "seconds": send.seconds,
                    "at": send.at,
                    "topic": send.topic,
                    "principal": send.subject.principal,
                    "connection": send.subject.connection,
                }
                for send in self._sources.slow.slowest(topic)[:MOST_ROWS]
            ]
        }

    def configuration(self) -> dict[str, Any]:
        """Return the configuration, without secrets."""
        return {"text": self._sources.configuration()}


def _add(found: dict[str, list[int]], what: str, counts: list[int]) -> None:
    sums = found.setdefault(what, [0] * len(counts))
    for at, count in enumerate(counts):
        sums[at] += count


async def _in_slices(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for number, row in enumerate(rows, 1):
        found.append(row)
        if number % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    return found


def _paged(
    rows: list[dict[str, Any]], page: Page, orders: tuple[str, ...], searched: tuple[str, ...]
) -> dict[str, Any]:
    order = page.sort or orders[0]
    if order not in orders:
        raise BadQueryError(f"sort: is not one of {', '.join(orders)}")
    text = page.search.casefold()
    matching = [
        row for row in rows if any(text in str(row[name] or "").casefold() for name in searched)
    ]
    is_text = any(isinstance(row[order], str) for row in matching)
    none: Any = "" if is_text else -1
    matching.sort(
        key=lambda row: none if row[order] is None else row[order], reverse=page.descending
    )
    shown = matching[page.offset : page.offset + page.limit]
    return {"total": len(rows), "matching": len(matching), "rows": shown}


def page_of(query: Mapping[str, str]) -> Page:
    """Return the page that a query asks for. Raises `BadQueryError`."""
    descending = query.get("descending", "true")
    if descending not in ("true", "false"):
        raise BadQueryError("descending: is neither true nor false")
    return Page(
        query.get("search", "")[:200],
        query.get("sort", ""),
        descending == "true",
        whole(query, "limit", 100, MOST_ROWS),
        whole(query, "offset", 0, 1 << 31),
    )


def whole(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return a whole number of a query. Raises `BadQueryError`."""
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise BadQueryError(f"{name}: is not a whole number from 0 to {most}")
    return int(text)
