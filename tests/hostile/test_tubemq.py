"""Hostile clients of TubeMQ: what they send before anybody knows them, and after."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.envelopes import read_request
from gateway.wire.tubemq.frames import BLOCK, HEAD, MOST_BLOCKS, SIZE, TOKEN, head, whole
from tests.oracle.tubemq.requests import again, any_request, plain_request
from tests.playbooks_tubemq.script import ask, tell, told
from tests.real.brokers.ports import free_ports

from .peers import HOST, Broker, Closed, Wire
from .process import HANDSHAKE, Addressed, until
from .protocols import (
    LISTENERS,
    MIB,
    ProtocolGateway,
    connected,
    flood,
    hear_to_the_end,
    storm,
    stuff,
)

everywhere = pytest.mark.parametrize("listener", LISTENERS)

REGISTER = ask(m.REGISTER_PRODUCER, 1, clientId="p", brokerCheckSum=-1, hostName="h")
GET: dict[str, Any] = {"clientId": "c", "partitionId": 0, "groupName": "g", "topicName": "demo"}


def _block(size: int, blocks: int = 1) -> bytes:
    return HEAD.pack(TOKEN, 1, blocks) + struct.pack(">I", size)


VIOLATIONS = {
    "no blocks": HEAD.pack(TOKEN, 1, 0),
    "more blocks than anybody takes": HEAD.pack(TOKEN, 1, MOST_BLOCKS + 1),
    "a block of 4 GiB": _block(0xFFFFFFFF),
    "a block of 1 GiB": _block(1 << 30, 3),
    "an empty envelope": _block(0),
    "an envelope that is torn": _block(3) + b"\x02\x08\x00",
    "a message that lacks fields": ask(m.REGISTER_PRODUCER, 1, clientId="p"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c403030000000000000000"),
    "Pulsar": bytes.fromhex("000000080000000408021200") * 4,
    "Kafka": struct.pack(">ihhih", 10, 18, 3, 1, -1) * 4,
}

# -- a server ------------------------------------------------------------------------------------


def serve(wire: Wire) -> None:
    """Answer like a master and a broker until the connection ends."""
    with suppress(Closed):
        while True:
            frame = hear(wire)
            reply = response(frame, wire.sock.getsockname()[1])
            if reply:
                wire.say(reply)


def response(frame: bytes, port: int) -> bytes:
    """Return the reply to a request; nothing if nobody could tell what it is."""
    number = read_request(whole(frame).envelope).body.method
    if number not in m.METHODS:
        return b""
    fields: dict[str, Any] = {"success": True, "errCode": 200, "errMsg": "OK!"}
    known = m.METHODS[number].reply.DESCRIPTOR.fields_by_name
    if "brokerCheckSum" in known:
        fields["brokerCheckSum"] = 1
    if number == m.REGISTER_PRODUCER:
        fields["brokerInfos"] = [f"1:{HOST}:{port}"]
    if number == m.GET_MESSAGES:
        message = {"messageId": 1, "checkSum": 0, "payLoadData": bytes(50_000), "flag": 0}
        fields["messages"] = [message] * 4
    return tell(number, head(frame).serial, **{it: fields[it] for it in fields if it in known})


def hear(wire: Wire) -> bytes:
    """Return the next frame. Raises `Closed`."""
    data = wire._read(HEAD.size)
    for _ in range(head(data).blocks):
        size = wire._read(SIZE.size)
        data += size + wire._read(int.from_bytes(size))
    return data


class TubeGateway(ProtocolGateway):
    """A gateway whose listeners speak TubeMQ. `of_broker`: the port of the broker at each."""

    protocol = "tubemq"

    def _settings(
        self, brokers: Sequence[Addressed], admin: int, secret: Path, deadlines: dict[str, str]
    ) -> dict[str, Any]:
        self.of_broker = dict(zip(self.ports, free_ports(HOST, len(self.ports)), strict=True))
        return super()._settings(brokers, admin, secret, deadlines)

    def _identity(self, secret: Path) -> dict[str, Any]:
        """See `ProtocolGateway`."""
        users = secret.with_name("users")
        users.write_text("alice:secret\n")
        return {"signature": {"users_file": str(users)}}

    def _first_port(self, listener: str) -> int:
        """See `ProtocolGateway`."""
        return self.of_broker[listener]

    def _cluster(self, broker: Addressed) -> dict[str, Any]:
        """See `ProtocolGateway`."""
        host, port = broker.address.rsplit(":", 1)
        return {"targets": {"networks": [f"{host}/32"], "ports": [int(port)]}}

    def serves(self) -> None:
        """Check that a good client can use the gateway."""
        with self.client("serving") as master:
            master.say(REGISTER)
            port = self.of_broker["serving"]
            assert list(told(hear(master)).brokerInfos) == [f"1:{HOST}:{port}"]
        with self.client_of_broker("serving") as broker:
            for serial in range(3):
                broker.say(sending(serial))
                assert told(hear(broker)).success

    def client_of_broker(self, listener: str) -> Wire:
        """Return a client that has connected to a listener's port of the broker."""
        return connected(self.of_broker[listener])


