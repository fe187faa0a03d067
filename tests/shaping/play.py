"""One scenario, once: programs begin, it lasts its time, and what is known of it is gathered."""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.clients.loads import Stream, loading, read
from tests.clients.programs import Program
from tests.real.brokers.admin import Admin
from tests.real.gateways import Gateway, Upstream
from tests.real.metrics import scrape, settled_total, total

from . import stored
from .figures import SECOND, Waits, Window, failures, jain, per_step
from .results import Passed, Trial
from .scenarios import Flow, Scenario, Unit
from .stored import Stored
from .watch import Watch
from .ways import Route, prepare, route

SPARE = 0.5
"""Seconds that a load goes on behind what is measured."""
STARTING = 60
"""Seconds that a program may need to begin, on a busy machine."""
WRITING = 60
"""Seconds that one may need to write what it noted."""
CURVE_STEP = 0.25

Senders = Mapping[str, Stream]
"""By how they sign their messages."""


@dataclass(frozen=True)
class Setting:
    """Where scenarios are played. A broker without an `admin` has no policies of its own."""

    broker: Upstream
    admin: Admin | None
    programs: Mapping[str, Program]
    folder: Path


def play(scenario: Scenario, setting: Setting) -> Trial:
    """Let it happen."""
    at = datetime.now(UTC)
    name = f"{scenario.part}-{at:%H%M%S%f}"
    folder, namespace = setting.folder / name, f"public/{name}"
    folder.mkdir(parents=True)
    if setting.admin is not None:
        prepare(scenario, setting.admin, namespace)
    topics = {flow.topic: f"persistent://{namespace}/{flow.topic}" for flow in scenario.flows}
    for topic in topics.values():
        stored.keep(setting.broker.service_url, topic)
    with route(scenario, setting.broker, folder) as way:
        senders, looks = _load(scenario, setting, way, topics, folder)
        told = _told(way.gateway, looks) if way.gateway else {}
        size = _size(scenario, setting, way, topics)
    window = Window.behind(senders.values(), scenario.warm_up, scenario.seconds)
    return Trial(
        *(scenario.part, scenario.name, scenario.client, scenario.way.value),
        at.isoformat(timespec="seconds"),
        *(scenario.limit.rate, scenario.limit.unit.value, size, scenario.seconds),
        _elapsed(senders.values()),
        asdict(scenario.offer),
        scenario.programs,
        tuple(_flow(flow, topics, senders, window, scenario, setting) for flow in scenario.flows),
        facts={"load": os.getloadavg()[0]},
        gateway=told,
        curve=_curve(scenario, senders.values(), topics) if scenario.curve else {},
    )


# -- the load ------------------------------------------------------------------------------------


def _load(
    scenario: Scenario, setting: Setting, way: Route, topics: Mapping[str, str], folder: Path
) -> tuple[Senders, Watch | None]:
    streams = [(topics[it.topic], it.rate) for it in scenario.flows for _ in range(it.producers)]
    lasts = scenario.warm_up + scenario.seconds + SPARE
    offer = replace(scenario.offer, limit=int(lasts) + scenario.offer.patience + STARTING)
    files = [folder / f"{scenario.client}-{number}" for number in range(scenario.programs)]
    program = setting.programs[scenario.client]
    with ExitStack() as stack:
        running = [
            stack.enter_context(loading(program, way.url, streams, file, offer)) for file in files
        ]
        for each in running:
            each.await_ready()
        with _watched(way) as watch:
            time.sleep(lasts)
        for each in running:
            each.tell_to_stop()
        for each in running:
            each.await_loaded(WRITING)
    return {f"{file.stem}.{n}": it for file in files for n, it in enumerate(read(file))}, watch


@contextmanager
def _watched(way: Route) -> Iterator[Watch | None]:
    if way.gateway is None:
        yield None
        return
    with Watch(way.gateway) as watch:
        yield watch


# -- what is made of it --------------------------------------------------------------------------


