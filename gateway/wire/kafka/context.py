"""The state that all connections of a listener share, and the client of one connection."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, field

from gateway.wire.address import Address
from gateway.wire.admission import BaseClient
from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.kafka.versions import CLIENT_METRICS, OF_PRINCIPALS, Offer
from gateway.wire.plugin import EntrySettings, Mode

CLIENT_SIZE = 4096
"""Bytes of the budget that a connection takes: its session and scanners."""


@dataclass(slots=True)
class Listener:
    """The state that all connections of one listener share.

    `ids`: topic ids and their names, learned from brokers' responses. `offers`: the API versions
    that the gateway offers to clients, from a broker's latest response to ApiVersions. `mechanism`:
    the SASL mechanism by which brokers last accepted the gateway's credential; None if unknown.
    `hidden`: the APIs that this listener does not offer, in addition to those that no listener
    offers.
    """

    settings: EntrySettings
    ids: TopicIds = field(default_factory=TopicIds)
    offers: tuple[Offer, ...] = ()
    mechanism: str | None = None
    hidden: Set[int] = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        of_principals = OF_PRINCIPALS if settings.mode is Mode.VERIFY else frozenset()
        metrics = CLIENT_METRICS if settings.hides_client_metrics else frozenset()
        self.hidden = of_principals | metrics


@dataclass(slots=True, eq=False)
class Client(BaseClient):
    """The client of one connection.

    `credential`: the client's own, if the gateway can forward it to a broker; else None. `node`:
    the id of the broker that the client wants; None: any broker. `guessed`: the address that the
    gateway dialled, if it did not know the address of the wanted broker; else None. `lifetime`:
    seconds after the opening for which the broker accepts the credential that it was shown.
    """

    principal: Principal
    credential: Credential | None = None
    node: int | None = None
    guessed: Address | None = None
    lifetime: float = math.inf
