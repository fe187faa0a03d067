"""Plays one scenario: starts programs, lets them run, and gathers the observations."""

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.clients.loads import Stream, loading, read
from tests.clients.programs import Program
from tests.real.brokers.admin import Admin
from tests.real.gateways import Upstream
from tests.real.metrics import scrape, total

from . import stored
from .gathered import Played, told
from .results import Trial
from .scenarios import Scenario, Unit
from .watch import Watch
from .ways import Route, prepare, route

SPARE = 0.5
"""Seconds that a load continues after the measured time."""
STARTING = 60
"""Seconds that a program may take to start, on a busy machine."""
WRITING = 60
"""Seconds that a program may take to write its results."""


@dataclass(frozen=True)
class Setting:
    """The surroundings of scenarios. A broker without an `admin` has no policies of its own."""

    broker: Upstream
    admin: Admin | None
    programs: Mapping[str, Program]
    folder: Path


def play(scenario: Scenario, setting: Setting) -> Trial:
    """Play the scenario, and return its trial."""
    at = datetime.now(UTC)
    name = f"{scenario.part}-{secrets.token_hex(4)}"
    folder = setting.folder / name
    folder.mkdir(parents=True)
    topics = _topics(scenario, setting, f"public/{name}")
    with route(scenario, setting.broker, folder) as way:
        senders, watch = _load(scenario, setting, way, topics, folder)
        load = os.getloadavg()[0]
        gateway = told(way.gateway, watch.looks) if way.gateway and watch else {}
        size = _size(scenario, setting, way, topics)
    played = Played(scenario, topics, senders, setting.broker.service_url)
    return Trial(
        *(scenario.part, scenario.name, scenario.client, scenario.way.value),
        at.isoformat(timespec="seconds"),
        *(scenario.limit.rate, scenario.limit.unit.value, size, scenario.seconds),
        played.elapsed,
        asdict(scenario.offer),
        scenario.programs,
        tuple(played.passed(flow) for flow in scenario.flows),
        facts={"load": load},
        gateway=gateway,
        curve=played.curve() if scenario.curve else {},
    )


def _topics(scenario: Scenario, setting: Setting, namespace: str) -> dict[str, str]:
    """Return full topic names by short ones; the broker will keep everything sent to them."""
    if setting.admin is not None:
        prepare(scenario, setting.admin, namespace)
    topics = {flow.topic: f"persistent://{namespace}/{flow.topic}" for flow in scenario.flows}
    for topic in topics.values():
        stored.keep(setting.broker.service_url, topic)
    return topics


def _load(
    scenario: Scenario, setting: Setting, way: Route, topics: Mapping[str, str], folder: Path
) -> tuple[dict[str, Stream], Watch | None]:
    """Return the programs' records by their signature."""
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


def _size(scenario: Scenario, setting: Setting, way: Route, topics: Mapping[str, str]) -> float:
    """Return a message's size as the limiting component counts it, if the scenario needs it."""
    if scenario.limit.unit is Unit.MESSAGES:
        return 0.0
    if way.gateway is not None:
        text = scrape(way.gateway.metrics_url)
        size = total(text, "gateway_topic_bytes_total", direction="to_broker")
        return size / max(1.0, total(text, "gateway_topic_messages_total", direction="to_broker"))
    assert setting.admin is not None
    stats = setting.admin.stats(topics[scenario.flows[0].topic])
    return float(stats["bytesInCounter"]) / max(1, int(stats["msgInCounter"]))
