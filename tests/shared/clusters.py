"""Two brokers that move topics between each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.real.brokers.cluster import Broker, Cluster
from tests.real.clients import fresh_topic
from tests.real.gateways import Upstream
from tests.support.sandbox import Sandbox


class Pair(Upstream, Protocol):
    """Two brokers. Topic names are complete names."""

    @property
    def brokers(self) -> Sequence[Upstream]:
        """Return each broker by itself."""

    def unassigned_topic(self, partitions: int = 0) -> str:
        """Return a new unassigned topic, partitioned if `partitions` is above 0."""

    def unassigned_topics(self, count: int) -> list[str]:
        """Return new unassigned topics, spread over both brokers."""

    def owner(self, topic: str) -> Upstream:
        """Return the broker that serves the topic; an unassigned topic is assigned first."""

    def move(self, topic: str) -> None:
        """Close a topic, or all partitions of one, and move it: clients look it up again, or are
        told its new broker."""


# -- real clusters -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RealPair:
    """What both kinds of real clusters have in common."""

    cluster: Cluster

    @property
    def service_url(self) -> str:
        return self.cluster.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return self.cluster.traces

    @property
    def brokers(self) -> Sequence[Broker]:
        return self.cluster.brokers

    def unassigned_topic(self, partitions: int = 0) -> str:
        """Return a new topic in a namespace of its own."""
        topic = fresh_topic(namespace=self.cluster.fresh_namespace())
        if partitions:
            self.cluster.admin.create_partitioned_topic(topic, partitions)
        return topic

    def unassigned_topics(self, count: int) -> list[str]:
        """Return new topics of one namespace, whose bundles are spread over the brokers."""
        namespace = self.cluster.fresh_namespace()
        return [fresh_topic(namespace=namespace) for _ in range(count)]

    def owner(self, topic: str) -> Broker:
        return self.cluster.owner(topic)


class Redirecting(RealPair):
    """Brokers that redirect lookups of foreign topics and tell no client where a topic moves."""

    def move(self, topic: str) -> None:
        """Unload the topic's whole namespace; the leader chooses its next broker."""
        self.cluster.unload(topic.removeprefix("persistent://").rpartition("/")[0])


class Assigning(RealPair):
    """Brokers that tell clients where a topic has moved."""

    def move(self, topic: str) -> None:
        partitions = self.cluster.admin.partitions(topic)
        for name in [f"{topic}-partition-{i}" for i in range(partitions)] or [topic]:
            self.cluster.move(name, self.cluster.other(self.cluster.owner(name)))


# -- the sandbox -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SandboxBroker:
    """One broker of a sandbox."""

    service_url: str
    traces: tuple[str, ...]


@dataclass(frozen=True)
class SandboxPair:
    """A sandbox, which redirects lookups. `assigned`: it tells clients where a topic has moved."""

    sandbox: Sandbox
    assigned: bool

    @property
    def service_url(self) -> str:
        return self.sandbox.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return self.sandbox.traces

    @property
    def brokers(self) -> Sequence[SandboxBroker]:
        return [SandboxBroker(url, self.traces) for url in self.sandbox.urls]

    def unassigned_topic(self, partitions: int = 0) -> str:
        topic = fresh_topic()
        if partitions:
            self.sandbox.create_partitioned(topic, partitions)
        return topic

    def unassigned_topics(self, count: int) -> list[str]:
        return [fresh_topic() for _ in range(count)]

    def owner(self, topic: str) -> SandboxBroker:
        self.sandbox.create_partitioned(topic, 0)
        url = self.sandbox.topics()[topic]["owner"]
        return next(broker for broker in self.brokers if broker.service_url == url)

    def move(self, topic: str) -> None:
        self.sandbox.unload(topic, assigned=self.assigned)
