"""What looking at a gateway costs its clients: round trips while metrics are scraped, the console's
feed is read, and usage records are written.

There are two gateways, each with a producer on every one of thousands of topics. One counts, as all
do; the other one writes records too, and has a console. A client sends messages at a steady pace,
and the producers of all topics in turn, so that each has a record in each interval. Windows in
which somebody looks alternate with windows in which nobody does.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.bench.rounds import interleaved
from tests.hostile.peers import HOST, PATIENCE, Client
from tests.real.brokers.ports import free_ports
from tests.soak import brokers, report
from tests.soak.crowd import Crowd, topics
from tests.soak.runner import Gateway, claim, running
from tests.support.frames import send
from tests.support.looking import Looks, reading_feed, scrape, scraping

TOPICS = 10_000

ROUNDS = 6

SECONDS = 6.0
"""Of a window: six scrapes, and three ends of an interval."""

INTERVAL = 2.0
"""Seconds of a usage record, in which each topic is used once. The default is five times as long,
so records are as many, and come as often, as with five times as many topics."""

PACE = 0.005
"""Seconds from one message to the next."""

ADDED = 100.0
"""Milliseconds that the slowest of a hundred round trips may take longer because somebody looks.
Slices are of a millisecond, but where other programs use both cores, that much comes by chance."""

STEP = 50.0
"""Milliseconds of CPU time of the longest step of a task, between two of which messages pass. A
collection of garbage takes 10, and a slow machine three times as long."""

SCRAPES = 10
"""Scrapes of a path, whose CPU time is counted in hundredths of a second."""

PATHS = "/metrics", "/metrics/topics"

PAYLOAD = b"x" * 1000


class Way(NamedTuple):
    """How a gateway is looked at. `records`: it writes usage records, and has a console."""

    title: str
    records: bool = False
    scraped: bool = False
    read: bool = False


WAYS = (
    Way("counting, nobody looks"),
    Way("scraped each second", scraped=True),
    Way("usage records", records=True),
    Way("usage records, the feed is read", records=True, read=True),
    Way("usage records, feed, scraped", records=True, scraped=True, read=True),
)
"""The first is what the others are compared with."""


@dataclass(frozen=True, slots=True)
class Window:
    """Milliseconds of each round trip, and of the longest step of a task of the gateway; the part
    of a core that it used."""

    trips: list[float]
    step: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape: its samples, its bytes with gzip, milliseconds of CPU time, and of the longest
    step."""

    path: str
    samples: int
    size: int
    cpu: float
    step: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """`windows`: by way. `records`: that the second gateway wrote in these."""

    topics: int
    windows: dict[Way, list[Window]]
    scrapes: list[Scrape]
    records: int


def run(
    folder: Path,
    number: int = TOPICS,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    *,
    added: float = ADDED,
    step: float = STEP,
) -> Outcome:
    """Measure all ways, and claim what must hold for any."""
    with brokers.in_process(folder, 1) as addresses, ExitStack() as stack:
        served = {
            records: stack.enter_context(_serving(folder, addresses, number, records=records))
            for records in (False, True)
        }
        windows: dict[Way, list[Window]] = {way: [] for way in WAYS}
        for way in interleaved(WAYS, rounds):
            windows[way].append(_window(way, served[way.records], seconds))
        records = _records(served[True].gateway)
        scrapes = [_scraped(served[False].gateway, path) for path in PATHS]
    outcome = Outcome(number, windows, scrapes, records)
    _claim_looks(outcome)
    _claim_short(outcome, added, step)
    return outcome


def _claim_looks(it: Outcome) -> None:
    """Claim that what was measured took place."""
    windows = [window for way, each in it.windows.items() if way.records for window in each]
    least = it.topics * len(windows)
    claim(it.records >= least, f"{it.records} records were written in {len(windows)} windows")
    seen = it.scrapes[-1].samples
    claim(seen >= 4 * it.topics, f"a scrape of {it.topics} topics has {seen} samples")


def _claim_short(it: Outcome, added: float, step: float) -> None:
    """Claim that nobody waits for long: milliseconds."""
    more = max(_p99(it.windows[way]) for way in WAYS) - _p99(it.windows[WAYS[0]])
    claim(more <= added, f"looking adds {more:.1f} ms to the 99 % of round trips\n{table(it)}")
    steps = [window.step for each in it.windows.values() for window in each]
    longest = max(*steps, *(scrape.step for scrape in it.scrapes))
    claim(longest <= step, f"a step of a task took {longest:.1f} ms\n{table(it)}")


# -- the gateways ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Served:
    """A gateway with its clients. `console`: an address. `step`: has some topics used."""

    gateway: Gateway
    console: str
    client: Client
    step: Callable[[], None]


