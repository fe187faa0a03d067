"""The facts about one client connection that go with its pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.front.side import SideConnections

if TYPE_CHECKING:
    from gateway.front.conversation import Conversation
    from gateway.front.leg import Leg
    from gateway.wire.address import Address
    from gateway.wire.contract import Denial, Dialled, EndReason
    from gateway.wire.subject import Caller


class Acceptor(Protocol):
    """The server that accepted a connection; see `front.server.Server`."""

    async def reach(
        self, target: Address | None, header: bytes | None = None
    ) -> tuple[Leg, Dialled] | Denial: ...

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None: ...

    def crashed(self, connection: Connection, error: Exception) -> None: ...

    def unanswered(self, conversation: Conversation) -> None: ...


class Connection:
    """One client connection.

    `id`: number in this process, for logs. `client`: the client's address, as a trusted proxy
    states it if there is one. `destination`: the address that the client connected to, of the same;
    None: not stated. `began`: monotonic seconds. `broker`: that serves
    it; `tls`: version of the client's. `caller`: what is known of the client. `header`:
    with which connections to brokers begin, to tell them of the client; None: they are not told.
    `library`: by which it is counted while it is open. `side`: connections for chased lookups; None
    before the first chase.
    """

    __slots__ = (
        "began",
        "broker",
        "caller",
        "client",
        "destination",
        "header",
        "id",
        "library",
        "server",
        "side",
        "tls",
    )

    def __init__(self, id: int, server: Acceptor, client: Address, began: float) -> None:
        self.id = id
        self.server = server
        self.client = client
        self.began = began
        self.caller: Caller | None = None
        self.broker: Address | None = None
        self.tls: str | None = None
        self.destination: Address | None = None
        self.header: bytes | None = None
        self.library = ""
        self.side: SideConnections | None = None
