"""The gateway's own requests to a master: whether the master is the active one, and where brokers
are.

To learn where brokers are, the gateway registers as a producer, because a master sends producers
the list of brokers. It uses a client id of its own, and closes the producer at once. To learn
whether a master is active, it closes a producer that was never registered: this changes nothing,
and a master that is not active replies to every request with an exception.
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
"""The end of the name of the exception by which a master says that another one is active."""

_OWN = "broker-gateway"
"""The client id of the gateway."""

_PATIENCE_MS = 5_000
_OF_MASTER = 1  # the type of service in requests to it
_SERIAL = 1
_NO_STAMP = -1


class Role(Enum):
    """The role of a server: the active master, a standby, or no master."""

    ACTIVE = auto()
    STANDBY = auto()
    NO_MASTER = auto()


def role() -> Generator[Step, StepResult, Role | Denial]:
    """Return whether the dialled server is the active master, a standby, or no master; a denial if
    the server does not reply. Raises `PeerError` if the reply is malformed."""
    closed = yield from _ask(methods.END_PRODUCER, master.CloseRequestP2M(clientId=_OWN))
    if isinstance(closed, Denial):
        return closed
    if isinstance(closed, bytes):
        return Role.ACTIVE
    return Role.STANDBY if closed.exceptionName.endswith(STANDBY) else Role.NO_MASTER


class Cluster(NamedTuple):
    """The brokers of a cluster, as its master lists them. `brokers`: addresses by broker id.
    `visit`: the token that clients must show to brokers; 0: none is needed."""

    brokers: dict[int, Address]
    visit: int


def find_brokers(*, tls: bool) -> Generator[Step, StepResult, Cluster]:
    """Return the brokers that the dialled master lists; no brokers if it does not reply, or is not
    the active master. `tls`: a blank port in the list means the default TLS port, not the plain
    one. Raises `PeerError` if the reply is malformed."""
    request = master.RegisterRequestP2M(clientId=_OWN, brokerCheckSum=_NO_STAMP, hostName=_OWN)
    data = yield from _ask(methods.REGISTER_PRODUCER, request)
    if not isinstance(data, bytes):
        return Cluster({}, 0)
    reply = parsed(master.RegisterResponseM2P(), data)
    yield from _ask(methods.END_PRODUCER, master.CloseRequestP2M(clientId=_OWN))
    addresses = dict(brokers(list(reply.brokerInfos), tls=tls))
    return Cluster(addresses, reply.authorizedInfo.visitAuthorizedToken)


def _ask(
    method: int, message: Message
) -> Generator[Step, StepResult, bytes | Denial | rpc.RspExceptionBody]:
    """Send a request; return the encoded message of the reply, the exception in its place, or why
    the server does not reply. Raises `PeerError` if the reply is malformed."""
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
