"""Peers on loopback that answer as a test wants, in the test's own event loop."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import trio
from google.protobuf.message import DecodeError

from gateway.wire.address import Address
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import simple

HOST = "127.0.0.1"

PATIENCE = 60.0
"""Seconds of a step of the checks, and of a peer: a busy machine must not fail a test."""

Script = Callable[[trio.SocketStream], Awaitable[None]]
"""The peer's part of one connection."""

OnConnect = Callable[[CommandConnect], bytes]
OnLookup = Callable[[CommandLookupTopic], bytes]

CONNECTED = simple(
    Kind.CONNECTED,
    server_version="Pulsar Server of a test",
    protocol_version=20,
    max_message_size=5 * 1024 * 1024,
)


def error(code: int, text: str = "no") -> bytes:
    """Return an ERROR that answers CONNECT."""
    return simple(Kind.ERROR, request_id=(1 << 64) - 1, error=code, message=text)


def connect_to(address: Address) -> OnLookup:
    """Return a lookup answer: topics are at this broker."""
    return _answer(address, CommandLookupTopicResponse.Connect)


def redirect_to(address: Address) -> OnLookup:
    """Return a lookup answer: a redirect."""
    return _answer(address, CommandLookupTopicResponse.Redirect)


def _answer(address: Address, kind: int) -> OnLookup:
    def lookup(asked: CommandLookupTopic) -> bytes:
        return simple(
            Kind.LOOKUP_RESPONSE,
            request_id=asked.request_id,
            response=kind,
            brokerServiceUrl=f"pulsar://{address}",
        )

    return lookup


def failing(code: int, text: str = "") -> OnLookup:
    """Return a lookup answer: an error."""

    def lookup(asked: CommandLookupTopic) -> bytes:
        return simple(
            Kind.LOOKUP_RESPONSE,
            request_id=asked.request_id,
            response=CommandLookupTopicResponse.Failed,
            error=code,
            message=text,
        )

    return lookup


NOT_FOUND = failing(ServerError.TopicNotFound, "no such topic")


@dataclass
class FakeBroker:
    """A script that answers CONNECT and LOOKUP, and records received commands. As a broker, it
    closes on what is no command."""

    on_connect: OnConnect = lambda _connect: CONNECTED
    on_lookup: OnLookup = NOT_FOUND
    connects: list[CommandConnect] = field(default_factory=list)

    async def __call__(self, stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, DecodeError):
            while (command := await _ask_address(stream)) is not None:
                await stream.send_all(self._answer(command))

    def _answer(self, command: BaseCommand) -> bytes:
        if command.type == BaseCommand.CONNECT:
            self.connects.append(command.connect)
            return self.on_connect(command.connect)
        assert command.type == BaseCommand.LOOKUP
        return self.on_lookup(command.lookupTopic)


async def _ask_address(stream: trio.SocketStream) -> BaseCommand | None:
    head = await stream.receive_some(8)
    if not head:
        return None
    _read_length, size = struct.unpack(">II", head)
    return BaseCommand.FromString(bytes(await stream.receive_some(size)))


def saying(data: bytes) -> Script:
    """Receive something, send this, and close."""

    async def script(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        await stream.send_all(data)

    return script


async def silent(stream: trio.SocketStream) -> None:
    """Send nothing."""
    async for _ in stream:
        pass


async def tls_server(stream: trio.SocketStream) -> None:
    """Answer a ClientHello with the beginning of a handshake; close on anything else."""
    heard = await stream.receive_some(4096)
    if heard[:2] == b"\x16\x03":
        await stream.send_all(b"\x16\x03\x03\x00\x7a")


@asynccontextmanager
async def peer(script: Script) -> AsyncIterator[Address]:
    """Listen during a test; yield the address."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(_serve, script)
        yield Address(HOST, listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


async def _serve(
    script: Script,
    task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
) -> None:
    await trio.serve_tcp(script, 0, host=HOST, task_status=task_status)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port
