"""What is known of one client connection beside its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.front.side import SideConnections

if TYPE_CHECKING:
    from gateway.front.conversation import Conversation
    from gateway.front.leg import Leg
    from gateway.wire.address import Address
    from gateway.wire.contract import Denial, Dialled, EndReason


class Owner(Protocol):
    """The server that accepted a connection."""

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial: ...

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None: ...

    def crashed(self, connection: Connection, error: Exception) -> None: ...

    def unanswered(self, conversation: Conversation) -> None: ...


class Connection:
    """`id`: of this process, for logs. `client`: its address. `began`: monotonic seconds.

    `side`: for chased lookups.
    """

    __slots__ = ("began", "client", "id", "server", "side")

    def __init__(self, id: int, server: Owner, client: Address, began: float) -> None:
        self.id = id
        self.server = server
        self.client = client
        self.began = began
        self.side: SideConnections | None = None
