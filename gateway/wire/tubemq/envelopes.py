"""Envelopes, the content of frames: three protobuf messages, each with its length before it as a
varint. Bytes after the third message are ignored, because some clients send zeros there.

Source: RPC.proto and the encoders of Apache InLong TubeMQ.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from gateway.errors import PeerError
from gateway.wire.slices import Slices, finished
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.frames import framed

M = TypeVar("M", bound=Message)

REQUEST_FLAG, REPLY_FLAG = 0, 1

VERSION = 3
"""The protocol version that servers state in replies, whatever version the client has."""


class Request(NamedTuple):
    """The envelope of a request. `body` has the method, the timeout in milliseconds, and the
    encoded message."""

    connection: rpc.RpcConnHeader
    header: rpc.RequestHeader
    body: rpc.RequestBody


class Reply(NamedTuple):
    """The envelope of a reply. A reply has either a `body`, or an exception in `error`; the other
    is None."""

    connection: rpc.RpcConnHeader
    header: rpc.ResponseHeader
    body: rpc.RspResponseBody | None
    error: rpc.RspExceptionBody | None


def read_request(envelope: bytes) -> Request:
    """Return the content of a request's envelope. Raises `PeerError` if it is truncated or
    malformed."""
    connection, at = _read(envelope, 0, rpc.RpcConnHeader)
    header, at = _read(envelope, at, rpc.RequestHeader)
    body, _ = _read(envelope, at, rpc.RequestBody)
    return Request(connection, header, body)


def read_reply(envelope: bytes) -> Reply:
    """Return the content of a reply's envelope. Raises `PeerError` if it is truncated or
    malformed."""
    connection, at = _read(envelope, 0, rpc.RpcConnHeader)
    header, at = _read(envelope, at, rpc.ResponseHeader)
    if header.status == rpc.ResponseHeader.SUCCESS:
        return Reply(connection, header, _read(envelope, at, rpc.RspResponseBody)[0], None)
    return Reply(connection, header, None, _read(envelope, at, rpc.RspExceptionBody)[0])


def content(envelope: bytes) -> tuple[int, bytes] | None:
    """Return the method number and the encoded message of a reply's envelope; None if the reply is
    an exception, or if its bytes are not in the form that servers write. This function copies a
    large reply once, `read_reply` three times. Raises `PeerError` if the envelope is malformed."""
    at = body_at(envelope)
    body = None if at is None else varint_at(envelope, at)
    if at is None or body is None or at > _LONGEST_HEADS or not _succeeds(envelope[:at]):
        return None
    size, at = body
    method = varint_at(envelope, at + 1) if envelope[at : at + 1] == _METHOD else None
    if method is None or envelope[method[1] : method[1] + 1] != _MESSAGE:
        return None
    message = varint_at(envelope, method[1] + 1)
    if message is None or sum(message) != at + size or at + size > len(envelope):
        return None
    return method[0], envelope[message[1] : at + size]


def body_at(envelope: bytes) -> int | None:
    """Return the offset in an envelope at which the length of the third message, the body, begins;
    None if the lengths of the first two messages cannot be read."""
    at = 0
    for _ in range(2):
        length = varint_at(envelope, at)
        if length is None:
            return None
        at = sum(length)
    return at


_LONGEST_HEADS = 100


def _succeeds(heads: bytes) -> bool:
    """Return whether these are the first two messages of a reply that is no exception."""
    _, at = _read(heads, 0, rpc.RpcConnHeader)
    header, _ = _read(heads, at, rpc.ResponseHeader)
    return header.status == rpc.ResponseHeader.SUCCESS


_METHOD, _MESSAGE = b"\x08", b"\x12"
"""The tags of `RspResponseBody.method` and `RspResponseBody.data`."""


def written(*messages: Message) -> bytes:
    """Return the envelope of these messages."""
    parts: list[bytes] = []
    for message in messages:
        data = message.SerializeToString()
        parts += (varint(len(data)), data)
    return b"".join(parts)


def succeeded(serial: int, method: int, data: bytes) -> bytes:
    """Return the frame of a synthetic reply that is not an exception. `serial`: the serial number
    of the request. `data`: the reply's encoded message."""
    header = rpc.ResponseHeader(status=rpc.ResponseHeader.SUCCESS, protocolVer=VERSION)
    body = rpc.RspResponseBody(method=method, data=data)
    return framed(serial, written(rpc.RpcConnHeader(flag=REPLY_FLAG), header, body))


def failed(serial: int, text: str) -> bytes:
    """Return the frame of a synthetic reply that is an exception, in the form in which servers send
    it. `serial`: the serial number of the request. `text`: the reason."""
    header = rpc.ResponseHeader(status=rpc.ResponseHeader.ERROR, protocolVer=VERSION)
    body = rpc.RspExceptionBody(exceptionName="java.lang.Exception", stackTrace=text)
    return framed(serial, written(rpc.RpcConnHeader(flag=REPLY_FLAG), header, body))


def _read(envelope: bytes, at: int, kind: type[M]) -> tuple[M, int]:
    """Return the message of an envelope whose length stands at offset `at`, and the offset behind
    it. Heads must not be changed: they are shared, as most are the same."""
    length = varint_at(envelope, at)
    if length is None:
        raise PeerError("an envelope that ends within a length")
    size, at = length
    end = at + size
    if end > len(envelope):
        raise PeerError("an envelope that ends within a message")
    data = envelope[at:end]
    head: Any = kind
    if head in _HEADS and size <= _LONGEST_HEADS:
        return _head(head, data), end
    if size > LARGE:
        finished(count_fields(kind(), data))
    return parsed(kind(), data), end


