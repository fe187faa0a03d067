"""Writes usage records and events: encodes them as lines, and has the lines written to files.

`Recording` runs one task for all records. The task reads the accounts each second, and makes usage
records at the end of each interval. It encodes the records in slices; a thread compresses and
writes them (`writing`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
import trio

from gateway.telemetry.figures import StreamFigures
from gateway.usage import records
from gateway.usage.files import Closing, Stream
from gateway.usage.interval import Key
from gateway.usage.latency import Latencies
from gateway.usage.meter import Meter, Naming
from gateway.usage.records import VERSION, Event, EventKind, Usage
from gateway.usage.writing import Work, Worker
from gateway.wire.contract import EndReason

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.telemetry.latency import ListenerLatencies
    from gateway.telemetry.witness import Ended
    from gateway.usage.interval import Interval
    from gateway.wire.subject import Caller, Subject

RECORDS_AT_ONCE = 200
"""Records that are encoded between two steps of other tasks: 1 ms."""

TENANTS_AT_ONCE = 50
"""Tenants whose latencies are read and encoded between two steps of other tasks: 1 ms."""

SECOND = 1.0

MOST_EVENTS = 10_000
"""Events that are written in one interval; further ones are counted in one record. An attacker
causes thousands of failures a second, each of 300 bytes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of recording. `gw`: the name of this process, which no process of any other gateway
    has. `interval`: the seconds that a usage record covers. `closing`: when files are closed.
    `events`: events are recorded too. `waiting`: the most bytes of records that wait for the disk.
    `sent`: the kinds of records that are sent to topics too."""

    folder: Path
    gw: str
    interval: float = 10.0
    closing: Closing = field(default_factory=Closing)
    events: bool = True
    waiting: int = 64 << 20
    sent: frozenset[str] = frozenset()


def new_boot() -> str:
    """Return a random name for this run of a process, in 16 hexadecimal digits."""
    return secrets.token_hex(8)


def pseudonyms(key: bytes) -> Callable[[str], str]:
    """Return a function that replaces a principal by a keyed hash (BLAKE2b). Processes with the
    same key make the same hashes, and without the key nobody can find the principal of a hash."""

    def replace(principal: str) -> str:
        digest = blake2b(principal.encode(errors="replace"), key=key[:64], digest_size=12)
        return f"p-{digest.hexdigest()}"

    return replace


class Lines:
    """Numbers and encodes the records of one stream, and has them written to its files."""

    def __init__(self, stream: Stream, worker: Worker, figures: StreamFigures) -> None:
        self._stream = stream
        self._worker = worker
        self._figures = figures
        self._encode = msgspec.json.Encoder().encode
        self._next = self._first = 1
        # One buffer, which grows: to join 10,000 lines at once takes 6 ms.
        self._lines = bytearray()

    def begin(self) -> None:
        """Have the worker's thread prepare the stream's files; see `files.Stream.begin`."""
        self._worker.put(Work(self._stream.begin))

    def add(self, make: Callable[[int], Usage | Event]) -> None:
        """Add a record. `make`: a function that is given the record's number in the stream, and
        returns the record."""
        record = make(self._next)
        try:
            line = self._encode(record)
        except UnicodeEncodeError:
            # Names may have half of a surrogate pair, which UTF-8 cannot encode.
            line = self._encode(_repaired(record))
        self._next += 1
        self._lines += line
        self._lines += b"\n"

    def flush(self, now: float) -> None:
        """Have the worker's thread write all added records, and close the open file if it is old or
        large. `now`: seconds since 1970."""
        lines, self._lines = self._lines, bytearray()
        first, self._first = self._first, self._next
        if not lines:
            self._worker.put(Work(partial(self._stream.close_old, now)))
            return
        append = partial(self._stream.append, lines, first, self._next - 1, now)
        dropped = partial(self._drop, self._next - first)
        if not self._worker.put(Work(append, len(lines), dropped)):
            dropped()

    def finish(self, now: float) -> None:
        """Have the worker's thread write all added records, and close the open file. `now`: seconds
        since 1970."""
        self.flush(now)
        self._worker.put(Work(partial(self._stream.close, now)))

    def _drop(self, number: int) -> None:
        self._figures.dropped += number


def _repaired(record: Usage | Event) -> Usage | Event:
    values = {
        name: value.encode(errors="replace").decode()
        for name in record.__struct_fields__
        if isinstance(value := getattr(record, name), str)
    }
    return msgspec.structs.replace(record, **values)


class Events:
    """Writes a record of each event; it is a `telemetry.witness.Witness`. `most`: the most events
    of one interval that have records of their own. Further events are only counted, in one record.
    """

    def __init__(
        self,
        lines: Lines,
        gw: str,
        boot: str,
        naming: Naming,
        wall_clock: Callable[[], float],
        most: int = MOST_EVENTS,
    ) -> None:
        self._lines = lines
        self._gw = gw
        self._boot = boot
        self._naming = naming
        self._wall_clock = wall_clock
        self._most = most
        self._written = self._suppressed = 0  # in this interval

    def opened(self, connection: int, caller: Caller) -> None:
        """Write a record of an opened connection."""
        self._write("connected", connection=connection, **self._client(caller))

    def ended(self, end: Ended) -> None:
        """Write a record of a connection that ended, or whose client was not authenticated."""
        failed = end.reason is EndReason.AUTHENTICATION_FAILED
        self._write(
            "unauthenticated" if failed else "ended",
            connection=end.connection,
            reason=end.reason.value,
            open_ms=round(end.seconds * 1000),
            **({} if end.caller is None else self._client(end.caller)) | {"listener": end.listener},
        )

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Write a record of a denied right."""
        topic = subject.topic
        named = {}
        if topic is not None:
            named = {"tenant": topic.tenant, "namespace": topic.namespace, "topic": topic.name}
        self._write(
            "denied",
            connection=subject.connection,
            right=right,
            rule=rule,
            shadow=shadow,
            **named,
            **self._client(subject.caller),
        )

    def end_interval(self) -> None:
        """End an interval. If it had more than `most` events, write one record with the number of
        events that have no record of their own."""
        suppressed, self._written, self._suppressed = self._suppressed, 0, 0
        if suppressed:
            self._write("suppressed", number=suppressed)

    def _client(self, caller: Caller) -> dict[str, str | None]:
        return {
            "listener": caller.listener,
            "proto": caller.protocol,
            "principal": self._naming.principal(caller),
            "auth_method": caller.method,
            "client_net": self._naming.client(caller),
            "client_lib": caller.library,
            "client_id": caller.client_id,
        }

    def _write(self, event: EventKind, **values: object) -> None:
        if self._written >= self._most:
            self._suppressed += 1
            return
        self._written += 1
        time_ms = round(self._wall_clock() * 1000)
        always = {"v": VERSION, "gw": self._gw, "boot": self._boot}
        self._lines.add(
            lambda seq: Event(**always, seq=seq, time_ms=time_ms, event=event, **values)  # type: ignore[arg-type]
        )


