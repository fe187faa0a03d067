"""Answers the console's questions from the state of one process.

Each answer reads the state anew. `Live` alone keeps state: the counters of the previous reading,
while the console has readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.console.live import SHOWN, Live
from gateway.console.paging import CONNECTIONS, Page, matching

if TYPE_CHECKING:
    from gateway.console.accounts import OpenAccounts
    from gateway.console.asking import Answers
    from gateway.telemetry.figures import (
        BrokerHealth,
        Denied,
        ExpiredRule,
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

ROWS_AT_ONCE = 100
"""Rows of one part: 30 KB, which take a quarter of a millisecond as JSON."""

MOST_ACCOUNTS = 1000
"""Most producers and consumers that are reported of one connection."""


class ConnectionFacts(NamedTuple):
    """An open connection. `client`: its address. `seconds`: how long ago it was accepted. `tls`:
    the version of TLS; None without TLS."""

    id: int
    listener: str
    client: str
    caller: Caller
    broker: str | None
    tls: str | None
    seconds: float


class Draining(NamedTuple):
    """A drain in progress. `began`: number of connections when the drain began. `connections`:
    number of connections that are left."""

    began: int
    connections: int


@dataclass(frozen=True, slots=True)
class Sources:
    """The objects from which the console's answers are read. `descriptors`: returns the number of
    open file descriptors and their limit; each is None if unknown."""

    books: Mapping[str, TopicBook]
    accounts: OpenAccounts
    connections: Callable[[], Iterable[ConnectionFacts]]
    listeners: Mapping[str, ListenerFigures]
    brokers: Callable[[], Iterable[BrokerHealth]]
    rules: Callable[[], Iterable[RuleFigures]]
    expired: Callable[[], Iterable[ExpiredRule]]
    denied: Mapping[Denied, int]
    latencies: Mapping[str, ListenerLatencies]
    slow: SlowSends
    delays: Histogram
    plane: Callable[[], PlaneFigures]
    unready: Callable[[], list[str]]
    draining: Callable[[], Draining | None]
    descriptors: Callable[[], tuple[int | None, int | None]]


class Facts:
    """Answers the console's questions for one process. `clock`: returns monotonic seconds. `shown`:
    number of rows in each table of rates (see `Live`)."""

    def __init__(self, sources: Sources, clock: Callable[[], float], shown: int = SHOWN) -> None:
        self.live = Live(sources.books, shown)
        self._sources = sources
        self._clock = clock

    def answers(self) -> Answers:
        """Return the functions that answer the console's questions, by the name of the question."""
        return {
            "second": self._second,
            "rest": self._rest,
            "state": self._state,
            "connections": self._connections,
            "connection": self._connection,
            "topics": self._topics,
            "slowest": self._slowest,
        }

    # -- the second --------------------------------------------------------------------------

    def _second(self, _: None) -> Iterator[dict[str, Any] | None]:
        open_now = sum(figures.open for figures in self._sources.listeners.values())
        yield from self.live.look(self._clock(), open_now)
        latency: dict[str, list[int]] = {}
        yield from self._add_latencies(latency)
        yield {"live": self.live.second, "latency": latency, **self._now()}

    def _rest(self, _: None) -> Iterator[None]:
        self.live.forget()
        yield None

    def _state(self, _: None) -> Iterator[dict[str, Any]]:
        yield self._now()

    def _now(self) -> dict[str, Any]:
        """Return the current state, without rates."""
        sources = self._sources
        draining = sources.draining()
        return {
            "rules": [rule._asdict() for rule in sources.rules()],
            "expired": [rule._asdict() for rule in sources.expired()],
            "denials": [
                denied._asdict() | {"number": number}
                for denied, number in dict(sources.denied).items()
            ],
            "brokers": [broker._asdict() for broker in sources.brokers()],
            "listeners": [
                {
                    "listener": name,
                    "open": figures.open,
                    "opening": figures.opening,
                    "accepted": figures.accepted,
                    "ended": {reason.value: n for reason, n in figures.ended.items() if n},
                }
                for name, figures in sources.listeners.items()
            ],
            "drain": None if draining is None else draining._asdict(),
            "ready": sources.unready(),
            "process": self._process(),
        }

    def _process(self) -> dict[str, Any]:
        used, most = self._sources.descriptors()
        return {
            "delays": list(self._sources.delays.counts),
            "buffered_bytes": self._sources.plane().buffered,
            "descriptors": used,
            "descriptor_limit": most,
        }

    def _add_latencies(self, latency: dict[str, list[int]]) -> Iterator[None]:
        """Add up the histograms of all tenants, in slices."""
        for listener in self._sources.latencies.values():
            _add(latency, "connect", listener.connect.counts)
            for number, tenant in enumerate(tuple(listener.tenants.values()), 1):
                for what in ("send", "own", "lookup", "first_message"):
                    _add(latency, what, getattr(tenant, what).counts)
                if number % TENANTS_AT_ONCE == 0:
                    yield

    # -- tables ------------------------------------------------------------------------------

    def _connections(self, query: list[Any]) -> Iterator[dict[str, Any] | None]:
        """Answer with as many rows as the page would need if this process were the only one."""
        page = Page(*query)
        rows = []
        for number, facts in enumerate(self._sources.connections(), 1):
            rows.append(self._row(facts))
            if number % AT_ONCE == 0:
                yield None
        matched = matching(rows, page, CONNECTIONS)
        yield {"total": len(rows), "matching": len(matched), "rows": []}
        for part in _parts(matched[: page.offset + page.limit]):
            yield {"total": 0, "matching": 0, "rows": part}

    def _connection(self, id: int) -> Iterator[dict[str, Any] | None]:
        facts = next(
            (connection for connection in self._sources.connections() if connection.id == id), None
        )
        if facts is None:
            yield None
            return
        accounts = [
            {
                "action": account.action.value,
                "topic": account.topic,
                "subscription": account.subject.subscription,
                "messages": account.messages,
                "bytes": account.bytes,
                "held_bytes": account.queued,
            }
            for account in list(self._sources.accounts.of(id))[:MOST_ACCOUNTS]
        ]
        yield self._row(facts) | {"accounts": accounts}

    def _row(self, facts: ConnectionFacts) -> dict[str, Any]:
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

    def _topics(self, _: None) -> Iterator[list[dict[str, Any]]]:
        """Yield all topics, in parts. The console picks the page, after it has added up the rows
        that other processes have of the same topics."""
        yield []
        yield from _parts(self._topic_rows())

    def _topic_rows(self) -> Iterator[dict[str, Any]]:
        for cluster, book in self._sources.books.items():
            for topic, made, taken, *waits, _ in book.topics():
                waited = (wait.by_rule.values() for wait in waits if wait is not None)
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
                    "wait_seconds": sum(wait.seconds for each in waited for wait in each),
                }

    def _slowest(self, topic: str | None) -> Iterator[list[dict[str, Any]]]:
        yield [
            {
                "seconds": send.seconds,
                "at": send.at,
                "topic": send.topic,
                "principal": send.subject.principal,
                "connection": send.subject.connection,
            }
            for send in self._sources.slow.slowest(topic)
        ]


def _parts(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    left = iter(rows)
    while part := list(islice(left, ROWS_AT_ONCE)):
        yield part


def _add(latency: dict[str, list[int]], what: str, counts: list[int]) -> None:
    sums = latency.setdefault(what, [0] * len(counts))
    for at, count in enumerate(counts):
        sums[at] += count