@contextmanager
def _serving(
    folder: Path, addresses: Sequence[str], number: int, *, records: bool
) -> Iterator[_Served]:
    (port,) = free_ports(HOST, 1)
    folder = folder / ("records" if records else "counting")
    folder.mkdir()
    settings = _with_records(folder, f"{HOST}:{port}") if records else {}
    with running(folder, addresses, settings) as gateway:
        crowd = Crowd(gateway.ports["passing"], topics(number))
        crowd.use()
        sending = crowd.sending(max(1, round(number * PACE / INTERVAL)))
        with Client(gateway.ports["passing"]).open() as client:
            client.produce()
            yield _Served(gateway, f"{HOST}:{port}", client, lambda: next(sending))
        crowd.leave()


def _with_records(folder: Path, console: str) -> dict[str, Any]:
    return {
        "usage": {"folder": str(folder / "usage"), "interval": f"{INTERVAL:g}s"},
        "console": {"bind": console},
    }


def _records(gateway: Gateway) -> int:
    metrics = gateway.metrics()
    dropped = sum(metrics.matching("gateway_usage_records_dropped_total"))
    claim(dropped == 0, f"{dropped:.0f} records were dropped")
    return int(sum(metrics.matching("gateway_usage_records_total", 'stream="usage"')))


# -- windows -----------------------------------------------------------------------------------


def _window(way: Way, served: _Served, seconds: float) -> Window:
    gateway = served.gateway
    with _looked_at(way, served) as looks:
        gateway.report()  # of the time before
        cpu, began, before = gateway.cpu, time.monotonic(), [it.number for it in looks]
        trips = _trips(served, seconds)
        used = (gateway.cpu - cpu) / (time.monotonic() - began)
        seen = [it.number - number for it, number in zip(looks, before, strict=True)]
        step = gateway.report().step
    claim(all(seen), f"{way.title}: nobody looked")
    return Window(trips, step, used)


@contextmanager
def _looked_at(way: Way, served: _Served) -> Iterator[list[Looks]]:
    with ExitStack() as stack:
        looks = list[Looks]()
        if way.scraped:
            looks.append(stack.enter_context(scraping(served.gateway.admin, *PATHS)))
        if way.read:
            looks.append(stack.enter_context(reading_feed(served.console)))
        yield looks


def _trips(served: _Served, seconds: float) -> list[float]:
    """Send at the pace, and return the milliseconds until each receipt. A message waits for none
    before it."""
    trips, sent, client = list[float](), deque[float](), served.client
    due = time.perf_counter()
    until = due + seconds
    while due < until or sent:
        left = due - time.perf_counter() if due < until else PATIENCE
        if left <= 0:
            sent.append(time.perf_counter())
            client.say(send(1, len(trips), PAYLOAD))
            served.step()
            due += PACE
        elif select.select([client.sock], [], [], left)[0]:
            client.hear()
            trips.append(1000 * (time.perf_counter() - sent.popleft()))
    return trips


def _scraped(gateway: Gateway, path: str) -> Scrape:
    """Scrape a path while nothing else happens."""
    samples = sum(not line.startswith("#") for line in gateway.page(path).splitlines())
    gateway.report()
    before = gateway.cpu
    sizes = [scrape(gateway.admin, path) for _ in range(SCRAPES)]
    used = 1000 * (gateway.cpu - before) / SCRAPES
    return Scrape(path, samples, sizes[-1], used, gateway.report().step)


# -- tables ------------------------------------------------------------------------------------


def table(it: Outcome) -> str:
    """Return a table of the ways, and one of the scrapes. `99 %`: the median of those of all
    windows; `step`: the longest of a task of the gateway, in CPU time."""
    head = [f"{it.topics:,} topics", "round trips", "median", "99 %", "added to 99 %", "longest"]
    usual = _p99(it.windows[WAYS[0]])
    ways = report.table([*head, "step", "CPU"], [_row(*each, usual) for each in it.windows.items()])
    head = ["a scrape of", "samples", "with gzip", "CPU", "step"]
    rows = [
        [f"`{at.path}`", f"{at.samples:,}", f"{at.size / 1e6:.2f} MB", *_ms(at.cpu, at.step)]
        for at in it.scrapes
    ]
    return f"{ways}\n\n{report.table(head, rows)}"


def _row(way: Way, windows: Sequence[Window], usual: float) -> list[str]:
    trips = sorted(trip for window in windows for trip in window.trips)
    late = _p99(windows)
    figures = median(trips), late, late - usual, trips[-1], max(window.step for window in windows)
    used = median(window.cpu for window in windows)
    return [way.title, f"{len(trips):,}", *_ms(*figures), f"{used:.1%}"]


def _p99(windows: Sequence[Window]) -> float:
    """Return what the slowest of a hundred round trips take: the median of all windows."""
    return median(sorted(it.trips)[int(len(it.trips) * 0.99) - 1] for it in windows)


def _ms(*figures: float) -> list[str]:
    return [f"{figure:.2f} ms" for figure in figures]
