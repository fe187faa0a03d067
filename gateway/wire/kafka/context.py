"""The state that all connections of a listener share, and the client of one connection."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, field

from gateway.wire.address import Address
from gateway.wire.budget import Quota
from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.kafka.versions import CLIENT_METRICS, OF_PRINCIPALS, Offer
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.services import Slot
from gateway.wire.subject import Subject

CLIENT_SIZE = 4096
"""Bytes of the budget that a connection takes: its session and scanners."""


@dataclass(slots=True)
class Listener:
    """The state that all connections of one listener share.

    `ids`: topic ids and names from responses of brokers. `offers`: the API versions that clients
    are offered, from the last response of a broker to ApiVersions. `mechanism`: the SASL mechanism
    by which brokers last accepted the gateway's credential; None if unknown. `hidden`: APIs that
    this listener does not offer, beside those that no listener offers.
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


@dataclass(slots=True)
class Client:
    """The client of one connection.

    `subject`: the client as rules and metrics read it, without a topic. `credential`: what it has
    shown, if its broker could be shown it too. `slot`: its place among the connections that it may
    have. `node`: the id of the broker that it wants; None: any. `guessed`: the address that was
    dialled while the address of the wanted broker was unknown. `lifetime`: seconds after the
    opening for which the broker accepts the credential that it was shown.
    """

    subject: Subject
    principal: Principal
    quota: Quota
    credential: Credential | None = None
    slot: Slot | None = None
    node: int | None = None
    guessed: Address | None = None
    lifetime: float = math.inf

    def leave(self) -> None:
        """Give the connection's memory quota and its slot back."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None
