"""Frames, and the envelope in them.

A frame is a token, a serial number, the number of blocks, and the blocks, each behind its length.
Borders of blocks mean nothing: joined, they are the envelope, which is three messages, each behind
its length as a varint. What follows the third is ignored, as some clients send zeros there.

Source: RpcProtocol, RPC.proto and the encoders of Apache InLong TubeMQ.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from gateway.errors import PeerError
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc

M = TypeVar("M", bound=Message)

HEAD = struct.Struct(">IiI")
"""The head of a frame: token, serial number, number of blocks."""

SIZE = struct.Struct(">I")
"""Before each block: its length."""

TOKEN = 0xFF7FF4FE

MOST_BLOCKS = 3584
"""Blocks of a frame: servers accept no more, 28 MiB of full ones."""

BLOCK = 8192
"""Bytes of the blocks that are written, but for the last: clients in C++ accept no larger ones."""

REQUEST_FLAG, REPLY_FLAG = 0, 1

VERSION = 3
"""What servers say of the protocol's version in replies, whichever one the client has."""


class Head(NamedTuple):
    """The head of a frame. `serial`: chosen by who asks, and the same in the reply."""

    serial: int
    blocks: int


def head(chunk: bytes | bytearray, at: int = 0) -> Head:
    """Return the head of the frame that begins at `at`. Raises `PeerError` if it is none."""
    token, serial, blocks = HEAD.unpack_from(chunk, at)
    if token != TOKEN:
        raise PeerError("a frame without the token of TubeMQ")
    if not 0 < blocks <= MOST_BLOCKS:
        raise PeerError(f"a frame of {blocks} blocks")
    return Head(serial, blocks)


def length(chunk: bytes | bytearray) -> int:
    """Return the length of the frame that begins the chunk; if its last block has not begun yet, a
    lower bound, beyond what has come; 0 if its head has not come. Raises `PeerError`."""
    if len(chunk) < HEAD.size + SIZE.size:
        return 0
    at = HEAD.size
    for _ in range(head(chunk).blocks):
        if len(chunk) < at + SIZE.size:
            return at + SIZE.size + 1
        at += SIZE.size + SIZE.unpack_from(chunk, at)[0]
    return at


def joined(frame: bytes) -> bytes:
    """Return the envelope of a whole frame."""
    at, parts = HEAD.size, []
    while at < len(frame):
        (size,) = SIZE.unpack_from(frame, at)
        parts.append(frame[at + SIZE.size : at + SIZE.size + size])
        at += SIZE.size + size
    return b"".join(parts)


def framed(serial: int, envelope: bytes) -> bytes:
    """Return the frame of an envelope, in blocks that all clients accept."""
    parts = [HEAD.pack(TOKEN, serial, -(-len(envelope) // BLOCK))]
    for at in range(0, len(envelope), BLOCK):
        block = envelope[at : at + BLOCK]
        parts += (SIZE.pack(len(block)), block)
    return b"".join(parts)


# -- the envelope --------------------------------------------------------------------------------


class Request(NamedTuple):
    """The envelope of a request. `body` has the method, the patience in milliseconds, and the
    encoded message."""

    connection: rpc.RpcConnHeader
    header: rpc.RequestHeader
    body: rpc.RequestBody


class Reply(NamedTuple):
    """The envelope of a reply. `body`: None if it is an exception, which `error` has then."""

    connection: rpc.RpcConnHeader
    header: rpc.ResponseHeader
    body: rpc.RspResponseBody | None
    error: rpc.RspExceptionBody | None


def read_request(envelope: bytes) -> Request:
    """Return a request. Raises `PeerError` if it cannot be read."""
    connection, at = _read(envelope, 0, rpc.RpcConnHeader())
    header, at = _read(envelope, at, rpc.RequestHeader())
    body, _ = _read(envelope, at, rpc.RequestBody())
    return Request(connection, header, body)


def read_reply(envelope: bytes) -> Reply:
    """Return a reply. Raises `PeerError` if it cannot be read."""
    connection, at = _read(envelope, 0, rpc.RpcConnHeader())
    header, at = _read(envelope, at, rpc.ResponseHeader())
    if header.status == rpc.ResponseHeader.SUCCESS:
        return Reply(connection, header, _read(envelope, at, rpc.RspResponseBody())[0], None)
    return Reply(connection, header, None, _read(envelope, at, rpc.RspExceptionBody())[0])


def written(*messages: Message) -> bytes:
    """Return the envelope of these messages."""
    parts: list[bytes] = []
    for message in messages:
        data = message.SerializeToString()
        parts += (_varint(len(data)), data)
    return b"".join(parts)


def succeeded(serial: int, method: int, data: bytes) -> bytes:
    """Return the frame of a reply of the gateway's own. `data`: the encoded message."""
    header = rpc.ResponseHeader(status=rpc.ResponseHeader.SUCCESS, protocolVer=VERSION)
    body = rpc.RspResponseBody(method=method, data=data)
    return framed(serial, written(rpc.RpcConnHeader(flag=REPLY_FLAG), header, body))


def failed(serial: int, text: str) -> bytes:
    """Return the frame of a reply that says what the server cannot do, as servers say it."""
    header = rpc.ResponseHeader(status=rpc.ResponseHeader.ERROR, protocolVer=VERSION)
    body = rpc.RspExceptionBody(exceptionName="java.lang.Exception", stackTrace=text)
    return framed(serial, written(rpc.RpcConnHeader(flag=REPLY_FLAG), header, body))


def _read(envelope: bytes, at: int, message: M) -> tuple[M, int]:
    """Read one message of an envelope; return it, and where it ends."""
    size, at = _length(envelope, at)
    end = at + size
    if end > len(envelope):
        raise PeerError("an envelope that ends within a message")
    return parsed(message, envelope[at:end]), end


def parsed(message: M, data: bytes) -> M:
    """Return the message that `data` encodes, read into an empty one. Raises `PeerError` if it
    cannot be read, lacks what it must have, or has a text that is not UTF-8: peers read such a text
    each in another way."""
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise PeerError(f"a {message.DESCRIPTOR.name} that cannot be read") from error
    if not message.IsInitialized():
        raise PeerError(f"a {message.DESCRIPTOR.name} that lacks a required field")
    if not _has_texts(message):
        raise PeerError(f"a {message.DESCRIPTOR.name} with a text that is not UTF-8")
    return message


def _has_texts(message: Message) -> bool:
    """Return whether all texts of a message are such, and no bytes, which protobuf returns for what
    is not UTF-8. Raises `PeerError` if there are too many."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            texts = (value,) if isinstance(value, str | bytes) else value
            if len(texts) > MOST_TEXTS:
                raise PeerError(f"a {message.DESCRIPTOR.name} with {len(texts)} texts in one field")
            if not all(isinstance(it, str) for it in texts):
                return False
        elif field.message_type is not None and field.message_type.name not in _TEXTLESS:
            inner = (value,) if isinstance(value, Message) else value
            if not all(map(_has_texts, inner)):
                return False
    return True


MOST_TEXTS = 20_000
"""Texts of one field, such as the partitions of a group: reading so many takes 20 ms."""

_TEXTLESS = frozenset({"TransferedMessage"})
"""Messages without texts, of which a reply has thousands."""


_LONGEST = 5
"""Bytes of a varint of 32 bits."""


def _length(envelope: bytes, at: int) -> tuple[int, int]:
    found = 0
    for number, byte in enumerate(envelope[at : at + _LONGEST]):
        found |= (byte & 127) << 7 * number
        if byte < 128:
            return found, at + number + 1
    raise PeerError("an envelope that ends within a length")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