class Recording:
    """Writes the records of a process; it is a `telemetry.witness.Witness`. `meter`: must be told
    of accounts that open and close. `boot`: the name of this run; None: a new name. `clock`:
    returns monotonic seconds. `wall_clock`: returns seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        naming: Naming,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        boot: str | None = None,
    ) -> None:
        self.meter = Meter(naming)
        self._latencies = Latencies({})
        self.figures = {"usage": StreamFigures()}
        self._settings = settings
        self._clock = clock
        self._wall_clock = wall_clock
        self._boot = new_boot() if boot is None else boot
        self._worker = Worker(settings.waiting)
        self._usage = self._lines("usage")
        self._events: Events | None = None
        self._event_lines: Lines | None = None
        if settings.events:
            self.figures["events"] = StreamFigures()
            self._event_lines = self._lines("events")
            named = settings.gw, self._boot, naming, wall_clock
            self._events = Events(self._event_lines, *named)
        self._open: dict[int, Key] = {}
        self._began, self._began_at = clock(), wall_clock()

    def time(self, histograms: Mapping[str, ListenerLatencies]) -> None:
        """Write records of latencies too, from now on. `histograms`: the latencies, by listener
        name."""
        self._latencies = Latencies(histograms)

    def _lines(self, stream: str) -> Lines:
        settings, figures = self._settings, self.figures[stream]
        files = Stream(
            settings.folder / stream,
            settings.gw,
            self._boot,
            settings.closing,
            figures,
            is_sent=stream in settings.sent,
        )
        return Lines(files, self._worker, figures)

    # -- a witness ---------------------------------------------------------------------------

    def opened(self, connection: int, caller: Caller) -> None:
        """Count an open connection. Also write a record of the event, if events are recorded."""
        self._open[connection] = self.meter.connected(caller, self._clock())
        if self._events is not None:
            self._events.opened(connection, caller)

    def ended(self, end: Ended) -> None:
        """Count the end of a connection. Also write a record of the event, if events are
        recorded."""
        key = self._open.pop(end.connection, None)
        if key is not None:
            self.meter.disconnected(key, self._clock())
        if self._events is not None:
            self._events.ended(end)

    def denied(self, subject: Subject, right: str, rule: str | None, *, shadow: bool) -> None:
        """Write a record of a denied right, if events are recorded."""
        if self._events is not None:
            self._events.denied(subject, right, rule, shadow=shadow)

    # -- the task ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Write records until cancelled. Call `finish` afterwards."""
        self._usage.begin()
        if self._event_lines is not None:
            self._event_lines.begin()
        ends_at = self._next_end()
        while True:
            await trio.sleep(min(SECOND, max(0.0, ends_at - self._clock())))
            for _ in self.meter.look():
                await trio.lowlevel.checkpoint()
            if self._clock() >= ends_at:
                for _ in self._end_interval():
                    await trio.lowlevel.checkpoint()
                ends_at = self._next_end()

    def finish(self) -> None:
        """Write the records of the last interval, and close the files. This takes milliseconds, or
        with a slow disk up to `writing.PATIENCE` seconds."""
        for _ in self.meter.look():
            pass
        for _ in self._end_interval():
            pass
        now = self._wall_clock()
        self._usage.finish(now)
        if self._event_lines is not None:
            self._event_lines.finish(now)
        self._worker.close()

    def _next_end(self) -> float:
        """Return when this interval ends: intervals of all gateways end at the same time."""
        interval = self._settings.interval
        return self._clock() + interval - self._wall_clock() % interval

    def _end_interval(self) -> Iterator[None]:
        """Write the records of an interval, in slices."""
        now, wall = self._clock(), self._wall_clock()
        start_ms, dur_ms = round(self._began_at * 1000), round((now - self._began) * 1000)
        interval = self.meter.take(now)
        self._began, self._began_at = now, wall
        yield from self._encode(interval, start_ms, dur_ms)
        self._usage.flush(wall)
        if self._events is not None and self._event_lines is not None:
            self._events.end_interval()
            self._event_lines.flush(wall)

    def _encode(self, interval: Interval, start_ms: int, dur_ms: int) -> Iterator[None]:
        span = records.Span(self._settings.gw, self._boot, start_ms, dur_ms)
        for number, (key, sums) in enumerate(interval.drain(), 1):
            self._usage.add(partial(records.usage_of, key, sums, span))
            if number % RECORDS_AT_ONCE == 0:
                yield
        for number, some in enumerate(self._latencies.take(), 1):
            for counted in some:
                self._usage.add(partial(records.latency_of, counted, span))
            if number % TENANTS_AT_ONCE == 0:
                yield
