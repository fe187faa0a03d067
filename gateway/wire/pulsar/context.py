"""What the pairs of one listener have in common, and who one client is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.wire.contract import Credential, Denial, Gate, Principal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandConnect
from gateway.wire.pulsar.addresses import Veil
from gateway.wire.pulsar.commands import encode


class Mode(StrEnum):
    """Who authenticates clients, and what the broker is told of them."""

    PASS_THROUGH = "pass-through"
    VERIFY = "verify"
    VERIFY_AND_FORWARD = "verify-and-forward"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one connection. Generous: they keep one client from eating the memory of all.

    `collected`: bytes of a stop frame; Pulsar's own default for frames is 5 MiB, and a PRODUCER
    carries a schema. `handles`: producers and consumers. `lookups`: unanswered at a time; the
    Java client allows itself 5,000. `rounds`: of one authentication, as SASL has a handful.
    """

    collected: int = 6 * 1024 * 1024
    handles: int = 20_000
    lookups: int = 5_000
    rounds: int = 10


@dataclass(frozen=True, slots=True)
class Listener:
    """How the clients of one listener are served. `scheme`: by which they connect."""

    gate: Gate
    mode: Mode = Mode.PASS_THROUGH
    unknown_pass: bool = True
    scheme: str = "pulsar"
    version: str = "broker-gateway"
    bounds: Bounds = Bounds()

    @property
    def veil(self) -> Veil:
        return Veil(self.gate, self.scheme)


@dataclass(slots=True)
class Client:
    """Who is at the other end of one connection.

    `credential`: the newest that the client showed; later connections of ours use it.
    """

    connect: CommandConnect
    principal: Principal
    credential: Credential

    def greeting(self, listener: Listener) -> bytes | Denial:
        """The CONNECT that opens a broker connection on behalf of this client.

        The client's version, protocol version, flags and unknown fields go along. In the
        verifying modes the credential is ours, and `original_principal` says whom we speak for.
        """
        command = BaseCommand(type=BaseCommand.CONNECT)
        connect = command.connect
        connect.CopyFrom(self.connect)
        connect.ClearField("proxy_to_broker_url")
        if listener.mode is Mode.PASS_THROUGH:
            self._show(connect, self.credential)
            return encode(command)
        ours = listener.gate.credential()
        if isinstance(ours, Denial):
            return ours
        self._show(connect, ours)
        connect.ClearField("auth_method")
        connect.original_principal = self.principal.name
        connect.proxy_version = listener.version
        if listener.mode is Mode.VERIFY_AND_FORWARD:
            # The field is a string: upstream's proxy, too, sends text credentials only.
            connect.original_auth_data = self.credential.data.decode("utf-8", "replace")
            connect.original_auth_method = self.credential.method
        return encode(command)

    def _show(self, connect: CommandConnect, credential: Credential) -> None:
        if credential.method:
            connect.auth_method_name = credential.method
        else:
            connect.ClearField("auth_method_name")
        if credential.data:
            connect.auth_data = credential.data
        else:
            connect.ClearField("auth_data")
