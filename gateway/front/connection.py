"""What is known of one client connection beside its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.front.side import SideConnections

if TYPE_CHECKING:
    from gateway.front.server import Server
    from gateway.wire.contract import Address


class Connection:
    """`id`: of this process, for logs. `began`: monotonic seconds. `side`: for chased lookups."""

    __slots__ = ("began", "client", "id", "server", "side")

    @property
    def host(self) -> str:
        """See `contract.Origin`."""
        return self.client.host

    def __init__(self, id: int, server: Server, client: Address, began: float) -> None:
        self.id = id
        self.server = server
        self.client = client
        self.began = began
        self.side: SideConnections | None = None
