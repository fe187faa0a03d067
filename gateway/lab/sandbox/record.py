"""The entry that a SEND carries after its command: read once, kept unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from crc32c import crc32c
from google.protobuf.message import DecodeError

from gateway.errors import PeerError
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar.frames import CHECKSUM_MAGIC
from gateway.wire.pulsar.metadata import as_count

OVERHEAD = 512
"""Bytes of memory per entry beside its content: the objects that hold it, here and in cursors."""

_CHECKSUM = Struct(">HI")
_SIZE = Struct(">I")


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a topic. `content`: checksum, metadata and payload, unchanged.

    `messages`: number of messages in the entry, at least 1. `published`: time of the producer's
    clock, in milliseconds since 1970. `key`: the key by which Key_Shared subscriptions choose the
    consumer.
    """

    content: bytes
    messages: int
    batched: bool
    published: int
    key: bytes

    @property
    def cost(self) -> int:
        """Return how many bytes of memory the entry takes."""
        return len(self.content) + OVERHEAD


def read_record(content: bytes) -> Record | None:
    """Return the entry that a SEND contains; None if its checksum is wrong. Raises `PeerError` if
    the entry cannot be read."""
    start = 0
    if len(content) >= _CHECKSUM.size:
        magic, checksum = _CHECKSUM.unpack_from(content)
        if magic == CHECKSUM_MAGIC:
            start = _CHECKSUM.size
            if crc32c(memoryview(content)[start:]) != checksum:
                return None
    return _record(content, _metadata(content, start))


def _metadata(content: bytes, start: int) -> MessageMetadata:
    begin = start + _SIZE.size
    size = _SIZE.unpack_from(content, start)[0] if len(content) >= begin else len(content)
    if begin + size > len(content):
        raise PeerError("the metadata of a SEND is truncated")
    try:
        return MessageMetadata.FromString(content[begin : begin + size])
    except (DecodeError, UnicodeDecodeError):
        raise PeerError("the metadata of a SEND cannot be decoded") from None


def _record(content: bytes, about: MessageMetadata) -> Record:
    batched = about.HasField("num_messages_in_batch")
    messages = as_count(about.num_messages_in_batch) if batched else 1
    return Record(content, messages, batched, about.publish_time, _key(about))


def _key(about: MessageMetadata) -> bytes:
    """Return the key; without one, like brokers, one per message, so that messages spread."""
    if about.ordering_key:
        return about.ordering_key
    key = about.partition_key or f"{about.producer_name}-{about.sequence_id}"
    return str(key).encode()  # protobuf returns bytes if a string is not UTF-8
