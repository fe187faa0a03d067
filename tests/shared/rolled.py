"""Several gateways behind one address, restarted one after the other under load."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from tests.real.fixtures import StartGateway, Tapped
from tests.real.gateways import Gateway, Plan, Upstream
from tests.support.balancer import Balancer

INTERVAL_MS = 2
"""Milliseconds between two messages of the load."""
BREATH = 0.7
"""Seconds of load before, between and after the restarts."""


class Rolled:
    """Several gateways behind one address.

    Clients are given `url`, which leads through the tap where one is in use for the whole test.
    """

    def __init__(self, gateways: list[Gateway], untapped_url: str, url: str = "") -> None:
        self.untapped_url = untapped_url
        self.url = url
        self.gateways = gateways

    def ended(self) -> set[str]:
        """Return the end reasons of all connections, over all starts of each gateway."""
        return {reason for reason, _ in self.ends()}

    def ends(self) -> list[tuple[str, float]]:
        """Return the end reason of each connection that has ended, and its seconds."""
        lines = chain.from_iterable(it.log.read_text().splitlines() for it in self.gateways)
        events = [json.loads(line) for line in lines]
        ended = [it for it in events if it["event"] == "connection_ended"]
        return [(it["reason"], it["seconds"]) for it in ended]

    def move(self) -> None:
        """Restart the gateway that has all connections."""
        time.sleep(BREATH)
        self.gateways[0].stop()
        time.sleep(BREATH)
        self.gateways[0].start()

    def roll(self) -> None:
        """Restart the gateways one after the other; each must exit in good order."""
        for gateway in self.gateways:
            time.sleep(BREATH)
            gateway.stop()
            time.sleep(BREATH)
            gateway.start()
        time.sleep(BREATH)


@contextmanager
def in_front_of(
    brokers: Upstream,
    gateway: StartGateway,
    tapped: Tapped | None,
    folder: Path,
    *,
    chained: bool = False,
    rules: Path | None = None,
    workers: int = 1,
    age: str | None = None,
) -> Iterator[Rolled]:
    """Yield two gateways that seal names with the same key and have the same rules. `age`: of
    connections whose clients are moved."""
    key = folder / "seal.key"
    key.write_bytes(bytes(range(32)))
    plan = Plan(key=key, chained=chained, rules=rules, workers=workers, age=age)
    gateways = [gateway(brokers, plan) for _ in range(2)]
    balancer = Balancer([it.port for it in gateways])
    url = balancer.untapped_url
    yield Rolled(gateways, url, tapped(url, brokers.traces).url if tapped else "")
    balancer.close()
