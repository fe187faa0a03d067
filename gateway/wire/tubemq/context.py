"""The state that all connections of a listener share, and the client of one connection."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.wire.admission import BaseClient
from gateway.wire.contract import Principal
from gateway.wire.plugin import EntrySettings
from gateway.wire.tubemq.rewriting import Rewriting
from gateway.wire.tubemq.turns import Turns

CLIENT_SIZE = 8192
"""Bytes of the budget that a connection takes: its session, its scanners, and the frames these
know."""


@dataclass(slots=True)
class Listener:
    """The state that all connections of one listener share.

    `rewriting`: rewrites the addresses in messages of these connections. `knows_brokers`: a master
    has listed its brokers. `visit`: the latest token of the master that clients must show to
    brokers; 0: none yet. `turns`: of refusals.
    """

    settings: EntrySettings
    knows_brokers: bool = False
    visit: int = 0
    rewriting: Rewriting = field(init=False)
    turns: Turns = field(default_factory=Turns)

    def __post_init__(self) -> None:
        self.rewriting = Rewriting(self.settings.services, tls=self.settings.brokers_tls)


@dataclass(slots=True, eq=False)
class Client(BaseClient):
    """The client of one connection.

    `node`: the id of the broker that the client wants; None: it wants the master. `principal`: the
    client's identity, if the connection authenticates it; None: each request has a credential of
    its own, or clients are not authenticated. `signs`: each request must have a signature or a
    token.
    """

    node: int | None
    principal: Principal | None = None
    signs: bool = False
