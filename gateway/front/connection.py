"""The facts about one client connection that go with its pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.front.side import SideConnections

if TYPE_CHECKING:
    from gateway.front.conversation import Conversation
    from gateway.front.leg import Leg
    from gateway.wire.address import Address
    from gateway.wire.contract import Denial, Dialled, EndReason


class Acceptor(Protocol):
    """The server that accepted a connection; see `front.server.Server`."""

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial: ...

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None: ...

    def crashed(self, connection: Connection, error: Exception) -> None: ...

    def unanswered(self, conversation: Conversation) -> None: ...


class Connection:
    """One client connection. `id`: number in this process, for logs. `client`: the client's
    address. `began`: monotonic seconds. `side`: connections for chased lookups; None before the
    first chase.
    """

    __slots__ = ("began", "client", "id", "server", "side")

    def __init__(self, id: int, server: Acceptor, client: Address, began: float) -> None:
        self.id = id
        self.server = server
        self.client = client
        self.began = began
        self.side: SideConnections | None = None
