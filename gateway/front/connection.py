"""The facts about one client connection that go with its pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.front.side import SideConnections
from gateway.telemetry.spans import CONNECTION
from gateway.wire.subject import Caller

if TYPE_CHECKING:
    from gateway.front.connection_span import ConnectionSpan
    from gateway.front.conversation import Conversation
    from gateway.front.leg import Leg
    from gateway.telemetry.figures import BrokerTraffic
    from gateway.telemetry.spans import Value
    from gateway.wire.address import Address
    from gateway.wire.contract import Denial, Dialled, EndReason


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
    `span`: of its opening; None: nobody follows it. `library`: by which it is counted while it is
    open; `traffic`: likewise, by its broker. `side`: connections for chased lookups; None
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
        "span",
        "tls",
        "traffic",
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
        self.span: ConnectionSpan | None = None
        self.library = ""
        self.traffic: BrokerTraffic | None = None
        self.side: SideConnections | None = None

    @property
    def attributes(self) -> dict[str, Value]:
        """Return what a span says of this connection."""
        caller = Caller() if self.caller is None else self.caller
        found: dict[str, Value | None] = {
            CONNECTION: self.id,
            "client.address": self.client.host,
            "client.port": self.client.port,
            "tls.protocol.version": self.tls,
            "gateway.cluster": caller.cluster,
            "gateway.authentication.method": caller.method,
            "user.id": caller.principal,
            "user_agent.original": caller.library,
            "messaging.client.id": caller.client_id,
        }
        return {name: value for name, value in found.items() if value is not None}
