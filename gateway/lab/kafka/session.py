"""One connection to a broker: a request in, its response out, in turn, as brokers do it.

`handlers` maps APIs to functions. An API without a handler is not offered, and a request of it ends
the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors import PeerError
from gateway.lab.kafka.codes import FIRST, Key
from gateway.wire.kafka import codec, frames
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.versions import unsupported

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.lab.kafka.cluster import KafkaCluster
    from gateway.lab.kafka.groups import Groups
    from gateway.lab.kafka.users import Exchange, Users
    from gateway.wire.kafka.codec import Struct

    Handler = Callable[["KafkaSession", "Request"], Awaitable[Struct | None]]
    """Returns the body of the response; None if the request has none."""

ANONYMOUS = "ANONYMOUS"
"""The principal of a client that need not authenticate."""

BEFORE_LOGIN = frozenset({Key.API_VERSIONS, Key.SASL_HANDSHAKE, Key.SASL_AUTHENTICATE})


class Request(NamedTuple):
    """A request of a client, decoded. `body`: all fields that the request has in its version, by
    name."""

    version: int
    body: Struct


class Seen(NamedTuple):
    """A request that a broker has received. `connection`: a number, unique in the sandbox. `node`:
    the broker's id. `client`: the client id; None if the request has none. `principal`: the
    client's principal when it sent the request; empty before the login."""

    connection: int
    node: int
    api: str
    version: int
    client: str | None
    principal: str


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """What all sessions of one broker share. `node`: the broker's id. `requests`: a list to which
    the sessions add each request that they receive."""

    cluster: KafkaCluster
    groups: Groups
    node: int
    users: Users
    requests: deque[Seen]
    handlers: Mapping[int, Handler]


class KafkaSession:
    """The broker's side of one connection. `number`: the connection's number. `host`: the client's
    address. `is_ended`: the connection closes when the last response is sent.

    `exchange`: a login in progress; with `is_raw` its messages have no request headers
    (SaslHandshake 0). `expires`: when the client must reauthenticate, in seconds of wall time; 0:
    never (KIP-368). `now`: when the last frame came.
    """

    def __init__(self, context: BrokerContext, number: int, host: str) -> None:
        self.context = context
        self.cluster = context.cluster
        self.groups = context.groups
        self.node = context.node
        self.number = number
        self.host = host
        self.client: str | None = None
        self.principal = "" if context.users.are_required else ANONYMOUS
        self.exchange: Exchange | None = None
        self.is_raw = False
        self.is_ended = False
        self.expires = 0.0
        self.now = 0.0

    async def answer(self, frame: bytes, now: float) -> bytes | None:
        """Return the response to a request; None if the request has no response. `frame`: the whole
        request. `now`: wall time in seconds. Raises `PeerError`."""
        self.now = now
        if self.is_raw and self.exchange is not None:
            return self._raw(frame)
        head = frames.request(frame)
        self.client = None if head.client is None else head.client.decode(errors="replace")
        known = api(head.key)
        if known is None or head.key not in self.context.handlers:
            raise PeerError(f"a request of API {head.key}, which is not offered")
        self._note(known, head.version)
        if head.body < 0 or head.version < FIRST.get(head.key, 0):
            if head.key != Key.API_VERSIONS:
                raise PeerError(f"{known.name} of version {head.version}, which is not offered")
            return frames.response(known, 0, head.correlation, unsupported())
        self._admit(head.key)
        body = codec.decode(known.request, head.version, frame[head.body :])
        response = await self.context.handlers[head.key](self, Request(head.version, body))
        if response is None:
            return None
        data = codec.encode(known.response, head.version, response)
        return frames.response(known, head.version, head.correlation, data)

    def _note(self, known: Api, version: int) -> None:
        seen = Seen(self.number, self.node, known.name, version, self.client, self.principal)
        self.context.requests.append(seen)

    def _admit(self, key: int) -> None:
        """Raises `PeerError` for a request that needs a login, or a newer one."""
        if key in BEFORE_LOGIN:
            return
        if not self.principal:
            raise PeerError("a request before the login")
        if self.expires and self.now >= self.expires:
            raise PeerError("a request after the login has expired")

    def _raw(self, frame: bytes) -> bytes | None:
        """Return the response to a login's message without a request header; a failure ends the
        connection without a response."""
        assert self.exchange is not None
        outcome = self.exchange.step(frame[frames.SIZE.size :], self.now)
        if outcome.error:
            raise PeerError("a login that failed")
        if outcome.principal:
            self.principal, self.exchange, self.is_raw = outcome.principal, None, False
        return frames.SIZE.pack(len(outcome.reply)) + outcome.reply
