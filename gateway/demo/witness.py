"""What happened to the demo's topics that makes some messages pass more than once, and rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.demo.figures import Snapshot, TopicFigures
from gateway.demo.plan import FLOWS, Flow


class Witness:
    """Looks at the gateway and at the brokers now and then, and remembers.

    `owners`: who has each topic, at the last look; `moved`: topics that went to another broker;
    `visited`: topics with more producers or consumers than the demo's own.
    """

    def __init__(self, flows: Sequence[Flow] = FLOWS) -> None:
        self._flows = flows
        self.owners: Mapping[str, str] = {}
        self.moved: set[str] = set()
        self.visited: set[str] = set()

    def see(self, snapshot: Snapshot, owners: Mapping[str, str]) -> None:
        """Take what the gateway counts, and the owners of topics (empty where unknown)."""
        self.moved |= {topic for topic, it in self.owners.items() if owners.get(topic) != it}
        self.owners = owners
        self.visited |= {flow.topic for flow in self._flows if _has_guests(flow, snapshot)}


def _has_guests(flow: Flow, snapshot: Snapshot) -> bool:
    seen = snapshot.topics.get(flow.topic, TopicFigures())
    return seen.producers > flow.producers or seen.consumers > flow.subscribers
