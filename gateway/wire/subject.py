"""Who does something, and to which topic: the one description that all rooms read.

A protocol session makes one `Caller` for each connection, which `Services.complete` completes. Each
open producer or consumer has a `Subject`: the caller and a topic. Rules match a subject, and
metrics take their labels from it.
"""

from __future__ import annotations

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


class Caller(NamedTuple):
    """The client at the other end of one connection. None stands for what is not known.

    `listener`, `cluster`: names from the configuration, which `Services.complete` adds.
    `connection`: id of the connection in this process. `host`: the client's address. `principal`:
    the name of the client; None where the broker alone authenticates. `library`: name and version
    of the client's library, as it says.
    """

    protocol: str | None = None
    listener: str | None = None
    cluster: str | None = None
    connection: int | None = None
    host: str | None = None
    principal: str | None = None
    library: str | None = None


class Subject(NamedTuple):
    """A client, and what it uses.

    `topic`: None for the client alone. `subscription`: of a consumer. All subjects of a connection
    share its caller, since a client may use thousands of topics.
    """

    caller: Caller
    topic: TopicName | None = None
    subscription: str | None = None

    def about(self, topic: TopicName, subscription: str | None = None) -> Subject:
        """Return the same client with a topic, and the subscription of a consumer."""
        return Subject(self.caller, topic, subscription)

    @property
    def protocol(self) -> str | None:
        return self.caller.protocol

    @property
    def listener(self) -> str | None:
        return self.caller.listener

    @property
    def cluster(self) -> str | None:
        return self.caller.cluster

    @property
    def connection(self) -> int | None:
        return self.caller.connection

    @property
    def host(self) -> str | None:
        return self.caller.host

    @property
    def principal(self) -> str | None:
        return self.caller.principal

    @property
    def library(self) -> str | None:
        return self.caller.library


NOBODY = Subject(Caller())
"""The subject of accounts that belong to no client."""
