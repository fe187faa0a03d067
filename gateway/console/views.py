"""The responses of the console's API, as plain values for JSON, merged from all processes of a
gateway."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from gateway.console import merging
from gateway.console.facts import AT_ONCE
from gateway.console.live import SHOWN
from gateway.console.paging import CONNECTIONS, MOST_ROWS, TOPICS, Page, matching
from gateway.console.quantiles import quantile, since

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.console.asking import Ask

HISTORY = 300
"""Seconds that are kept: five minutes, 500 bytes each."""

LATENCY_SECONDS = 60
"""Seconds that quantiles of latency are about."""


class About(NamedTuple):
    """Facts about the gateway that are the same in all its processes. `started_at`: seconds since
    1970. `configuration`: returns the text of the configuration, without secrets."""

    version: str
    started_at: float
    configuration: Callable[[], str]


class Views:
    """Makes the content of the API's responses. `history`: the totals of the last `HISTORY` seconds
    in which the feed had readers."""

    def __init__(
        self,
        ask: Ask,
        about: About,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._ask = ask
        self._about = about
        self._clock = clock
        self._wall_clock = wall_clock
        self._counts: deque[tuple[float, dict[str, list[int]]]] = deque()

    # -- the second --------------------------------------------------------------------------

    async def look(self) -> dict[str, Any] | None:
        """Read the state of all processes. Return it with the rates of the last second; None if no
        process has rates yet."""
        answers = [parts[-1] for parts in await self._ask("second", None)]
        latency = self._latency(merging.total([answer["latency"] for answer in answers]) or {})
        second = merging.second([answer["live"] for answer in answers], SHOWN)
        if second is None:
            return None
        at = {"at": self._wall_clock()}
        second["now"] = at | second["now"]
        self.history.append(second["now"])
        return at | second | self._state(answers) | {"latency": latency}

    async def rest(self) -> None:
        """Have all processes drop the counters that they last read, because no client reads the
        feed any more."""
        await self._ask("rest", None)

    async def status(self) -> dict[str, Any]:
        """Return the current state of the gateway, without rates."""
        answers = [parts[-1] for parts in await self._ask("state", None)]
        return {"at": self._wall_clock()} | self._state(answers)

    def _state(self, answers: list[dict[str, Any]]) -> dict[str, Any]:
        state = merging.state(answers)
        about = {"version": self._about.version, "started_at": self._about.started_at}
        return state | {"process": about | state["process"]}

    def _latency(self, counts: dict[str, list[int]]) -> list[dict[str, Any]]:
        """Return quantiles of the last minute, or since the first reading."""
        now = self._clock()
        self._counts.append((now, counts))
        while len(self._counts) > 1 and self._counts[1][0] <= now - LATENCY_SECONDS:
            self._counts.popleft()
        _, before = self._counts[0]
        rows = []
        for what, each in counts.items():
            came = since(each, before.get(what))
            shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
            quantiles = {name: quantile(came, share) for name, share in shares.items()}
            rows.append({"what": what, "count": sum(came), **quantiles})
        return rows

    # -- tables ------------------------------------------------------------------------------

    async def connections(self, page: Page) -> dict[str, Any]:
        """Return one page of the open connections, with the number of all connections and of those
        that match the search."""
        parts = [part for parts in await self._ask("connections", list(page)) for part in parts]
        rows = [row for part in parts for row in part["rows"]]
        return {
            "total": sum(part["total"] for part in parts),
            "matching": sum(part["matching"] for part in parts),
            "rows": _shown(matching(rows, page._replace(search=""), CONNECTIONS), page),
        }

    async def connection(self, id: int) -> dict[str, Any] | None:
        """Return the connection with this id, with its producers and consumers; None if no open
        connection has this id."""
        for parts in await self._ask("connection", id):
            if parts:
                connection: dict[str, Any] = parts[0]
                return connection
        return None

    async def topics(self, page: Page) -> dict[str, Any]:
        """Return one page of the topics, with their totals since the start of the gateway."""
        by_topic: dict[tuple[str, str, str], dict[str, Any]] = {}
        rows = (row for parts in await self._ask("topics", None) for part in parts for row in part)
        for number, row in enumerate(rows, 1):
            key = row["cluster"], row["tenant"], row["topic"]
            known = by_topic.get(key)
            by_topic[key] = row if known is None else merging.added(known, row)
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        matched = matching(list(by_topic.values()), page, TOPICS)
        shown = [
            row | {"wait_seconds": round(row["wait_seconds"], 3)} for row in _shown(matched, page)
        ]
        return {"total": len(by_topic), "matching": len(matched), "rows": shown}

    async def slowest(self, topic: str | None) -> dict[str, Any]:
        """Return the slowest sends of the last minutes, of one topic, or of all topics if `topic`
        is None."""
        sends = [
            send for parts in await self._ask("slowest", topic) for part in parts for send in part
        ]
        sends.sort(key=lambda send: send["seconds"], reverse=True)
        return {"sends": sends[:MOST_ROWS]}

    def configuration(self) -> dict[str, Any]:
        """Return the text of the configuration, without secrets."""
        return {"text": self._about.configuration()}


def _shown(rows: list[dict[str, Any]], page: Page) -> list[dict[str, Any]]:
    return rows[page.offset : page.offset + page.limit]
