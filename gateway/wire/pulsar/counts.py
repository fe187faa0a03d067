"""Compares the message counts that SENDs state with the batches behind them.

Theory of operation
===================
A SEND states how many messages it holds (`num_messages`), and limits are charged by that number.
The client may state any number: 1 for a batch of a thousand evades a limit, and 2³¹-1 puts a limit
that others share into debt. The batch's metadata states the number again
(`num_messages_in_batch`). There a wrong number is of no use, because consumers read exactly so many
messages. Compression and encryption leave the metadata readable. So both numbers are compared if a
rule limits messages.

Broker entry metadata in front would hide the metadata, because brokers skip it, of any size. Only
brokers write it, in entries and MESSAGEs, and strip it from an entry that they send to another
cluster. So a SEND with broker entry metadata is a violation too.

Protobuf decodes the metadata, and refuses encodings that lenient decoders would read differently
(the Java client's decoder lets a nested field reach beyond its message). Metadata that protobuf
refuses is a violation by the client too.

A comparison for each frame would cost as much as all other work for a SEND. So all of the first
frames of a connection are compared, then frames at unpredictable distances, and always a count
beyond any usual batch. A client found to state a wrong count becomes a *suspect*: all frames of its
later connections are compared. So a dishonest client gets away with some frames, once.

The same holds for frames that wait for allowance: while all frames are to be compared, each is
compared when it comes; otherwise samples are, when they are released.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import NoReturn

from google.protobuf.message import DecodeError

from gateway.errors import PeerError
from gateway.wire.account import Account
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar.field_counts import MOST_FIELDS, check_metadata
from gateway.wire.pulsar.metadata import entry_metadata_size

FIRST = 64
"""Frames of limited producers at the begin of a connection that are all compared. A client that
states wrong counts from the start gets nothing through."""

DISTANCE = 512 * 1024
"""Bytes from one compared frame to the next, on average. Leaving the scan's fast path for one frame
takes 2 to 5 µs; relaying so many bytes takes 200 µs. So comparing costs at most 3 %."""

SUSPICIOUS = 5_000
"""Messages above which a batch is always compared. Clients' defaults allow 1,000."""

MOST = 1_000_000
"""Messages of the largest batch. A message takes at least six bytes there (its size, and the length
of its payload in its own metadata), and brokers allow 5 MiB by default."""

MOST_METADATA = 1024 * 1024
"""Bytes of a SEND's metadata. Most has 50 bytes, and properties are meant to be few and short."""

SUSPECTS = 10_000
"""Number of suspects to remember, the latest ones: about a megabyte."""


class Suspects:
    """The clients of one listener that stated wrong counts, by principal or else by address."""

    __slots__ = ("_names", "draw")

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()
        self.draw = draw

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Remember a client as a suspect. If there are too many suspects, forget the oldest."""
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > SUSPECTS:
            self._names.popitem(last=False)


class CountChecks:
    """Compares the message counts that SENDs state with the real ones, on one connection, and draws
    which frames are compared."""

    __slots__ = ("_left", "_most_fields", "_name", "_suspects")

    def __init__(self, suspects: Suspects, name: str, most_fields: int = MOST_FIELDS) -> None:
        self._suspects = suspects
        self._name = name
        self._left = FIRST
        self._most_fields = most_fields

    @property
    def compares_all(self) -> bool:
        """Return whether every frame is compared now, because the connection is new or its client
        is a suspect."""
        return self._left > 0 or self._name in self._suspects

    def distance(self) -> int:
        """Return how many bytes of producers with a limit are forwarded before the next frame is
        compared."""
        if self.compares_all:
            self._left = max(0, self._left - 1)
            return 0
        return int(self._suspects.draw() * 2 * DISTANCE)

    def check_beginning(self, chunk: bytes | bytearray, at: int, end: int) -> None:
        """Raise `ViolationError` if a SEND has broker entry metadata behind its command. `at`:
        offset at which the command ends. `end`: end of the frame, or of the bytes that have come so
        far."""
        if entry_metadata_size(chunk, at, end):
            self._refuse("a SEND with broker entry metadata, which only brokers write")

    def compare(self, account: Account, stated: int, metadata: bytes | memoryview) -> None:
        """Compare the message count that a SEND states with the count in its metadata.

        Raises `ViolationError` if the counts differ, or if no batch can hold so many messages;
        messages that the client did not state are charged all the same. Raises `PeerError` if the
        metadata is too large.
        """
        if len(metadata) > MOST_METADATA:
            raise PeerError(f"a SEND with {len(metadata)} bytes of metadata")
        whole = bytes(metadata)
        check_metadata(whole, self._most_fields)
        try:
            actual = max(1, MessageMetadata.FromString(whole).num_messages_in_batch)
        except (DecodeError, UnicodeDecodeError):
            self._refuse("a SEND whose metadata cannot be decoded")
        if stated != actual:
            account.messages += max(0, actual - stated)
            self._refuse(f"a SEND that says {stated} messages holds {actual}")
        if stated > MOST:
            self._refuse(f"a SEND of {stated} messages")

    def _refuse(self, text: str) -> NoReturn:
        self._suspects.add(self._name)
        raise ViolationError(EndReason.MISCOUNTED, text)
