"""What the gateway itself asks a master: whether it is the active one, and where brokers are.

A master tells where brokers are to producers that register. So the gateway registers, by a name of
its own, and is gone again at once. Closing a producer that was never there changes nothing, so it
shows which master is active: the others answer everything with an exception.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum, auto
from typing import NamedTuple

from google.protobuf.message import Message

from gateway.wire.address import Address
from gateway.wire.contract import Denial, Peer, Receive, Step, StepResult, Transmit
from gateway.wire.tubemq import methods
from gateway.wire.tubemq._proto import tubemq_master_pb2 as master
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.addresses import brokers
from gateway.wire.tubemq.envelopes import REQUEST_FLAG, VERSION, parsed, read_reply, written
from gateway.wire.tubemq.frames import framed, whole

STANDBY = "StandbyException"
"""What the name of the exception ends with by which a master says that another one is active."""

_OWN = "broker-gateway"
"""As what the gateway registers."""

_PATIENCE_MS = 5_000
_OF_MASTER = 1  # the type of service in requests to it
_SERIAL = 1
_NO_STAMP = -1


class Role(Enum):
    """What a server is."""

    ACTIVE = auto()
    STANDBY = auto()
    NO_MASTER = auto()


def role() -> Generator[Step, StepResult, Role | Denial]:
    """Ask the server that was dialled what it is. Raises `PeerError`."""
    closed = yield from _ask(methods.END_PRODUCER, master.CloseRequestP2M(clientId=_OWN))
    if isinstance(closed, Denial):
        return closed
    if isinstance(closed, bytes):
        return Role.ACTIVE
    return Role.STANDBY if closed.exceptionName.endswith(STANDBY) else Role.NO_MASTER


class Found(NamedTuple):
    """What a master tells. `brokers`: where they are, by id. `visit`: the token that they want to
    see; 0: none."""

    brokers: dict[int, Address]
    visit: int


def find_brokers(*, tls: bool) -> Generator[Step, StepResult, Found]:
    """Ask the active master, which was dialled, where brokers are. Raises `PeerError`. `tls`: where
    a blank port is."""
    request = master.RegisterRequestP2M(clientId=_OWN, brokerCheckSum=_NO_STAMP, hostName=_OWN)
    data = yield from _ask(methods.REGISTER_PRODUCER, request)
    if not isinstance(data, bytes):
        return Found({}, 0)
    told = parsed(master.RegisterResponseM2P(), data)
    yield from _ask(methods.END_PRODUCER, master.CloseRequestP2M(clientId=_OWN))
    found = dict(brokers(list(told.brokerInfos), tls=tls))
    return Found(found, told.authorizedInfo.visitAuthorizedToken)


def _ask(
    method: int, message: Message
) -> Generator[Step, StepResult, bytes | Denial | rpc.RspExceptionBody]:
    """Return the encoded message of the reply, or the exception in its place; or why the server
    does not answer. Raises `PeerError`."""
    connection = rpc.RpcConnHeader(flag=REQUEST_FLAG)
    header = rpc.RequestHeader(serviceType=_OF_MASTER, protocolVer=VERSION)
    data = message.SerializeToString()
    body = rpc.RequestBody(method=method, timeout=_PATIENCE_MS, request=data)
    yield Transmit(Peer.BROKER, framed(_SERIAL, written(connection, header, body)))
    frame = yield Receive(Peer.BROKER)
    if not isinstance(frame, bytes):
        assert isinstance(frame, Denial)
        return frame
    reply = read_reply(whole(frame).envelope)
    if reply.error is not None:
        return reply.error
    assert reply.body is not None
    return reply.body.data
