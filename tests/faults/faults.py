"""The faults. Each one hits the bundle with all topics of a trial, or the clients' gateways."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.real.brokers.admin import AdminError
from tests.real.brokers.cluster import Broker, Cluster
from tests.real.clients import wait_until
from tests.real.gateways import Gateway

BREATH = 1.0
"""Seconds of load between events."""
TAKE_OVER_SECONDS = 90
"""Seconds that a topic may be without a broker: it takes 12 s at most with the cluster's
settings."""


@dataclass
class Stage:
    """What a fault can hit.

    `topic` is one of all topics, which lie in one bundle. Short events happen `times` times;
    `minute` is the length of long ones, in seconds. Findings go to `facts`.
    """

    cluster: Cluster
    topic: str
    gateways: Sequence[Gateway]
    times: int
    minute: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> Broker:
        return self.cluster.owner(self.topic)

    @property
    def namespace(self) -> str:
        return self.topic.removeprefix("persistent://").rpartition("/")[0]

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Record how long the block takes."""
        began = time.monotonic()
        yield
        self.facts.setdefault(what, []).append(round(time.monotonic() - began, 2))


# -- brokers -----------------------------------------------------------------------------------


def move(stage: Stage) -> None:
    """Move the bundle to the other broker, and back, and so on. Under the modular load manager a
    quick client may bring it back to the old broker."""
    stage.facts["stayed"] = 0
    for _ in range(stage.times):
        to = stage.cluster.other(stage.owner)
        with stage.timed("moved in"):
            stage.cluster.move(stage.topic, to)
        time.sleep(BREATH)
        stage.facts["stayed"] += stage.owner is not to


def unload(stage: Stage) -> None:
    """Unload the namespace each second."""
    begin, owners = time.monotonic(), Counter[str]()
    for second in range(int(stage.minute)):
        time.sleep(max(0.0, begin + second - time.monotonic()))
        try:
            with stage.timed("unloaded in"):
                stage.cluster.unload(stage.namespace)
            owners[stage.owner.host] += 1
        except (AdminError, OSError):
            owners["refused"] += 1
    stage.facts["owners"] = dict(owners)


def restart(stage: Stage) -> None:
    """Stop the owner in good order, and start it."""
    down(stage, Broker.stop)


def kill(stage: Stage) -> None:
    """Kill the owner, and start it."""
    down(stage, Broker.kill)


def down(stage: Stage, how: Callable[[Broker], None]) -> None:
    """Stop a broker, and start it once the other one has taken over the topics."""
    owner = stage.owner
    heir = stage.cluster.other(owner)
    with stage.timed("down in"):
        how(owner)
    with stage.timed("taken over in"):
        wait_until(lambda: _serves(stage, heir), TAKE_OVER_SECONDS)
    time.sleep(BREATH)
    owner.start()


def _serves(stage: Stage, broker: Broker) -> bool:
    with suppress(AdminError, OSError):
        return stage.cluster.owner(stage.topic, broker) is broker
    return False


def freeze(stage: Stage) -> None:
    """Freeze the owner for longer than its session lives; no client gives up its connection."""
    silent(stage, 20)


def freeze_long(stage: Stage) -> None:
    """Freeze the owner for longer than clients wait for a sign of life."""
    silent(stage, 75)


def silent(stage: Stage, seconds: float) -> None:
    owner = stage.owner
    owner.freeze()
    try:
        time.sleep(seconds)
    finally:
        owner.thaw()
    with stage.timed("healthy again in"):
        wait_until(lambda: owner.admin.is_healthy() or not owner.jvm.is_running, TAKE_OVER_SECONDS)
    stage.facts["survived"] = owner.jvm.is_running
    owner.start()


# -- gateways ----------------------------------------------------------------------------------


def drain(stage: Stage) -> None:
    """Stop a gateway in good order and start it, then the other one."""
    roll(stage, Gateway.stop)


def kill_gateway(stage: Stage) -> None:
    """Kill a gateway and start it, then the other one."""
    roll(stage, Gateway.kill)


def roll(stage: Stage, how: Callable[[Gateway], None]) -> None:
    for turn in range(stage.times):
        gateway = stage.gateways[turn % len(stage.gateways)]
        with stage.timed("ended in"):
            how(gateway)
        time.sleep(BREATH)
        gateway.start()
        time.sleep(BREATH)


@dataclass(frozen=True)
class Fault:
    """A fault. `gateways`: their number. Several gateways are themselves hit, and no client is
    direct."""

    happen: Callable[[Stage], None]
    gateways: int = 1


FAULTS = {
    "move": Fault(move),
    "unload": Fault(unload),
    "restart": Fault(restart),
    "kill": Fault(kill),
    "freeze": Fault(freeze),
    "drain": Fault(drain, gateways=2),
    "kill-gateway": Fault(kill_gateway, gateways=2),
}
EXTRA = {"freeze-long": Fault(freeze_long)}
"""Faults that take minutes, only on request."""
