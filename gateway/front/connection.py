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
    """The part of a server that its connections use; see `front.server.Server`."""

    async def reach(
        self, target: Address | None, header: bytes | None = None
    ) -> tuple[Leg, Dialled] | Denial: ...

    def ended(self, connection: Connection, reason: EndReason, detail: str) -> None: ...

    def crashed(self, connection: Connection, error: Exception) -> None: ...

    def unanswered(self, conversation: Conversation) -> None: ...


class Connection:
    """One client connection.

    `id`: number in this process, for logs. `server`: accepted the connection. `client`: the
    client's address, which a trusted proxy states if there is one. `destination`: the address that
    the client connected to, stated likewise; None: not stated. `began`: monotonic seconds.
    `broker`: the broker that serves the client. `tls`: the version of the client's TLS. `caller`:
    what is known of the client. `header`: the PROXY header with which connections to brokers begin,
    to identify the client; None: without. `span`: the span of the opening; None without tracing.
    `library`: the client library under which the open connection is counted; `traffic`: the
    counters of the broker under which it is counted. `side`: connections for redirected lookups;
    None before the first redirect.
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
        """Return the attributes of this connection that every span about it has."""
        caller = Caller() if self.caller is None else self.caller
        values: dict[str, Value | None] = {
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
        return {name: value for name, value in values.items() if value is not None}
