"""What happens. Each fault hits the one bundle in which all topics of a trial lie, or the gateways
that the clients go through.
"""

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
"""Seconds of load between what happens."""
TAKE_OVER_SECONDS = 90
"""How long a topic may be without a broker: it takes 12 s at the most with the settings of the
cluster.
"""


@dataclass
class Stage:
    """Who can be hit. `topic` is one of all, that lie together. What is soon over happens so many
    `times`; `minute` is the length of what goes on for a minute, in seconds. What is worth telling
    goes to `facts`.
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
        """Notes how long something took."""
        began = time.monotonic()
        yield
        self.facts.setdefault(what, []).append(round(time.monotonic() - began, 2))


# -- brokers -----------------------------------------------------------------------------------


def move(stage: Stage) -> None:
    """The bundle goes to the other broker, and back, and so on. Under the modular load manager a
    client that is quick may bring it back to where it was.
    """
    stage.facts["stayed"] = 0
    for _ in range(stage.times):
        to = stage.cluster.other(stage.owner)
        with stage.timed("moved in"):
            stage.cluster.move(stage.topic, to)
        time.sleep(BREATH)
        stage.facts["stayed"] += stage.owner is not to


def unload(stage: Stage) -> None:
    """The namespace is unloaded each second."""
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
    """The owner stops in good order, and starts."""
    down(stage, Broker.stop)


def kill(stage: Stage) -> None:
    """The owner ends without a word, and starts."""
    down(stage, Broker.kill)


def down(stage: Stage, how: Callable[[Broker], None]) -> None:
    """The other broker has taken the topics over before this one comes back."""
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
    """The owner is silent for longer than its session lives; no client gives up a connection."""
    silent(stage, 20)


def freeze_long(stage: Stage) -> None:
    """For longer than clients wait for a sign of life."""
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
    """A gateway stops in good order and starts, then the other one."""
    roll(stage, Gateway.stop)


def kill_gateway(stage: Stage) -> None:
    """A gateway ends without a word and starts, then the other one."""
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
    """`gateways`: how many there are. Several are what is hit, and then nobody goes direct."""

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
"""Only where they are asked for: they take minutes."""
