"""How a playbook is written: `Tube` for an open pair."""

from __future__ import annotations

from typing import Any

from gateway.wire.account import Right
from gateway.wire.address import Address
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import Denial, Direction
from gateway.wire.plugin import EntrySettings
from gateway.wire.subject import Caller, Subject, TopicName
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.context import Client, Listener
from gateway.wire.tubemq.envelopes import (
    REQUEST_FLAG,
    VERSION,
    Reply,
    parsed,
    read_reply,
    read_request,
    succeeded,
    written,
)
from gateway.wire.tubemq.frames import framed, head, length, whole
from gateway.wire.tubemq.methods import METHODS, OF_BROKER, SEND_MESSAGE
from gateway.wire.tubemq.session import TubeSession
from tests.playbooks.services import BROKER_1, BROKER_2, FORBIDDEN
from tests.playbooks_kafka.script import KafkaServices, Play

REAL = {1: Address(BROKER_1.host, 8123), 2: Address(BROKER_2.host, 8125)}
"""Where brokers are."""

PATIENCE_MS = 10_000


class TubeServices(KafkaServices):
    """Services that know where both brokers are, and show them at ports of the gateway."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = dict(REAL)

    def forbid_any(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """See `Services`. `forbidden` has the group."""
        return (
            FORBIDDEN if (right, f"group:{client.subscription}") in (self.forbidden or ()) else None
        )


class Tube(Play):
    """An open pair, with a master or with the broker of this id (`node`)."""

    def __init__(
        self,
        services: Any = None,
        node: int | None = None,
        *,
        listener: Listener | None = None,
        signs: bool = False,
        principal: str | None = None,
        **settings: Any,
    ) -> None:
        services = services or TubeServices()
        self.listener_of = listener or Listener(EntrySettings(services=services, **settings))
        subject = Subject(Caller(protocol="tubemq", principal=principal, connection=1))
        self.budget_of = Budget()
        client = Client(subject, Quota(self.budget_of, "client"), node, signs=signs)
        super().__init__(services, session=TubeSession(self.listener_of, client))

    def passes(self, frame: bytes, direction: Direction = Direction.TO_BROKER) -> bool:
        """Say a whole frame; return whether it passes the scanner, without a decision."""
        if self.session.scanners[direction].scan(bytearray(frame), 0, len(frame)) == len(frame):
            return True
        (self.client if direction is Direction.TO_BROKER else self.broker)(frame)
        return False


def ask(method: int, serial: int = 1, patience: int = PATIENCE_MS, **fields: Any) -> bytes:
    """Return a request."""
    message = METHODS[method].request(**fields)
    return request_of(method, message.SerializePartialToString(), serial, patience)


def request_of(method: int, data: bytes, serial: int = 1, patience: int = PATIENCE_MS) -> bytes:
    """Return a request with this encoded message."""
    connection = rpc.RpcConnHeader(flag=REQUEST_FLAG)
    header = rpc.RequestHeader(serviceType=_service(method), protocolVer=VERSION)
    body = rpc.RequestBody(method=method, timeout=patience, request=data)
    return framed(serial, written(connection, header, body))


def _service(method: int) -> int:
    """Return the type of service that clients name: of the master, of reading or of writing."""
    if method == SEND_MESSAGE:
        return 3
    return 2 if method in OF_BROKER else 1


def tell(method: int, serial: int = 1, **fields: Any) -> bytes:
    """Return a reply."""
    message = METHODS[method].reply(**fields)
    return succeeded(serial, method, message.SerializeToString())


def except_(name: str, text: str, serial: int = 1) -> bytes:
    """Return a reply that is an exception."""
    header = rpc.ResponseHeader(status=rpc.ResponseHeader.ERROR, protocolVer=VERSION)
    body = rpc.RspExceptionBody(exceptionName=name, stackTrace=text)
    return framed(serial, written(rpc.RpcConnHeader(flag=1), header, body))


def asked(frame: bytes) -> Any:
    """Return the message of a request, which is one frame."""
    assert length(frame) == len(frame)
    body = read_request(whole(frame).envelope).body
    return parsed(METHODS[body.method].request(), body.request)


def told(frame: bytes) -> Any:
    """Return the message of a reply, which is one frame."""
    body = reply_of(frame).body
    assert body is not None
    return parsed(METHODS[body.method].reply(), body.data)


def reply_of(frame: bytes) -> Reply:
    assert length(frame) == len(frame)
    return read_reply(whole(frame).envelope)


def serial_of(frame: bytes) -> int:
    return head(frame).serial