def sending(serial: int, size: int = 10) -> bytes:
    fields: dict[str, Any] = {"clientId": "p", "topicName": "demo", "partitionId": 0}
    fields |= {"data": bytes(size), "flag": 0, "checkSum": -1, "sentAddr": 1}
    return ask(m.SEND_MESSAGE, serial, **fields)


@pytest.fixture(scope="module")
def server() -> Iterator[Broker]:
    server = Broker(serve, opens=lambda wire: True)
    yield server
    server.close()


@pytest.fixture(scope="module")
def running_tubemq(
    server: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TubeGateway]:
    gateway = TubeGateway([server], tmp_path_factory.mktemp("tubemq"), {"idle": "1h"})
    yield gateway
    gateway.stop()


@pytest.fixture
def tubemq(running_tubemq: TubeGateway) -> Iterator[TubeGateway]:
    yield running_tubemq
    running_tubemq.serves()


@pytest.fixture
def hasty(server: Broker, tmp_path: Path) -> Iterator[TubeGateway]:
    """Return a gateway that gives clients less time to say their first request."""
    gateway = TubeGateway([server], tmp_path, {"handshake": f"{HANDSHAKE}s"})
    yield gateway
    gateway.stop()


# -- before anybody is known ---------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("violation", VIOLATIONS)
def test_what_is_no_request_ends_the_connection(
    tubemq: TubeGateway, listener: str, violation: str, *, at_once: bool
) -> None:
    reasons = EndReason.CLIENT_VIOLATION, EndReason.FRAME_TOO_LARGE
    with tubemq.expecting(listener, *reasons), tubemq.client(listener) as client:
        (client.say if at_once else client.drip)(VIOLATIONS[violation])
        hear_to_the_end(client)


@everywhere
def test_a_client_that_says_half_a_head_is_not_awaited(hasty: TubeGateway, listener: str) -> None:
    for cut in (1, 4, HEAD.size - 1):
        with hasty.expecting(listener, EndReason.HANDSHAKE_TIMEOUT), hasty.client(listener) as it:
            it.say(REGISTER[:cut])
            hear_to_the_end(it)


def test_who_shows_nothing_gets_no_message_and_sends_none(tubemq: TubeGateway) -> None:
    for frame in (sending(1), ask(m.GET_MESSAGES, 1, **GET), ask(m.COMMIT, 1, **GET)):
        with tubemq.client_of_broker("verifying") as client:
            client.say(frame)
            assert not told(hear(client)).success


def test_a_flood_of_strangers_keeps_no_client_out_and_no_memory(tubemq: TubeGateway) -> None:
    """Some say nothing, some half a frame, some ask without a proof, some guess."""
    wrong: dict[str, Any] = {"authInfo": {"authorizedToken": "alice 9999999999 t:bogus"}}
    guess = ask(m.REGISTER_PRODUCER, 2, clientId="p", brokerCheckSum=-1, hostName="h", **wrong)
    flood(tubemq, [b"", REGISTER[:-1], REGISTER * 50, guess])


# -- behind it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_requests_of_any_kind_harm_nobody_else(tubemq: TubeGateway, seed: int) -> None:
    """Whole ones, some like the last one, mutated ones and torn ones, in pieces of any size."""

    def is_of_broker(number: int) -> bool:
        return number % 10 < 7

    def connect(number: int) -> Wire:
        of_broker = is_of_broker(number)
        return tubemq.client_of_broker("passing") if of_broker else tubemq.client("passing")

    def say(number: int, client: Wire) -> None:
        noise = random.Random(100 * seed + number)
        frame = plain_request(noise, 0)
        client.say(frame)
        for serial in range(1, noise.randrange(2, 14)):
            other = any_request(noise, serial, 1 if is_of_broker(number) else None)
            frame = again(frame, noise, serial) if noise.random() < 0.6 else other
            frame = frame if len(frame) > HEAD.size else REGISTER
            cut = noise.randrange(len(frame) + 1) if noise.random() < 0.3 else len(frame)
            client.say(frame[:cut])
            client.say(frame[cut:])

    storm(tubemq, connect, say)


@pytest.mark.parametrize("of_broker", [True, False], ids=["messages", "refusals"])
def test_a_client_that_reads_nothing_is_not_answered_without_end(
    tubemq: TubeGateway, *, of_broker: bool
) -> None:
    """It asks for messages as fast as it can; the master refuses what brokers have."""
    client = tubemq.client_of_broker("passing") if of_broker else tubemq.client("passing")
    asked = b"".join(ask(m.GET_MESSAGES, serial, **GET) for serial in range(1000))
    stuff(tubemq, client, b"", asked, 40 * MIB)


def test_frames_of_many_blocks_that_never_end_have_a_bound(tubemq: TubeGateway) -> None:
    """Each client says all blocks but one."""
    before = tubemq.memory
    block = struct.pack(">I", BLOCK) + bytes(BLOCK)
    begun = HEAD.pack(TOKEN, 1, 1000) + block * 28
    clients = [tubemq.client_of_broker("passing") for _ in range(40)]
    for client in clients:
        client.say(begun)
    tubemq.serves()
    assert tubemq.memory - before < 40 * MIB
    for client in clients:
        client.reset()
    assert until(lambda: tubemq.metrics().connections("passing") == 0)
    assert until(lambda: tubemq.metrics().remembered == 0)
