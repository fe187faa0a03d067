"""The state that all connections of a listener share, and the client of one connection."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.wire.budget import Quota
from gateway.wire.contract import Principal
from gateway.wire.plugin import EntrySettings
from gateway.wire.services import Slot
from gateway.wire.subject import Subject
from gateway.wire.tubemq.rewriting import Rewriting

CLIENT_SIZE = 8192
"""Bytes of the budget that a connection takes: its session, its scanners, and the frames these
know."""


@dataclass(slots=True)
class Listener:
    """The state that all connections of one listener share.

    `rewriting`: rewrites the addresses in messages of these connections. `knows_brokers`: a master
    has listed its brokers. `visit`: the latest token of the master that clients must show to
    brokers; 0: none yet.
    """

    settings: EntrySettings
    knows_brokers: bool = False
    visit: int = 0
    rewriting: Rewriting = field(init=False)

    def __post_init__(self) -> None:
        self.rewriting = Rewriting(self.settings.services, tls=self.settings.brokers_tls)


@dataclass(slots=True)
class Client:
    """The client of one connection.

    `subject`: the client as rules and metrics read it, without a topic. `slot`: the connection's
    slot in the connection quotas. `node`: the id of the broker that the client wants; None: it
    wants the master. `principal`: the client's identity, if the connection authenticates it; None:
    each request has a credential of its own, or clients are not authenticated. `signs`: each
    request must have a signature or a token.
    """

    subject: Subject
    quota: Quota
    node: int | None
    slot: Slot | None = None
    principal: Principal | None = None
    signs: bool = False

    def leave(self) -> None:
        """Give back the connection's memory quota and its slot in the connection quotas."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None
