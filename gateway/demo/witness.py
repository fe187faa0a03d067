"""Events on topics that rightly make messages pass more than once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.demo.figures import GatewayCounts, Snapshot
from gateway.demo.plan import FLOWS, Flow


class Witness:
    """Remembers moves and visitors from regular observations of gateway and brokers.

    `owners`: the broker of each topic at the last observation. `moved`: topics that changed their
    broker. `visited`: topics with more producers or consumers than the demonstration's.
    """

    def __init__(self, flows: Sequence[Flow] = FLOWS) -> None:
        self._flows = flows
        self.owners: Mapping[str, str] = {}
        self.moved: set[str] = set()
        self.visited: set[str] = set()

    def observe(self, snapshot: Snapshot, owners: Mapping[str, str]) -> None:
        """Take the gateway's counts, and the owners of topics (empty if unknown)."""
        self.moved |= {topic for topic, it in self.owners.items() if owners.get(topic) != it}
        self.owners = owners
        self.visited |= {flow.topic for flow in self._flows if _has_visitors(flow, snapshot)}


def _has_visitors(flow: Flow, snapshot: Snapshot) -> bool:
    seen = snapshot.topics.get(flow.topic, GatewayCounts())
    return seen.producers > flow.producers or seen.consumers > flow.subscribers
