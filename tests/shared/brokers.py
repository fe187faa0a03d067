"""What tests need of brokers of either kind."""

import secrets
from dataclasses import dataclass
from typing import Protocol

import pytest

from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic
from tests.real.gateways import Upstream
from tests.support.sandbox import Sandbox

REAL = pytest.mark.parametrize("brokers", ["pulsar"], indirect=True)
"""For tests in which the sandbox would show nothing new. Each program uses the sandbox in one test
of `test_programs.py`."""


class Brokers(Upstream, Protocol):
    """One or several brokers without authentication."""

    @property
    def max_message_size(self) -> int:
        """Return the broker's limit in bytes."""

    def create_partitioned(self, topic: str, partitions: int) -> None:
        """Create a topic with this many partitions."""

    def unload(self, topic: str) -> None:
        """Close a topic, or all partitions of one, without moving it. Clients are told of the
        close, and reconnect without being told a new broker."""

    def backlog(self, topic: str, subscription: str) -> int:
        """Return the number of messages that the subscription has not acknowledged."""

    def subscriptions(self, topic: str) -> set[str]:
        """Return the names of the topic's subscriptions."""


@dataclass(frozen=True)
class Pulsar:
    """A real Pulsar."""

    standalone: Standalone

    @property
    def service_url(self) -> str:
        return self.standalone.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return self.standalone.traces

    @property
    def max_message_size(self) -> int:
        return self.standalone.max_message_size

    def create_partitioned(self, topic: str, partitions: int) -> None:
        self.standalone.admin.create_partitioned_topic(topic, partitions)

    def unload(self, topic: str) -> None:
        self.standalone.admin.unload(topic)

    def backlog(self, topic: str, subscription: str) -> int:
        found = self.standalone.admin.stats(topic)["subscriptions"][subscription]["msgBacklog"]
        assert isinstance(found, int)
        return found

    def subscriptions(self, topic: str) -> set[str]:
        return set(self.standalone.admin.stats(topic)["subscriptions"])


class Secured(Upstream, Protocol):
    """Brokers that require tokens and know a proxy role."""

    def topic_for(self, *roles: str) -> str:
        """Return a new topic, and permit it to `roles` where brokers check permissions."""


@dataclass(frozen=True)
class SecuredPulsar(Pulsar):
    """A real Pulsar, which checks the permissions of both the client and the proxy."""

    def topic_for(self, *roles: str) -> str:
        namespace = f"public/{secrets.token_hex(6)}"
        self.standalone.admin.create_namespace(namespace)
        for role in roles:
            self.standalone.admin.grant(namespace, role)
        return fresh_topic(namespace=namespace)


@dataclass(frozen=True)
class SecuredSandbox:
    """A sandbox that requires tokens and checks no permissions."""

    sandbox: Sandbox

    @property
    def service_url(self) -> str:
        return self.sandbox.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return self.sandbox.traces

    def topic_for(self, *roles: str) -> str:
        return fresh_topic()
