"""Checks the message counts of SENDs against the batches behind them.

Theory of operation
===================
A SEND says how many messages it holds (`num_messages`), and limits are charged by that. It is
whatever the client says: 1 for a batch of a thousand evades a limit, and 2³¹-1 puts a limit that
others share into debt. The batch's metadata says it again (`num_messages_in_batch`), and there a
lie does not pay: consumers read so many messages and no more. Compression and encryption leave the
metadata readable. So the two are compared where a rule limits messages.

Broker entry metadata in front hides the metadata: brokers skip it, of any size. Only brokers write
it, in entries and MESSAGEs, and strip it where they send an entry on to another cluster. So a SEND
that has it is a lie too.

The metadata is decoded by protobuf, which refuses what lenient decoders would read in another way
(the Java client's lets a nested field run out of its message). A client whose metadata protobuf
refuses is at fault too.

To compare them for each frame would cost as much as all the rest of a SEND. So the first frames of
a connection are all compared, then one at an unpredictable distance after another, and a count
beyond any usual batch always. Whoever was found to lie once is a *suspect*: all frames of its later
connections are compared. A liar thus gets away with some frames, once.

Frames that wait for allowance are compared by the same rule: one by one as they come while all are
to be compared, and else by samples, when they are released.
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
from gateway.wire.pulsar.fields import MOST_FIELDS, check_metadata
from gateway.wire.pulsar.metadata import entry_metadata_size

FIRST = 64
"""Frames of limited producers that are all compared when a connection begins. Who lies from the
start gets nothing through."""

DISTANCE = 512 * 1024
"""Bytes from one compared frame to the next, on average. To leave the scan's fast way for one frame
takes 2 to 5 µs. Relaying so many bytes takes 200 µs, so it costs at most 3 %."""

SUSPICIOUS = 5_000
"""Messages from which on a batch is always compared. Clients' defaults allow 1,000."""

MOST = 1_000_000
"""Messages of a batch. Six bytes is the least that one takes there (its size, and the length of its
payload in its own metadata), and brokers allow 5 MiB by default."""

MOST_METADATA = 1024 * 1024
"""Bytes of a SEND's metadata. Most has 50, and properties are meant to be few and short."""

SUSPECTS = 10_000
"""Suspects that are remembered, the latest: about a megabyte."""


class Suspects:
    """Who was found to lie about counts, at one listener, by principal or else by address."""

    __slots__ = ("_names", "draw")

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()
        self.draw = draw

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Remember a liar, and forget the oldest one if there are too many."""
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > SUSPECTS:
            self._names.popitem(last=False)


class CountChecks:
    """When to compare counts on one connection, and what follows from a difference."""

    __slots__ = ("_left", "_most_fields", "_name", "_suspects")

    def __init__(self, suspects: Suspects, name: str, most_fields: int = MOST_FIELDS) -> None:
        self._suspects = suspects
        self._name = name
        self._left = FIRST
        self._most_fields = most_fields

    @property
    def compares_all(self) -> bool:
        """Whether every frame is to be compared: the first ones, and those of a suspect."""
        return self._left > 0 or self._name in self._suspects

    def distance(self) -> int:
        """Return after how many bytes of limited producers the next frame is to be compared."""
        if self.compares_all:
            self._left = max(0, self._left - 1)
            return 0
        return int(self._suspects.draw() * 2 * DISTANCE)

    def check_beginning(self, chunk: bytes | bytearray, at: int, end: int) -> None:
        """Raises `ViolationError` where a SEND has broker entry metadata behind its command, which
        ends at `at`. `end`: of the frame, or of what has come."""
        if entry_metadata_size(chunk, at, end):
            self._lied("a SEND with broker entry metadata, which only brokers write")

    def compare(self, account: Account, said: int, metadata: bytes | memoryview) -> None:
        """Compare a SEND's count with that of its batch.

        Raises `ViolationError` if they differ, or if no batch can hold so many. What a client did
        not say is charged all the same. Raises `PeerError` where the metadata is too large.
        """
        if len(metadata) > MOST_METADATA:
            raise PeerError(f"a SEND with {len(metadata)} bytes of metadata")
        whole = bytes(metadata)
        check_metadata(whole, self._most_fields)
        try:
            found = max(1, MessageMetadata.FromString(whole).num_messages_in_batch)
        except DecodeError:
            self._lied("a SEND whose metadata cannot be decoded")
        if said != found:
            account.messages += max(0, found - said)
            self._lied(f"a SEND that says {said} messages holds {found}")
        if said > MOST:
            self._lied(f"a SEND of {said} messages")

    def _lied(self, text: str) -> NoReturn:
        self._suspects.add(self._name)
        raise ViolationError(EndReason.MISCOUNTED, text)
