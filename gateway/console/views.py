"""The answers of the console's API, as plain values for JSON: of all processes of a gateway."""

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
"""Seconds of which latencies are told."""


class About(NamedTuple):
    """What is the same in all processes. `started_at`: seconds since 1970. `configuration`: without
    secrets."""

    version: str
    started_at: float
    configuration: Callable[[], str]


class Views:
    """Answers of the API. `history`: the sums of the last seconds that somebody looked at."""

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
        """Look at everything; return the second, or None at the first look."""
        answers = [parts[-1] for parts in await self._ask("second", None)]
        latency = self._latency(merging.total([it["latency"] for it in answers]) or {})
        found = merging.second([it["live"] for it in answers], SHOWN)
        if found is None:
            return None
        at = {"at": self._wall_clock()}
        found["now"] = at | found["now"]
        self.history.append(found["now"])
        return at | found | self._state(answers) | {"latency": latency}

    async def rest(self) -> None:
        """Have all processes forget what they looked at: nobody looks any more."""
        await self._ask("rest", None)

    async def status(self) -> dict[str, Any]:
        """Return what is so now, without rates."""
        answers = [parts[-1] for parts in await self._ask("state", None)]
        return {"at": self._wall_clock()} | self._state(answers)

    def _state(self, answers: list[dict[str, Any]]) -> dict[str, Any]:
        state = merging.state(answers)
        about = {"version": self._about.version, "started_at": self._about.started_at}
        return state | {"process": about | state["process"]}

    def _latency(self, counts: dict[str, list[int]]) -> list[dict[str, Any]]:
        """Return quantiles of the last minute, or since the first look."""
        now = self._clock()
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

    # -- tables ------------------------------------------------------------------------------

    async def connections(self, page: Page) -> dict[str, Any]:
        """Return open connections."""
        parts = [part for parts in await self._ask("connections", list(page)) for part in parts]
        rows = [row for part in parts for row in part["rows"]]
        return {
            "total": sum(it["total"] for it in parts),
            "matching": sum(it["matching"] for it in parts),
            "rows": _shown(matching(rows, page._replace(search=""), CONNECTIONS), page),
        }

    async def connection(self, id: int) -> dict[str, Any] | None:
        """Return one connection with its producers and consumers; None if there is none."""
        for parts in await self._ask("connection", id):
            if parts:
                found: dict[str, Any] = parts[0]
                return found
        return None

    async def topics(self, page: Page) -> dict[str, Any]:
        """Return topics and their totals since the start."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        rows = (row for parts in await self._ask("topics", None) for part in parts for row in part)
        for number, row in enumerate(rows, 1):
            key = row["cluster"], row["tenant"], row["topic"]
            known = found.get(key)
            found[key] = row if known is None else merging.added(known, row)
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        matched = matching(list(found.values()), page, TOPICS)
        shown = [
            row | {"wait_seconds": round(row["wait_seconds"], 3)} for row in _shown(matched, page)
        ]
        return {"total": len(found), "matching": len(matched), "rows": shown}

    async def slowest(self, topic: str | None) -> dict[str, Any]:
        """Return the slowest sends of the last minutes, of one topic or of all."""
        sends = [it for parts in await self._ask("slowest", topic) for part in parts for it in part]
        sends.sort(key=lambda it: it["seconds"], reverse=True)
        return {"sends": sends[:MOST_ROWS]}

    def configuration(self) -> dict[str, Any]:
        """Return the configuration, without secrets."""
        return {"text": self._about.configuration()}


def _shown(rows: list[dict[str, Any]], page: Page) -> list[dict[str, Any]]:
    return rows[page.offset : page.offset + page.limit]
