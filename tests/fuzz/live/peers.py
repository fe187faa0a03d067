"""A client and a broker that do what a plan says, and count what comes out of the gateway."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import CONNECTED, Broker, Client, Closed, Wire
from tests.support.frames import simple

from .plan import End, Plan
from .streams import END, IDS, requests, responses

PATIENCE = 60.0
"""Seconds until a connection counts as stuck: many times what its deadlines give it."""

SILENT = 0.5
"""Seconds that a deaf broker stays."""

CHUNK = 1 << 18
_size = struct.Struct(">I").unpack_from

Fault = Callable[[str], None]
"""Told in words what the gateway did wrong."""


class Counter:
    """Counts frames by their sizes as they begin, wherever chunks are cut."""

    def __init__(self) -> None:
        self.frames = 0
        self._skip = 0
        self._head = b""
        self.last = b""

    def feed(self, data: bytes) -> None:
        self.last = (self.last + data[-len(END) :])[-len(END) :]
        chunk = self._head + data
        at, end = self._skip, len(chunk)
        while at + 4 <= end:
            at += _size(chunk, at)[0] + 4
            self.frames += 1
        self._head, self._skip = (chunk[at:], 0) if at <= end else (b"", at - end)


def listen(wire: Wire, plan: Plan, towards: Direction, fault: Fault, hidden: bytes = b"") -> None:
    """Count until the end. `hidden`: what must not be among it."""
    counter, tail = Counter(), b""
    try:
        while data := wire.sock.recv(CHUNK):
            counter.feed(data)
            plan.through[towards] = counter.frames
            if counter.last == END or (counter.frames > len(IDS) * 2 and END in tail + data):
                plan.heard[towards].set()
            if hidden and hidden in tail + data:
                fault(f"{plan.version}: a client was shown the broker's address")
            tail = data[-len(END) :]
    except TimeoutError:
        if wire.sock.fileno() >= 0:  # it may be closed while we wait here, and nobody tells us
            fault(f"{plan.version} ({plan.end.name}): nothing came {towards.name}, and no end")
    except OSError:
        pass
    finally:
        for event in plan.heard.values():
            event.set()  # the other side will soon be over, too


def flood(wire: Wire, plan: Plan, direction: Direction, fault: Fault) -> None:
    """Say the stream again and again."""
    stream = plan.streams[direction]
    try:
        for _ in range(plan.times):
            wire.sock.sendall(stream.data)
            plan.said[direction] += stream.frames
    except TimeoutError:
        fault(f"{plan.version} ({plan.end.name}): no more is read {direction.name}, and no end")
    except OSError:
        pass


# -- the client --------------------------------------------------------------------------------


def connect(plan: Plan, port: int, fault: Fault, hidden: bytes) -> None:
    """One connection, from its begin to the gateway's end of it."""
    with Client(port) as client:
        client.sock.settimeout(PATIENCE)
        if plan.end is End.NO_CONNECT:
            client.say(plan.poison[Direction.TO_BROKER])
            with suppress(OSError):
                client.sock.shutdown(socket.SHUT_WR)
            listen(client, plan, Direction.TO_CLIENT, fault, hidden)
            return
        client.say(simple(Kind.CONNECT, client_version=plan.version, protocol_version=20))
        client.say(requests())
        reader = threading.Thread(
            target=listen, args=[client, plan, Direction.TO_CLIENT, fault, hidden], daemon=True
        )
        reader.start()
        _talk(client, plan, Direction.TO_BROKER, fault)
        reader.join()


_CLOSING = {Direction.TO_BROKER: End.CLIENT_CLOSES, Direction.TO_CLIENT: End.BROKER_CLOSES}
_RESETTING = {Direction.TO_BROKER: End.CLIENT_RESETS, Direction.TO_CLIENT: End.BROKER_RESETS}
_POISONING = {Direction.TO_BROKER: End.CLIENT_POISONS, Direction.TO_CLIENT: End.BROKER_POISONS}
_STOPPING = {Direction.TO_BROKER: End.CLIENT_STOPS, Direction.TO_CLIENT: End.BROKER_STOPS}


def _talk(wire: Wire, plan: Plan, direction: Direction, fault: Fault) -> None:
    """Flood, and end as planned if it is up to this side; then the other side ends it."""
    if plan.end is End.NO_CONNECTED:
        return
    if plan.end is _RESETTING[direction]:
        wire.say(plan.streams[direction].data[: plan.noise.randrange(1 << 18)])
        wire.sock.shutdown(socket.SHUT_RD)
        wire.reset()
        return
    flood(wire, plan, direction, fault)
    if plan.end in (_CLOSING[direction], _POISONING[direction], _STOPPING[direction]):
        for event in plan.heard.values():
            event.wait(PATIENCE)
    if plan.end is _POISONING[direction]:
        wire.say(plan.poison[direction])
    if plan.end is _STOPPING[direction]:
        wire.say(plan.streams[direction].data[:11])
    elif plan.end in (_CLOSING[direction], _POISONING[direction]):
        with suppress(OSError):
            wire.sock.shutdown(socket.SHUT_WR)


# -- the broker --------------------------------------------------------------------------------


class HostileBroker(Broker):
    """Knows by the client's version what it has to do. `plans`: those of this round."""

    def __init__(self, fault: Fault) -> None:
        self.plans: dict[str, Plan] = {}
        self._fault = fault
        super().__init__()

    def _serve(self, wire: Wire) -> None:
        with self._lock:
            self._wires.add(wire)
        try:
            with wire, suppress(Closed, OSError):
                self._play(wire, self.plans.get(wire.hear().connect.client_version))
        except Exception as bug:  # a thread's own failure would be heard by nobody
            self._fault(f"the broker of these tests: {bug!r}")
        finally:
            with self._lock:
                self._wires.discard(wire)

    def _play(self, wire: Wire, plan: Plan | None) -> None:
        if plan is None:
            return
        if plan.through[Direction.TO_BROKER]:
            self._side(wire, plan)
            return
        wire.sock.settimeout(PATIENCE)
        if plan.end is End.NO_CONNECTED:
            self._refuse(wire, plan)
            return
        wire.say(CONNECTED)
        for _ in range(2 * len(IDS)):
            wire.hear()
        plan.through[Direction.TO_BROKER] = 2 * len(IDS)
        wire.say(responses())
        self._converse(wire, plan)

    def _refuse(self, wire: Wire, plan: Plan) -> None:
        """Nonsense, half a frame, silence, or nothing at all."""
        match plan.noise.randrange(4):
            case 0:
                wire.say(plan.poison[Direction.TO_CLIENT])
            case 1:
                wire.say(CONNECTED[:9])
            case 2:
                wire.reset()
                return
        wire.hear_all()

    def _side(self, wire: Wire, plan: Plan) -> None:
        """A chase comes along: it is told anything."""
        wire.say(CONNECTED)
        while wire.hear().type != BaseCommand.LOOKUP:
            pass
        wire.say(plan.poison[Direction.TO_CLIENT])

    def _converse(self, wire: Wire, plan: Plan) -> None:
        if plan.end is End.BROKER_IS_DEAF:
            threading.Event().wait(SILENT)
            return
        talker = threading.Thread(
            target=_talk, args=[wire, plan, Direction.TO_CLIENT, self._fault], daemon=True
        )
        talker.start()
        listen(wire, plan, Direction.TO_BROKER, self._fault)
        talker.join()
