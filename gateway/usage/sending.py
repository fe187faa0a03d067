"""Sends the files of an outbox to their topics, one after the other, through a `Sender`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from gateway.usage.reading import Ledger, lines_of
from gateway.usage.records import STREAMS, Identity
from gateway.usage.shipment import Away, Sent, Unreadable, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from gateway.usage.outbox import Outbox, Parcel
    from gateway.usage.shipment import Report


class UnavailableError(Exception):
    """A topic cannot be written or read now. The text of the error gives the reason."""


class Row(NamedTuple):
    """A record to send. `seq`: its number in the stream. `key`: records with the same key are kept
    in order. `time_ms`: the record's time, in milliseconds since 1970. `line`: the record as a line
    of its file."""

    seq: int
    key: str
    time_ms: int
    line: bytes


class Sender(Protocol):
    """A connection that sends records to topics. Methods raise `UnavailableError`."""

    def send(self, topic: str, kind: type[Identity], producer: str, rows: Iterable[Row]) -> None:
        """Send records to a topic, and return when brokers have confirmed all of them. `kind`: the
        class of the records. `producer`: a producer name that no other process uses; the `seq` of
        the rows that are sent under this name must increase."""

    def close(self) -> None:
        """Close the connection without waiting for brokers to respond."""


class Sending:
    """Sends files, and marks each file that was sent. `topics`: topic names by stream. `connect`:
    returns a new connection, or raises `UnavailableError`. `report`: sends a report to the gateway.
    """

    def __init__(
        self,
        outbox: Outbox,
        topics: Mapping[str, str],
        connect: Callable[[], Sender],
        report: Callable[[Report], None],
    ) -> None:
        self._outbox = outbox
        self._topics = topics
        self._connect = connect
        self._report = report
        self._sender: Sender | None = None
        self._reported: Waiting | None = None

    def send_all(self, now: float) -> bool:
        """Send all files of the outbox. Return False if a file could not be sent. `now`: seconds
        since 1970."""
        try:
            parcels = self._outbox.waiting(now)
            streams = [parcel.stream for parcel in parcels]
            left = {stream: streams.count(stream) for stream in self._topics}
            self._tell(left)
            for parcel in parcels:
                self._send(parcel)
                left[parcel.stream] -= 1
                self._tell(left)
        except (UnavailableError, OSError) as error:
            self.close()
            reason = error.strerror if isinstance(error, OSError) else None
            self._report(Away(reason or str(error)))
            return False
        return True

    def close(self) -> None:
        """Close the connection, if there is one."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def _send(self, parcel: Parcel) -> None:
        if self._sender is None:
            self._sender = self._connect()
        ledger = Ledger()
        rows = _Rows(parcel.path, ledger)
        producer = f"{parcel.name.gw}-{parcel.name.boot}"
        topic, kind = self._topics[parcel.stream], STREAMS[parcel.stream]
        self._sender.send(topic, kind, producer, rows)
        self._outbox.mark(parcel)
        if ledger.unreadable:
            self._report(Unreadable(str(parcel.path)))
        self._report(Sent(parcel.stream, rows.number))

    def _tell(self, left: Mapping[str, int]) -> None:
        waiting = Waiting(dict(left))
        if waiting != self._reported:
            self._report(waiting)
            self._reported = waiting


class _Head(msgspec.Struct):
    """The fields of a record that become properties of its message."""

    seq: int
    gw: str
    tenant: str | None = None
    start_ms: int = 0
    time_ms: int = 0


_DECODE = msgspec.json.Decoder(_Head).decode


class _Rows:
    """The records of a file. `number`: how many were read."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self._path = path
        self._ledger = ledger
        self.number = 0

    def __iter__(self) -> Iterator[Row]:
        for line in lines_of(self._path, self._ledger):
            try:
                head = _DECODE(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._ledger.unreadable += 1
                continue
            self.number += 1
            # Each record has a key: where those without one went would be left to chance.
            key = head.tenant or head.gw
            yield Row(head.seq, key, head.start_ms or head.time_ms, line.rstrip(b"\n"))
