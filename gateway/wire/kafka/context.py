"""What all connections of one listener share, and the client of one of them."""

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
    """`ids`: what brokers said of topics, to any of the listener's clients. `offers`: versions that
    clients are offered, as a broker last said. `mechanism`: by which brokers last accepted the
    gateway's credential; None: not known. `hidden`: APIs that are not offered here, beside those
    that nobody is offered.
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
    """Who is at the other end of a connection.

    `subject`: without a topic. `credential`: what it has shown, if its broker could be shown it
    too. `slot`: its place among the connections that it may have. `node`: the broker that it wants,
    by id; None: any. `guessed`: the broker that it got, if nobody knew where the wanted one is.
    `lifetime`: seconds after the opening for which its broker takes the credential that it was
    shown.
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
        """Give back what the connection has of the process's bounds."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None
