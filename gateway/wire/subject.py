"""Who does something, and to which topic: the one description that all rooms read.

A protocol session makes one `Subject` for each connection, the gate completes it, and each open
producer or consumer has one with its topic. Rules match it, metrics take their labels from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class TopicName(NamedTuple):
    """The parts of a topic's name that rules and metrics know, in the one spelling of its protocol.

    `namespace`: with its tenant, `tenant/namespace`. `whole`: the full name without the number of a
    partition. `partition`: the full name with that number; None for a topic without one.
    """

    tenant: str
    namespace: str
    whole: str
    partition: str | None = None

    @property
    def name(self) -> str:
        """Return the name under which this topic, or this partition of it, is counted."""
        return self.partition or self.whole


@dataclass(frozen=True, slots=True)
class Subject:
    """A client, and what it uses. None stands for what is not known.

    `listener`, `cluster`: names from the configuration; the gate adds them. `connection`: id of the
    client's connection in this process. `host`: the client's address. `principal`: the name of the
    client; None where the broker alone authenticates. `library`: name and version of the client's
    library, as it says. `subscription`: of a consumer.
    """

    protocol: str | None = None
    listener: str | None = None
    cluster: str | None = None
    connection: int | None = None
    host: str | None = None
    principal: str | None = None
    library: str | None = None
    topic: TopicName | None = None
    subscription: str | None = None

    def about(self, topic: TopicName, subscription: str | None = None) -> Subject:
        """Return the same client with a topic, and the subscription of a consumer."""
        return replace(self, topic=topic, subscription=subscription)


NOBODY = Subject()
"""The subject of accounts that belong to no client."""
