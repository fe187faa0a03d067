"""The client of an action and its topic: values that all packages read.

A protocol session makes one `Caller` for each connection, and `Services.complete` completes it.
Each open producer or consumer has a `Subject`: the caller and a topic. Rules match subjects, and
metrics take their labels from them.
"""

from __future__ import annotations

from typing import NamedTuple


class TopicName(NamedTuple):
    """The parts of a topic's name that rules and metrics use, in its protocol's one spelling.

    `namespace`: `tenant/namespace`. `whole`: the full name without a partition's number.
    `partition`: the full name with that number; None if the topic is no partition.
    """

    tenant: str
    namespace: str
    whole: str
    partition: str | None = None

    @property
    def name(self) -> str:
        """Return the name under which metrics and limits count this topic or partition."""
        return self.partition or self.whole


class Caller(NamedTuple):
    """The client of one connection. None: unknown.

    `listener`, `cluster`: names from the configuration, which `Services.complete` adds.
    `connection`: id of the connection in this process. `host`: the client's address. `principal`:
    the client's name; None if only the broker authenticates. `library`: name and version that the
    client states for its library. `method`: by which it authenticates. `client_id`: the name that
    the client gives itself, in protocols that have one.
    """

    protocol: str | None = None
    listener: str | None = None
    cluster: str | None = None
    connection: int | None = None
    host: str | None = None
    principal: str | None = None
    library: str | None = None
    method: str | None = None
    client_id: str | None = None


class Subject(NamedTuple):
    """A client and a topic that it uses, or the client alone (`topic` None).

    `subscription`: the subscription of a consumer. All subjects of a connection share its caller,
    because a client may use thousands of topics.
    """

    caller: Caller
    topic: TopicName | None = None
    subscription: str | None = None

    def about(self, topic: TopicName, subscription: str | None = None) -> Subject:
        """Return a subject with the same client and this topic. `subscription`: the subscription,
        if the client is a consumer of the topic."""
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

    @property
    def method(self) -> str | None:
        return self.caller.method

    @property
    def client_id(self) -> str | None:
        return self.caller.client_id


NOBODY = Subject(Caller())
"""The subject of accounts that belong to no client."""