_HEADS = frozenset({rpc.RpcConnHeader, rpc.RequestHeader, rpc.ResponseHeader})


@lru_cache(64)
def _head(kind: Any, data: bytes) -> Any:
    return parsed(kind(), data)


def count_fields(message: Message, data: bytes) -> Slices[None]:
    """Raise `PeerError` if a large message, or the messages in it, have too many fields: protobuf
    takes 80 ms for a million. `message`: of its kind."""
    yield from _count_fields(message.DESCRIPTOR, data)


def _count_fields(of: Any, data: bytes) -> Slices[None]:
    nested = {field.number: field.message_type for field in of.fields if field.message_type}
    most = MOST_FIELDS + (MOST_TEXTS if _has_lists(of) else 0)
    at = count = 0
    while at < len(data):
        count += 1
        if count > most:
            raise PeerError(f"a {of.name} with more than {most} fields")
        if count % _COUNTED_AT_ONCE == 0:
            yield
        number, begin, at = _field_at(data, at)
        if at - begin > LARGE and number in nested:
            yield from _count_fields(nested[number], data[begin:at])


def _field_at(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of the field at offset `at`, and where its value begins and ends. Behind a
    field that cannot be read, the data ends: protobuf stops there too."""
    tag = varint_at(data, at, _LONGEST_NUMBER)
    if tag is None:
        return 0, len(data), len(data)
    wire, begin = tag[0] & 7, tag[1]
    size = _FIXED.get(wire)
    if wire in (_VARINT, _BYTES):
        number = varint_at(data, begin, _LONGEST_NUMBER)
        if number is None:
            return 0, len(data), len(data)
        size, begin = (0 if wire == _VARINT else number[0]), number[1]
    end = len(data) if size is None else begin + size
    return tag[0] >> 3, begin, end


@cache
def _has_lists(of: Descriptor) -> bool:
    """Return whether a message, or one in it, has a list of texts."""
    texts, messages = _text_fields(of)
    inner = (of.fields_by_name[name].message_type for name, _ in messages)
    return any(is_many for _, is_many in texts) or any(map(_has_lists, inner))


def parsed(message: M, data: bytes) -> M:
    """Fill `message`, which must be empty, with the fields that `data` encodes, and return it.
    Raises `PeerError` if the data is malformed, lacks a required field, or has a text that is not
    UTF-8, because each peer would read such a text differently."""
    try:
        message.ParseFromString(data)
    except UnicodeDecodeError as error:  # by protobuf in Python, where it has no wheel
        raise PeerError(f"a {message.DESCRIPTOR.name} with a text that is not UTF-8") from error
    except DecodeError as error:
        raise PeerError(f"a {message.DESCRIPTOR.name} that cannot be read") from error
    if not message.IsInitialized():
        raise PeerError(f"a {message.DESCRIPTOR.name} that lacks a required field")
    if not _has_texts(message):
        raise PeerError(f"a {message.DESCRIPTOR.name} with a text that is not UTF-8")
    return message


def _has_texts(message: Message) -> bool:
    """Return whether all texts of a message are UTF-8; for others protobuf returns bytes. Raises
    `PeerError` if there are too many."""
    texts, messages = _text_fields(message.DESCRIPTOR)
    for name, is_many in texts:
        value = getattr(message, name)
        if not is_many:
            if not isinstance(value, str):
                return False
            continue
        if len(value) > MOST_TEXTS:
            raise PeerError(f"a {message.DESCRIPTOR.name} with {len(value)} texts in one field")
        if not all(isinstance(text, str) for text in value):
            return False
    for name, is_many in messages:
        if is_many:
            if not all(map(_has_texts, getattr(message, name))):
                return False
        elif message.HasField(name) and not _has_texts(getattr(message, name)):
            return False
    return True


@cache
def _text_fields(of: Descriptor) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return the names of a message's text fields, and of its fields whose messages may have texts,
    each with whether it is repeated."""
    texts, messages = [], []
    for field in of.fields:
        if field.type == field.TYPE_STRING:
            texts.append((field.name, field.is_repeated))
        elif field.message_type is not None and any(_text_fields(field.message_type)):
            messages.append((field.name, field.is_repeated))
    return texts, messages


MOST_TEXTS = 20_000
"""The most texts of one field, such as the partitions of a group: reading so many takes 20 ms."""

MOST_FIELDS = 100
"""The most fields of a large message but for texts in lists."""

LARGE = 32 * 1024
"""Bytes of a message whose fields are counted before it is parsed, and which is parsed and encoded
in slices of their own. Fewer bytes have so few fields that all this takes a millisecond."""

_COUNTED_AT_ONCE = 500

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 3: 0, 4: 0, 5: 4}
"""Wire types, and the bytes of those whose size is fixed. A group (3) has its fields behind it."""

_LONGEST_NUMBER = 10
"""The most bytes of a varint that protobuf reads."""

_LONGEST = 5
"""The most bytes of a varint of 32 bits."""


def varint_at(data: bytes, at: int, longest: int = _LONGEST) -> tuple[int, int] | None:
    """Return the varint at offset `at`, and the offset behind it; None if it is truncated or has
    more than `longest` bytes."""
    value = 0
    for number, byte in enumerate(data[at : at + longest]):
        value |= (byte & 127) << 7 * number
        if byte < 128:
            return value, at + number + 1
    return None


def varint(number: int) -> bytes:
    """Return a number as a varint."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)
