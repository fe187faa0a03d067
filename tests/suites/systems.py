"""Which brokers a suite needs, and how a gateway stands in front of them."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.apache_kafka.broker import HOST, Kafka, kafka_jars, members
from tests.apache_kafka.gateways import KafkaPlan
from tests.real.brokers.jars import Say, pulsar_jars
from tests.real.brokers.standalone import Standalone
from tests.real.clients import wait_until
from tests.real.fixtures import has_coordinators
from tests.real.gateways import Plan, Upstream


@dataclass(frozen=True)
class Serving:
    """A broker that serves. `web`: its REST interface as `host:port`, if it has one."""

    broker: Upstream
    web: str = ""


class System(Protocol):
    """A kind of broker with the settings that a suite needs."""

    def fetch(self, say: Say) -> None:
        """Fetch the broker, once. Raises MissingToolError, FetchError."""

    def serving(self, folder: Path, say: Say) -> AbstractContextManager[Serving]:
        """Have one broker serve, whose files are in `folder`."""

    def plan(self) -> Plan:
        """Return the plan of a gateway in front of it."""


@dataclass(frozen=True)
class Pulsar:
    """`settings`: keywords of the Standalone."""

    settings: Mapping[str, Any] = field(default_factory=dict)

    def fetch(self, say: Say) -> None:
        pulsar_jars(say)

    @contextmanager
    def serving(self, folder: Path, say: Say) -> Iterator[Serving]:
        broker = Standalone(pulsar_jars(say), folder, **self.settings)
        broker.start()
        try:
            wait_until(lambda: has_coordinators(broker))
            yield Serving(broker, f"{broker.host}:{broker.web_port}")
        finally:
            broker.stop()

    def plan(self) -> Plan:
        return Plan()


@dataclass(frozen=True)
class ApacheKafka:
    """`settings`: lines of server.properties. `id`: of the broker."""

    settings: str = ""
    id: int = 1

    def fetch(self, say: Say) -> None:
        kafka_jars(say)

    @contextmanager
    def serving(self, folder: Path, say: Say) -> Iterator[Serving]:
        member = members(1)[0]
        named = (
            f"node.id={self.id}\ncontroller.quorum.voters={self.id}@{HOST}:{member.ports[0][1]}\n"
        )
        broker = Kafka(folder, say, named + self.settings, member=member)
        broker.start()
        try:
            yield Serving(broker)
        finally:
            broker.stop()

    def plan(self) -> Plan:
        return KafkaPlan()
