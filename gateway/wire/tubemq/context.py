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

    `rewriting`: rewrites addresses in their messages. `knows_brokers`: whether a master has named
    the brokers. `visit`: the last token of the master that clients have to show to brokers; 0: none
    yet.
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

    `subject`: the client as rules and metrics read it, without a topic. `slot`: its place among the
    connections that it may have. `node`: the id of the broker that it wants; None: the master.
    `principal`: its identity by its connection; None: each request states one, or none is known.
    `signs`: whether its requests are authenticated each, by a signature or a token.
    """

    subject: Subject
    quota: Quota
    node: int | None
    slot: Slot | None = None
    principal: Principal | None = None
    signs: bool = False

    def leave(self) -> None:
        """Give the connection's memory quota and its slot back."""
        self.quota.close()
        if self.slot is not None:
            self.slot.leave()
            self.slot = None
