"""Clients of a sandbox without sockets: they send commands and read the answers."""

from __future__ import annotations

import struct
from typing import Any

from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.connection import HANDLERS
from gateway.lab.sandbox.faults import Faults
from gateway.lab.sandbox.identity import Authenticator
from gateway.lab.sandbox.session import BrokerContext, BrokerSession
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support import frames

NOW = 1_735_689_600.0
"""Wall time in seconds."""
TOPIC = "persistent://public/default/t"
URLS = ("pulsar://127.0.0.1:16650", "pulsar://127.0.0.1:16651")
EARLIEST = 1

Command = Any
"""The command inside a BaseCommand, with the fields of the specification."""


class Client:
    """One connection to broker number `broker`."""

    def __init__(
        self,
        cluster: SandboxCluster,
        broker: int = 0,
        *,
        faults: Faults | None = None,
        authenticator: Authenticator | None = None,
        connect: bool = True,
    ) -> None:
        self.is_congested = False
        self._sent: list[bytes] = []
        context = BrokerContext(
            cluster, broker, authenticator or Authenticator(), faults or Faults()
        )
        self.session = BrokerSession(
            context, self._sent.append, lambda: self.is_congested, HANDLERS
        )
        if connect:
            self.ask(Kind.CONNECT, client_version="test", protocol_version=21)

    def say(self, kind: Kind, **fields: Any) -> None:
        self.session.receive(frames.simple(kind, **fields), NOW)

    def ask(self, kind: Kind, **fields: Any) -> Command:
        """Send a command; return the last answer."""
        self.say(kind, **fields)
        return self.read()[-1]

    def take(self) -> list[bytes]:
        """Return the frames sent since the last call."""
        found, self._sent[:] = list(self._sent), []
        return found

    def read(self) -> list[Command]:
        """Return the commands sent since the last call."""
        return [command_of(frame) for frame in self.take()]

    # -- producing -------------------------------------------------------------------------------

    def produce(self, id: int = 1, topic: str = TOPIC, **fields: Any) -> Command:
        """Open a producer."""
        return self.ask(Kind.PRODUCER, topic=topic, producer_id=id, request_id=100 + id, **fields)

    def send(self, *payloads: bytes, id: int = 1, **metadata: Any) -> list[tuple[int, int]]:
        """Send messages one by one; return their positions."""
        found = []
        for sequence, payload in enumerate(payloads):
            tail = frames.tail(frames.metadata_of(sequence, **metadata), payload)
            self.session.receive(send(id, sequence, tail), NOW)
            answer = self.read()[-1].message_id
            found.append((answer.ledgerId, answer.entryId))
        return found

    # -- consuming -------------------------------------------------------------------------------

    def subscribe(self, id: int = 1, *, permits: int = 1000, **fields: Any) -> list[Command]:
        """Open an exclusive consumer at the earliest message, with permits; return all answers."""
        wanted = {"topic": TOPIC, "subscription": "s", "subType": 0, "initialPosition": EARLIEST}
        self.say(Kind.SUBSCRIBE, consumer_id=id, request_id=200 + id, **wanted | fields)
        if permits:
            self.flow(permits, id)
        return self.read()

    def flow(self, permits: int, id: int = 1) -> None:
        self.say(Kind.FLOW, consumer_id=id, messagePermits=permits)

    def received(self) -> list[bytes]:
        """Return the payloads of the messages since the last call; nothing else was sent."""
        return [payload_of(frame) for frame in self.take()]

    def acknowledge(self, *ids: tuple[int, int], consumer: int = 1, **fields: Any) -> None:
        message_ids = [{"ledgerId": ledger, "entryId": entry} for ledger, entry in ids]
        kind = {"ack_type": 0, **fields}
        self.say(Kind.ACK, consumer_id=consumer, message_id=message_ids, **kind)


def send(id: int, sequence: int, tail: bytes) -> bytes:
    """Return a SEND with any bytes after its command."""
    fields = {"producer_id": id, "sequence_id": sequence}
    command = frames.simple(Kind.SEND, **fields)
    return struct.pack(">I", len(command) - 4 + len(tail)) + command[4:] + tail


def command_of(frame: bytes) -> Command:
    """Return the command of a frame without its envelope."""
    total, size = struct.unpack_from(">II", frame)
    assert total == len(frame) - 4
    whole = BaseCommand.FromString(frame[8 : 8 + size])
    found = whole.ListFields()
    assert [field.number for field, _ in found] == [1, whole.type]
    return found[1][1]


def kinds_of(commands: list[Command]) -> list[str]:
    """Return the names of commands without their common prefix."""
    return [command.DESCRIPTOR.name.removeprefix("Command") for command in commands]


def payload_of(frame: bytes) -> bytes:
    """Return the payload of a frame, which must be a MESSAGE."""
    command = command_of(frame)
    assert kinds_of([command]) == ["Message"]
    at = 8 + struct.unpack_from(">I", frame, 4)[0] + 6
    return frame[at + 4 + struct.unpack_from(">I", frame, at)[0] :]
