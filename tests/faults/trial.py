"""One run of a fault: the clients start, the fault hits all of them, and they report."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.clients.programs import Program
from tests.real.brokers.cluster import Cluster, LoadManager
from tests.real.gateways import Gateway, Plan, Settings, Upstream
from tests.real.metrics import scrape, total
from tests.support.balancer import Balancer

from .clients import Crowd, crowd
from .faults import BREATH, Fault, Stage
from .results import DIRECT, THROUGH, Trial

LOOKUPS, REDIRECTS = "gateway_lookups_total", "gateway_lookup_redirects_total"


@dataclass(frozen=True)
class Setting:
    """The surroundings of trials. `folder` takes the logs of clients and gateways; `traced`:
    gateways also log each frame. `times`, `minute`: as in a stage."""

    cluster: Cluster
    load_manager: LoadManager
    programs: Sequence[Program]
    folder: Path
    times: int = 4
    minute: float = 60.0
    traced: bool = False


class Traced(Plan):
    """Logs all frames of clients on this machine."""

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        found = super().settings(broker, port, admin_port)
        found["listeners"][0]["trace"] = ["127.0.0.0/8"]
        return found


def hold(setting: Setting, name: str, fault: Fault) -> Trial:
    """Cause the fault, and return its trial."""
    at = datetime.now(UTC)
    folder = setting.folder / f"{at:%H%M%S}-{setting.load_manager.name.lower()}-{name}"
    complaints: list[str] = []
    with gateways(setting, fault.gateways, folder, complaints) as (running, url):
        ways = {THROUGH: url} if fault.gateways > 1 else _both(setting.cluster, url)
        namespace = setting.cluster.fresh_namespace(bundles=1)
        with crowd(setting.programs, ways, namespace, folder) as clients:
            stage = Stage(
                setting.cluster, clients.topics[0], running, setting.times, setting.minute
            )
            _assert_together(setting.cluster, clients)
            counted = _happen(stage, fault)
            outcomes = clients.finish(setting.cluster)
        stage.facts["served by"] = setting.cluster.owner(clients.topics[0]).host
    return Trial(
        name,
        setting.load_manager.name.lower(),
        at.isoformat(timespec="seconds"),
        tuple(outcomes),
        stage.facts,
        counted | _told(running) | {"complaints": complaints},
    )


def _both(cluster: Cluster, url: str) -> dict[str, str]:
    return {DIRECT: cluster.service_url, THROUGH: url}


def _happen(stage: Stage, fault: Fault) -> dict[str, Any]:
    """Cause the fault, and return what a surviving gateway counted meanwhile."""
    stage.facts["owner"] = stage.owner.host
    stage.facts["leader"] = stage.cluster.leader().host
    stage.facts["load"] = round(os.getloadavg()[0], 1)
    time.sleep(BREATH)
    before = _counted(stage.gateways)
    with stage.timed("all in"):
        fault.happen(stage)
    time.sleep(2 * BREATH)
    after = _counted(stage.gateways)
    return {key: after[key] - before[key] for key in after} if fault.gateways == 1 else {}


def _counted(gateways: Sequence[Gateway]) -> dict[str, float]:
    text = "\n".join(scrape(gateway.metrics_url) for gateway in gateways[:1])
    return {"lookups": total(text, LOOKUPS), "redirects": total(text, REDIRECTS)}


def _assert_together(cluster: Cluster, clients: Crowd) -> None:
    owners = {cluster.owner(topic).host for topic in clients.topics}
    assert len(owners) == 1, f"the topics have several owners: {owners}"


# -- gateways ----------------------------------------------------------------------------------


@contextmanager
def gateways(
    setting: Setting, count: int, folder: Path, complaints: list[str]
) -> Iterator[tuple[list[Gateway], str]]:
    """Yield this many gateways, and the address of all. They share a key, so that each opens the
    others' names. `complaints` takes faults in how they exit."""
    folder.mkdir(parents=True)
    key = folder / "seal.key"
    key.write_bytes(bytes(range(32)))
    plan = (Traced if setting.traced else Plan)(key=key)
    them = [Gateway(setting.cluster, plan, folder / f"gateway-{n}") for n in range(count)]
    with ExitStack() as running:
        for gateway in them:
            gateway.start()
            running.callback(_stop, gateway, complaints)
        yield them, running.enter_context(_address(them))


def _stop(gateway: Gateway, complaints: list[str]) -> None:
    """Stop the gateways. A bad exit does not lose the figures of the trial."""
    try:
        gateway.stop()
    except AssertionError as error:
        complaints.append(str(error))


@contextmanager
def _address(gateways: Sequence[Gateway]) -> Iterator[str]:
    if len(gateways) == 1:
        yield gateways[0].untapped_url
        return
    balancer = Balancer([gateway.port for gateway in gateways])
    yield balancer.untapped_url
    balancer.close()


def _told(gateways: Sequence[Gateway]) -> dict[str, Any]:
    """Return the findings in their logs."""
    text = "".join(gateway.log.read_text(errors="replace") for gateway in gateways)
    reasons = Counter(
        event["reason"] for event in _events(text) if event.get("event") == "connection_ended"
    )
    return {"ended": dict(sorted(reasons.items())), "tracebacks": text.count("Traceback")}


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the log's events. A killed gateway may leave half a line."""
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            yield json.loads(line)
