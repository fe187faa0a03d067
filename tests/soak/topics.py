"""Whether memory returns when topics come and go: waves of producers on topics that nobody has used
before and nobody will use again.

Metrics, records and the console remember each topic that has traffic, up to `metrics.topics`, and
an idle one for `metrics.idle`. So memory grows with the first waves and then no more, and all that
topics took is free when they have been idle. It is free for the process, which uses it again: what
lives on, such as the rows of tenants, lies between what has gone, so few arenas of Python's
allocator are empty as a whole and go back to the system.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

from tests.hostile.peers import HOST, PATIENCE
from tests.real.brokers.ports import free_ports
from tests.soak import brokers, report
from tests.soak.crowd import TENANTS, Crowd, topics
from tests.soak.report import MIB, mib
from tests.soak.runner import Gateway, claim, in_time, running
from tests.support.looking import Looks, reading_feed, scraping

TOPICS = 20_000
"""Of a wave."""

WAVES = 5

KEPT = 2
"""Waves whose topics have metrics of their own at a time: from the third one on, older topics are
folded for newer ones."""

FOLDED_FROM = KEPT + 1
"""The wave since which memory does not grow."""

IDLE = 60.0
"""Seconds after which an idle topic is folded: the shortest setting."""

INTERVAL = 1.0
"""Seconds of a usage record: what it remembers of the keys in use is gone so soon."""

SETTLED = 3.0
"""Seconds after which the records of a wave are written, and who looks has seen its end."""

EVERY = 5.0
"""Seconds between two scrapes while a wave lasts: a scrape of all topics takes a tenth of it."""

LONGEST = IDLE + 60.0
"""Seconds to wait for topics that are idle. The gateway looks for them every `IDLE / 10`."""

GROWTH = 16 * MIB
"""Resident bytes that may come with further waves: free space in the pools of the allocators, which
depends on how requests, records and scrapes came together."""

BLOCKS = 20_000
"""Memory blocks of Python objects that may come with further waves: one for each topic of a wave. A
topic that is remembered has ten."""

PATH = "/metrics/topics"


@dataclass(frozen=True, slots=True)
class Look:
    """The gateway at one moment. `rows`: topics of the scrape, `told`: of the console's API. Bytes,
    and memory blocks of Python objects."""

    title: str
    seconds: float
    producers: int
    rows: int
    told: int
    rss: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """`opened`, `closed`: of each wave. `idle`: when all topics are folded. `records`: that were
    written."""

    topics: int
    before: Look
    opened: list[Look]
    closed: list[Look]
    idle: Look | None
    records: int


def run(
    folder: Path,
    number: int = TOPICS,
    *,
    waves: int = WAVES,
    until_idle: bool = True,
    settled: float = SETTLED,
    growth: int = GROWTH,
    blocks: int = BLOCKS,
) -> Outcome:
    """Run all waves of this many topics, and claim that memory is bounded; `until_idle`: also that
    what they took is free at last, which takes a minute."""
    (port,) = free_ports(HOST, 1)
    console = f"{HOST}:{port}"
    with (
        brokers.in_process(folder, 1) as addresses,
        running(folder, addresses, _settings(folder, console, number)) as gateway,
    ):
        outcome = _Waves(gateway, console, number, settled).run(waves, until_idle=until_idle)
    _claim_counted(outcome, waves)
    _claim_bounded(outcome, growth, blocks)
    return outcome


def _settings(folder: Path, console: str, number: int) -> dict[str, Any]:
    return {
        "metrics": {"topics": KEPT * number, "idle": f"{IDLE:g}s"},
        "usage": {"folder": str(folder / "usage"), "interval": f"{INTERVAL:g}s"},
        "console": {"bind": console},
    }


def _claim_counted(it: Outcome, waves: int) -> None:
    """Claim that all topics were counted, and those beyond the bound folded by tenant."""
    claim(it.records >= waves * it.topics, f"only {it.records} records were written")
    most = KEPT * it.topics + TENANTS
    for look in it.closed:  # where a wave takes a minute, the one before it is folded too
        claim(it.topics <= look.rows <= most, f"{look.title}: {look.rows} rows\n{table(it)}")


def _claim_bounded(it: Outcome, growth: int, blocks: int) -> None:
    """Claim that memory does not grow with further waves, and is free when topics are idle."""
    bounded, last = it.closed[FOLDED_FROM - 1], it.closed[-1]
    grown = last.rss - bounded.rss
    claim(grown <= growth, f"memory grows by {mib(grown)} with further waves\n{table(it)}")
    more = last.blocks - bounded.blocks
    claim(more <= blocks, f"{more} blocks come with further waves\n{table(it)}")
    if it.idle is not None:
        more = it.idle.blocks - it.closed[0].blocks
        claim(more <= 0, f"{more} blocks more when all are idle than after one wave\n{table(it)}")


class _Waves:
    """One gateway, and the waves of its clients."""

    def __init__(self, gateway: Gateway, console: str, number: int, settled: float) -> None:
        self._gateway = gateway
        self._console = console
        self._number = number
        self._settled = settled
        self._began = time.monotonic()

    def run(self, waves: int, *, until_idle: bool) -> Outcome:
        self._wave(0, 64)  # what is made once does not count
        before, opened, closed = self._look("before"), list[Look](), list[Look]()
        for wave in range(1, waves + 1):
            with reading_feed(self._console) as seen, self._scraped() as got:
                opened.append(self._wave(wave, self._number))
                looked = in_time(partial(_all_looked, (seen, got)))
                claim(bool(looked), "nobody looked")
            closed.append(self._look(f"wave {wave}, closed"))
        claim(not until_idle or self._are_folded(), "topics are not folded though they are idle")
        idle = self._look("all idle") if until_idle else None
        records = self._gateway.metrics().matching("gateway_usage_records_total", '"usage"')
        return Outcome(self._number, before, opened, closed, idle, int(sum(records)))

    def _scraped(self) -> AbstractContextManager[Looks]:
        return scraping(self._gateway.admin, PATH, every=EVERY)

    def _wave(self, wave: int, number: int) -> Look:
        """Open, use and close producers on new topics; return the look while they are open."""
        crowd = Crowd(self._gateway.ports["passing"], topics(number, wave))
        crowd.use()
        look = self._look(f"wave {wave}, open")
        crowd.close()
        claim(bool(in_time(self._gateway.is_at_rest)), "connections stayed")
        return look

    def _are_folded(self) -> bool:
        until = time.monotonic() + LONGEST
        while "/crowd/" in self._page():
            if time.monotonic() > until:
                return False
            time.sleep(1.0)
        return True

    def _page(self) -> str:
        """Return a scrape. The gateway cuts one that takes five seconds, as on a busy machine."""

        def whole() -> str:
            with suppress(IncompleteRead):
                return self._gateway.page(PATH)
            return ""

        page = in_time(whole)
        claim(bool(page), "no scrape ends within five seconds")
        return page or ""

    def _look(self, title: str) -> Look:
        time.sleep(self._settled)
        gateway = self._gateway
        rows = self._page().count("\ngateway_topic_messages_total{")
        told = _asked(self._console, "/api/v1/topics?limit=1")["total"]
        open_now = gateway.metrics().matching("gateway_tenant_producers{")
        seconds, rss = time.monotonic() - self._began, gateway.rss
        blocks = gateway.report().blocks
        return Look(title, seconds, int(sum(open_now)), rows, told, rss, blocks)


def _all_looked(looks: Sequence[Looks]) -> bool:
    return all(it.number for it in looks)


def _asked(console: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{console}{path}", timeout=6 * PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def table(it: Outcome) -> str:
    """Return a table with a line for each look."""
    head = [f"waves of {it.topics:,} topics", "after", "open producers", "rows of the scrape",
            "topics of the console", "RSS", "blocks of memory"]  # fmt: skip
    waves = [look for pair in zip(it.opened, it.closed, strict=True) for look in pair]
    looks = [it.before, *waves, *([] if it.idle is None else [it.idle])]
    return report.table(head, map(_row, looks))


def _row(it: Look) -> list[str]:
    return [
        it.title, f"{it.seconds:.0f} s", f"{it.producers:,}", f"{it.rows:,}", f"{it.told:,}",
        mib(it.rss), f"{it.blocks:,}",
    ]  # fmt: skip
