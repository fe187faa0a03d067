"""What all connections of one listener share, and the client of one of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.wire.budget import Quota
from gateway.wire.contract import Principal
from gateway.wire.plugin import EntrySettings
from gateway.wire.services import Slot
from gateway.wire.subject import Subject
from gateway.wire.tubemq.rewriting import Rewriting

CLIENT_SIZE = 8192
"""Bytes of the budget that a connection takes: its session, its scanners, and what these know."""


@dataclass(slots=True)
class Listener:
    """`hiding`: changes the messages of all its connections. `knows_brokers`: a master has said
    where they are. `visit`: the token that the master wants clients to show to brokers, as it was
    last told; 0: not yet."""

    settings: EntrySettings
    knows_brokers: bool = False
    visit: int = 0
    hiding: Rewriting = field(init=False)

    def __post_init__(self) -> None:
        self.hiding = Rewriting(self.settings.services, tls=self.settings.brokers_tls)


@dataclass(slots=True)
class Client:
    """Who is at the other end of a connection.

    `subject`: without a topic. `slot`: its place among the connections that it may have. `node`:
    the broker that it wants, by id; None: the master. `principal`: who it is, by its connection;
    None: its requests say it, or nobody does. `signs`: its requests say it.
    """

    subject: Subject
    quota: Quota
    node: int | None
    slot: Slot | None = None
    principal: Principal | None = None
    signs: bool = False

    def leave(self) -> None:
        """Give back what the connection has of the process's bounds."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None
