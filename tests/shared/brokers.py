"""What tests ask of brokers of either kind."""

import secrets
from dataclasses import dataclass
from typing import Protocol

import pytest

from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic
from tests.real.gateways import Upstream
from tests.support.sandbox import Sandbox

REAL = pytest.mark.parametrize("brokers", ["pulsar"], indirect=True)
"""For what the sandbox would show once more. It serves each program in one test of
`test_programs.py`."""


class Brokers(Upstream, Protocol):
    """One broker or several, that let everybody in."""

    @property
    def max_message_size(self) -> int:
        """In bytes."""

    def create_partitioned(self, topic: str, partitions: int) -> None:
        """Makes a topic of so many partitions."""

    def unload(self, topic: str) -> None:
        """Closes a topic, or all partitions of one, where it is; clients are told, and come back
        without being told where it has gone.
        """

    def backlog(self, topic: str, subscription: str) -> int:
        """How many messages the subscription has not acknowledged."""

    def subscriptions(self, topic: str) -> set[str]:
        """Their names."""


@dataclass(frozen=True)
class Pulsar:
    """A real one."""

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
    """Brokers that want tokens, and know a proxy."""

    def topic_for(self, *roles: str) -> str:
        """A new topic that `roles` may use, where that is asked."""


@dataclass(frozen=True)
class SecuredPulsar(Pulsar):
    """A real one; it asks what a role may do, of the client and of the proxy."""

    def topic_for(self, *roles: str) -> str:
        namespace = f"public/{secrets.token_hex(6)}"
        self.standalone.admin.create_namespace(namespace)
        for role in roles:
            self.standalone.admin.grant(namespace, role)
        return fresh_topic(namespace=namespace)


@dataclass(frozen=True)
class SecuredSandbox:
    """Who comes in may do everything."""

    sandbox: Sandbox

    @property
    def service_url(self) -> str:
        return self.sandbox.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return self.sandbox.traces

    def topic_for(self, *roles: str) -> str:
        return fresh_topic()