def _flow(
    flow: Flow,
    topics: Mapping[str, str],
    senders: Senders,
    window: Window,
    scenario: Scenario,
    setting: Setting,
) -> Passed:
    topic = topics[flow.topic]
    mine = {tag: it for tag, it in senders.items() if it.topic == topic}
    receipts = [list(it.receipts) for it in mine.values()]
    counts = [window.count(settled for _, settled in each) for each in receipts]
    acknowledged = sum(map(len, receipts))
    failed = failures(mine.values())
    tries = sum(len(it.sent) for it in mine.values())
    passed = Passed(
        flow.topic,
        len(mine),
        sum(window.count(it.sent) for it in mine.values()) / window.seconds,
        sum(counts) / window.seconds,
        jain(counts),
        Waits.of(pair for each in receipts for pair in each if window.holds(pair[1])),
        acknowledged,
        failed,
        tries - acknowledged - sum(failed.values()),
    )
    if not scenario.reads:
        return passed
    return _checked(passed, mine, stored.read(setting.broker.service_url, topic))


def _checked(passed: Passed, mine: Senders, found: Stored) -> Passed:
    """All that had a receipt must be there."""
    missing = sum(len(set(it.acknowledged) - found.numbers[tag]) for tag, it in mine.items())
    return replace(
        passed,
        stored=found.count,
        missing=missing,
        doubled=found.doubled,
        disordered=found.disordered,
    )


def _elapsed(streams: Collection[Stream]) -> float:
    """Seconds from the first send to the last receipt."""
    receipts = [pair for it in streams for pair in it.receipts]
    if not receipts:
        return 0.0
    return (max(when for _, when in receipts) - min(sent for sent, _ in receipts)) / SECOND


def _told(gateway: Gateway, watch: Watch | None) -> dict[str, float]:
    """What it says of itself: the most bytes that waited, those that still do, and in what part of
    the time any did; the memory it had before and at most; connections that were accepted, and
    ended before the load did; frames that passed, and CPU seconds.
    """
    looks = watch.looks if watch else []
    text = scrape(gateway.metrics_url)
    frames = total(text, "gateway_topic_frames_total", direction="to_broker")
    cpu = looks[-1].cpu - looks[0].cpu if looks else 0.0
    return {
        "buffered": max((it.buffered for it in looks), default=0.0),
        "left": settled_total(gateway.metrics_url, 0.0, "gateway_buffered_bytes"),
        "waiting": sum(it.buffered > 0 for it in looks[1:]) / max(1, len(looks) - 1),
        "memory before": looks[0].memory if looks else 0.0,
        "memory": max((it.memory for it in looks), default=0.0),
        "connections": looks[-1].accepted if looks else 0.0,
        "ended": looks[-1].ended if looks else 0.0,
        "frames": frames,
        "cpu": cpu,
    }


def _size(scenario: Scenario, setting: Setting, way: Route, topics: Mapping[str, str]) -> float:
    """Bytes of a message as the one who limits counts them."""
    if scenario.limit.unit is Unit.MESSAGES:
        return 0.0
    if way.gateway is not None:
        text = scrape(way.gateway.metrics_url)
        size = total(text, "gateway_topic_bytes_total", direction="to_broker")
        return size / max(1.0, total(text, "gateway_topic_messages_total", direction="to_broker"))
    assert setting.admin is not None
    stats = setting.admin.stats(topics[scenario.flows[0].topic])
    return float(stats["bytesInCounter"]) / max(1, int(stats["msgInCounter"]))


def _curve(
    scenario: Scenario, streams: Collection[Stream], topics: Mapping[str, str]
) -> dict[str, Any]:
    """Of what is limited, from the first send on."""
    mine = [it for it in streams if it.topic == topics[scenario.flows[0].topic]]
    start = min(it.sent[0] for it in mine)
    steps = int((scenario.warm_up + scenario.seconds) / CURVE_STEP)
    sent = [moment for it in mine for moment in it.sent]
    settled = [when for it in mine for _, when in it.receipts]
    offered = per_step(sent, start, CURVE_STEP, steps)
    passed = per_step(settled, start, CURVE_STEP, steps)
    return {"step": CURVE_STEP, "offered": offered, "passed": passed}
