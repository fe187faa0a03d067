"""Connections to a running sandbox, by hand."""

from __future__ import annotations

import struct

import pytest
import trio
import trio.lowlevel

from gateway.errors import ConfigurationError
from gateway.lab.kafka import server
from gateway.lab.kafka.codes import Key
from gateway.lab.kafka.connection import LARGEST_FRAME
from gateway.lab.kafka.server import KafkaSandbox, KafkaSettings
from gateway.lab.kafka.users import Users
from gateway.lab.process import first_of
from gateway.wire.address import Address
from tests.unit.lab.kafka.playbook import request

PATIENCE_S = 60
VERSIONS = request(Key.API_VERSIONS, 0, 7, b"")


@pytest.fixture
async def sandbox(nursery: trio.Nursery) -> KafkaSandbox:
    made = KafkaSandbox(KafkaSettings())
    await nursery.start(made.serve)
    return made


async def connected(sandbox: KafkaSandbox, node: int = 1) -> trio.SocketStream:
    return await trio.open_tcp_stream(*sandbox.cluster.nodes[node].pair)


async def answer(stream: trio.SocketStream) -> bytes:
    """Return the next answer, without its size."""
    with trio.fail_after(PATIENCE_S):
        (size,) = struct.unpack(">i", await exactly(stream, 4))
        return await exactly(stream, size)


async def exactly(stream: trio.SocketStream, size: int) -> bytes:
    """Return so many bytes."""
    data = b""
    while len(data) < size:
        chunk = await stream.receive_some(size - len(data))
        assert chunk
        data += chunk
    return data


async def test_requests_that_come_together_are_answered_in_turn(sandbox: KafkaSandbox) -> None:
    async with await connected(sandbox) as stream:
        await stream.send_all(VERSIONS + request(Key.METADATA, 1, 8, bytes(4)))
        assert (await answer(stream))[:4] == struct.pack(">i", 7)
        assert (await answer(stream))[:4] == struct.pack(">i", 8)


async def test_a_request_may_come_in_pieces(sandbox: KafkaSandbox) -> None:
    async with await connected(sandbox) as stream:
        for byte in VERSIONS:
            await stream.send_all(bytes([byte]))
            await trio.lowlevel.checkpoint()
        assert (await answer(stream))[:4] == struct.pack(">i", 7)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", LARGEST_FRAME + 1),
        struct.pack(">i", -1),
        request(Key.API_VERSIONS, 3, 7, b"\xff", flexible=True),
        request(1000, 0, 7, b""),
    ],
    ids=["too large", "negative", "torn", "unknown"],
)
async def test_a_violation_ends_its_connection_alone(
    sandbox: KafkaSandbox, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with await connected(sandbox) as other, await connected(sandbox) as stream:
        await stream.send_all(data)
        assert await stream.receive_some() == b""
        await other.send_all(VERSIONS)
        assert await answer(other)
    assert "closed a client's connection" in capsys.readouterr().err


async def test_there_is_a_most_of_connections(
    sandbox: KafkaSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    async with await connected(sandbox) as first:
        await first.send_all(VERSIONS)
        assert await answer(first)
        async with await connected(sandbox) as second:
            assert await second.receive_some() == b""


async def test_connections_end_with_their_broker(sandbox: KafkaSandbox) -> None:
    async with await connected(sandbox, 1) as first, await connected(sandbox, 2) as second:
        for stream in (first, second):
            await stream.send_all(VERSIONS)
            await answer(stream)
        await sandbox.stop(1)
        assert await first.receive_some() == b""
        await second.send_all(VERSIONS)
        assert await answer(second)


async def test_the_last_answer_before_the_end_is_sent(nursery: trio.Nursery) -> None:
    sandbox = KafkaSandbox(KafkaSettings(users={"amy": "secret"}))
    await nursery.start(sandbox.serve)
    async with await connected(sandbox) as stream:
        await stream.send_all(request(Key.SASL_HANDSHAKE, 1, 9, b"\0\1X"))
        assert await answer(stream) == struct.pack(">ihih", 9, 33, 1, 5) + b"PLAIN"
        assert await stream.receive_some() == b""


async def test_a_port_in_use_is_named(sandbox: KafkaSandbox) -> None:
    taken = sandbox.cluster.nodes[1]
    other = KafkaSandbox(KafkaSettings(brokers=(Address(*taken.pair),)))
    with pytest.raises(ExceptionGroup) as failure:
        await other.serve()
    mistake = first_of(failure.value)
    assert isinstance(mistake, ConfigurationError)
    assert f"cannot listen on {taken}" in str(mistake)


def test_settings_show_no_password() -> None:
    assert "secret" not in repr(KafkaSettings(users={"amy": "secret"}))
    assert Users({"amy": "secret"}).mechanisms == ["PLAIN"]
