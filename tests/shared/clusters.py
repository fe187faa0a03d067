"""Two brokers that give topics to each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.real.brokers.cluster import Broker, Cluster
from tests.real.clients import fresh_topic
from tests.real.gateways import Upstream
from tests.support.sandbox import Sandbox


class Pair(Upstream, Protocol):
    """Both of them; names of topics are whole ones."""

    @property
    def brokers(self) -> Sequence[Upstream]:
        """Each alone."""

    def topic_of_nobody(self, partitions: int = 0) -> str:
        """A new topic, of so many partitions or of none."""

    def topics_of_nobody(self, count: int) -> list[str]:
        """New topics, spread over both brokers."""

    def owner(self, topic: str) -> Upstream:
        """Who serves it; some broker is given it if nobody does yet."""

    def move(self, topic: str) -> None:
        """Closes a topic, or all partitions of one, where it is: it is looked for again, or clients
        are told who has it now.
        """


# -- real ones ---------------------------------------------------------------------------------


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

    def topic_of_nobody(self, partitions: int = 0) -> str:
        """In a namespace of its own."""
        topic = fresh_topic(namespace=self.cluster.fresh_namespace())
        if partitions:
            self.cluster.admin.create_partitioned_topic(topic, partitions)
        return topic

    def topics_of_nobody(self, count: int) -> list[str]:
        """Of one namespace: its bundles are what is spread."""
        namespace = self.cluster.fresh_namespace()
        return [fresh_topic(namespace=namespace) for _ in range(count)]

    def owner(self, topic: str) -> Broker:
        return self.cluster.owner(topic)


class Redirecting(RealPair):
    """Who has none of a topic redirects; nobody is told where a topic goes."""

    def move(self, topic: str) -> None:
        """Unloads all of its namespace; who has it then is the leader's choice."""
        self.cluster.unload(topic.removeprefix("persistent://").rpartition("/")[0])


class Assigning(RealPair):
    """Clients are told where a topic has gone."""

    def move(self, topic: str) -> None:
        partitions = self.cluster.admin.partitions(topic)
        for name in [f"{topic}-partition-{i}" for i in range(partitions)] or [topic]:
            self.cluster.move(name, self.cluster.other(self.cluster.owner(name)))


# -- the sandbox -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SandboxBroker:
    """One of them alone."""

    service_url: str
    traces: tuple[str, ...]


@dataclass(frozen=True)
class SandboxPair:
    """It redirects lookups; `assigned`: clients are told where a topic has gone."""

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

    def topic_of_nobody(self, partitions: int = 0) -> str:
        topic = fresh_topic()
        if partitions:
            self.sandbox.create_partitioned(topic, partitions)
        return topic

    def topics_of_nobody(self, count: int) -> list[str]:
        return [fresh_topic() for _ in range(count)]

    def owner(self, topic: str) -> SandboxBroker:
        self.sandbox.create_partitioned(topic, 0)
        url = self.sandbox.topics()[topic]["owner"]
        return next(broker for broker in self.brokers if broker.service_url == url)

    def move(self, topic: str) -> None:
        self.sandbox.unload(topic, assigned=self.assigned)
