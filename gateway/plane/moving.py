# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Moves the usual bytes of a pair: receives, scans and sends them in one call.

This is the part of a pump that runs for each chunk. `pump` has all other cases, and the rest of a
chunk from its first unusual frame on. Streams with TLS are called by their methods.

Large frames go from socket to socket by way of a pipe, without a copy. All pairs share one pipe,
which is empty between two calls.
"""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Callable
from errno import EAGAIN, EINTR
from typing import TYPE_CHECKING, Any

from gateway._pure import COMPILED
from gateway.plane import calls
from gateway.wire.scanner import BaseScanner

if TYPE_CHECKING:
    from gateway.plane.fairness import Served
    from gateway.wire.contract import Scanner

SMALLEST_READ = 16 * 1024
"""Smallest read of a blocked pump, in bytes: below it, system calls would cost more than memory."""

SPARING_READ = 4 * 1024
"""Bytes of one read while the plane's memory is more than half full. With the default bound, the
other half is enough for 20,000 pumps whose peers do not read, while the other pumps go on."""

_SPARING_READ = SPARING_READ

_AT_ONCE = 1 << 30 if COMPILED else SMALLEST_READ
"""Bytes from which on a chunk is scanned in several calls. Compiled scanners scan any chunk in one
call: they are quick."""

_BULK = 48 * 1024
"""Bytes owed from which a pipe is cheaper than copies. A frame of 16 KB would take two calls of its
own in place of a thirtieth part of two."""

_HEAD = 2048
"""Bytes that are looked at between large frames: the head and the metadata of nearly all."""

_PIPE = 1024 * 1024
"""Bytes of the pipe: the most that Linux gives an ordinary user."""

_EAGAIN = EAGAIN
_EINTR = EINTR
_NOTHING = -1


class Room:
    """The base of `memory.Memory`: what each read looks at, and the pipe."""

    __slots__ = ("ample", "bound", "buffer", "inlet", "outlet", "size", "splices", "used")

    ample: int
    bound: int
    buffer: bytearray
    inlet: int
    outlet: int
    size: int
    splices: bool
    used: int

    def __cinit__(self) -> None:
        """Mark the pipe as not made. Compiled code calls this first: `__del__` closes the pipe even
        if `__init__` failed."""
        self.inlet = self.outlet = -1

    def __init__(self) -> None:
        self.inlet = self.outlet = -1
        self.splices = bool(calls.SPLICES)

    def __del__(self) -> None:
        self.close_pipe()

    def has_pipe(self) -> bool:
        """Return whether there is a pipe, which is made here."""
        if self.inlet < 0 and self.splices:
            try:
                self.outlet, self.inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.fcntl(self.inlet, fcntl.F_SETPIPE_SZ, _PIPE)
            except OSError:  # no descriptors, or too many pipes of this user: copy
                self.close_pipe()
                self.splices = False
        return self.inlet >= 0

    def close_pipe(self) -> None:
        """Close the pipe. Bytes that are in the pipe are lost."""
        if self.inlet >= 0:
            os.close(self.inlet)
            os.close(self.outlet)
            self.inlet = self.outlet = -1


class Descriptor:
    """The base of `lane.Lane`. `plain`: the stream is a socket, which needs no methods. `pending`:
    bytes that wait to be sent; None: there are none. `served`: how much of the loop's time the
    connection has had."""

    __slots__ = ("fd", "pending", "plain", "reader", "served")

    fd: int
    pending: deque[memoryview] | None
    plain: bool
    reader: Any
    served: Served

    def receive_into(self, buffer: bytearray | memoryview, size: int, /) -> int:
        """See `Stream.recv_into`."""
        raise NotImplementedError

    def transmit(self, data: bytes | memoryview, /) -> int:
        """See `Stream.send`."""
        raise NotImplementedError


class Mover:
    """The base of `pump.Pump`. `heard`: when the source's peer last sent bytes. `note`: is called
    after each chunk while it returns True. `bulk`: large frames come, and go through the pipe.
    `at_once`: larger chunks are scanned in pieces. `reader`: the scanner, if compiled code can call
    it without the interpreter."""

    __slots__ = (
        "_at_border",
        "_carry",
        "_collection",
        "_memory",
        "_moved",
        "_pauses",
        "_read_size",
        "at_once",
        "bulk",
        "heard",
        "note",
        "pair",
        "reader",
        "scanner",
        "sink",
        "source",
    )

    _at_border: deque[Any] | None
    _carry: bytes
    _collection: Any
    _memory: Any
    _moved: Any
    _pauses: int
    _read_size: int
    at_once: int
    bulk: bool
    heard: float
    note: Callable[[float], bool] | None
    pair: Any
    reader: BaseScanner | None
    scanner: Scanner
    sink: Any
    source: Any

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.reader = scanner if isinstance(scanner, BaseScanner) else None
        self.bulk = False
        self.at_once = _AT_ONCE if self.reader is not None else SMALLEST_READ

    def readable(self, now: float) -> None:
        """Receive bytes from the source, scan them, and send what may be forwarded. `now`: the
        plane's time."""
        self.move(now)

    def receive(self, now: float) -> None:
        """Receive bytes while something is unusual; see `pump.Pump`."""
        raise NotImplementedError

    def scan_pieces(self, at: int, end: int, begin: int) -> int:
        """Scan a large chunk in pieces; see `pump.Pump`."""
        raise NotImplementedError

    def judged(self, cleared: int, end: int, count: int, now: float) -> None:
        """Go on where the scanner has halted; see `pump.Pump`."""
        raise NotImplementedError

    def keep_unsent(self, sent: int, cleared: int) -> None:
        """Keep `buffer[sent:cleared]`, which the sink did not take; see `pump.Pump`."""
        raise NotImplementedError

    def read_more(self) -> None:
        """Read more at once from now on; see `pump.Pump`."""
        raise NotImplementedError

    def move(self, now: float) -> None:
        """See `readable`, which is the same for callers that are not compiled."""
        room = self._memory
        if (
            self._pauses
            or self.sink.pending is not None
            or room.used > room.bound
            or self._collection is not None
            or self._at_border is not None
        ):
            self.bulk = False
            self.receive(now)
            return
        self.heard = now
        start = len(self._carry)
        if self.bulk and start == 0:
            self._pour(now, True)
            return
        count = self._receive(start)
        if count == _NOTHING:
            return
        self._moved.bytes += count
        end = start + count
        reader = self.reader
        if end >= self.at_once:
            at = self.scan_pieces(0, end, 0)
        elif reader is None:
            at = self.scanner.scan(room.buffer, 0, end)
        else:
            at = reader.scan(room.buffer, 0, end)
        if at < end:
            self.bulk = False
            self.judged(at, end, count, now)
            return
        self.bulk = (
            reader is not None
            and reader.skips >= _BULK
            and self.source.plain
            and self.sink.plain
            and room.has_pipe()
        )
        if start:
            room.used -= start
            self._carry = b""
        sent = self._transmit(end)
        if sent == _NOTHING:
            return
        if sent < end:
            self.keep_unsent(sent, end)
        elif self.bulk:
            self._pour(now, False)
            return
        elif count == self._read_size and count < room.size:
            self.read_more()
        self._tell(now)

    def _receive(self, start: int) -> int:
        """Receive bytes behind the carry, which has `start` bytes. Return how many; `_NOTHING` if
        none have come, or if the pair has ended."""
        room = self._memory
        source = self.source
        most = self._read_size if room.used <= room.ample else _SPARING_READ
        if start:
            if start + most > len(room.buffer):
                raise RuntimeError(f"a carry of {start} bytes, for which there is no room")
            room.view[:start] = self._carry
        if source.plain:
            count = calls.receive(source.fd, room.buffer, start, most)
            if count > 0:
                return count
            self._ended(count)
            return _NOTHING
        try:
            count = source.receive_into(room.view[start:] if start else room.buffer, most)
        except BlockingIOError:
            return _NOTHING
        except OSError as error:
            self.pair.lost(source, error)
            return _NOTHING
        if count == 0:
            self._ended(0)
            return _NOTHING
        return int(count)

    def _transmit(self, end: int) -> int:
        """Send `buffer[:end]`. Return how many bytes the sink has taken; `_NOTHING` if its peer is
        gone, and the pair has ended."""
        room = self._memory
        sink = self.sink
        if sink.plain:
            sent = calls.transmit(sink.fd, room.buffer, end)
            return sent if sent >= 0 else self._untaken(-sent)
        try:
            return int(sink.transmit(room.view[:end]))
        except BlockingIOError:
            return 0
        except OSError as error:
            self.pair.lost(sink, error)
            return _NOTHING

    def _untaken(self, failure: int) -> int:
        """Return 0 if the sink has no room; `_NOTHING` if its peer is gone. The pair ends then.
        `failure`: the number of the error."""
        if failure in (_EAGAIN, _EINTR):
            return 0
        self.pair.lost(self.sink, OSError(failure, os.strerror(failure)))
        return _NOTHING

    def _pour(  # noqa: C901 - flat: it runs for each large frame
        self,
        now: float,
        has_come: bool,  # noqa: FBT001
    ) -> None:
        """Move large frames by way of the pipe, for as long as they come.

        A head is only looked at in the socket: what the scanner clears of it is owed then, and goes
        through the pipe with the rest. What the pipe has gathered is sent at once, because each
        send wakes its peer. `has_come`: the kernel says that there are bytes. If the pipe takes
        none of them then, one is urgent (TCP), and the next bytes are received.
        """
        room = self._memory
        reader = self.reader
        source = self.source.fd
        if reader is None or not room.has_pipe():
            self.bulk = False
            self.move(now)
            return
        most = room.size if room.size < _PIPE else _PIPE
        gathered = 0
        count = 1
        violation = None
        while gathered < most:
            if reader.skips == 0:
                count = calls.peek(source, room.buffer, _HEAD)
                if count <= 0:
                    break
                try:
                    reader.look(room.buffer, count)
                except Exception as error:
                    violation = error  # what the pipe holds goes first: all pairs share the pipe
                    break
                if reader.skips < _BULK:
                    self.bulk = False
                    break
            wanted = most - gathered
            if wanted > reader.skips:
                wanted = reader.skips
            count = calls.splice(source, room.inlet, wanted)
            if count <= 0:
                break
            gathered += count
            reader.owed -= count
            reader.skips -= count
            if count < wanted:
                break  # no more has come
        if count < 0 and has_come and gathered == 0:
            self.bulk = False
        self._moved.bytes += gathered
        if not self._empty(gathered):
            return
        if violation is not None:
            raise violation
        self._tell(now)
        if count <= 0 and not self.pair.over:
            self._ended(count)

    def _empty(self, gathered: int) -> bool:
        """Send the `gathered` bytes of the pipe to the sink, and keep those that the sink does not
        take. Return False if the sink's peer is gone, which has ended the pair."""
        room = self._memory
        left = gathered
        failure = _EAGAIN
        while left > 0:
            count = calls.splice(room.outlet, self.sink.fd, left)
            if count <= 0:
                if count < 0:
                    failure = -count
                break
            left -= count
        if left == 0:
            return True
        at = 0
        while at < left:
            count = calls.take(room.outlet, room.buffer, at, left - at)
            if count <= 0:
                room.close_pipe()  # what is left in it is nobody else's
                raise OSError(-count, "a pipe that lost bytes")
            at += count
        if self._untaken(failure) == _NOTHING:
            return False
        self.keep_unsent(0, left)
        return True

    def _tell(self, now: float) -> None:
        """Tell those who want to know that bytes have moved."""
        if self.note is not None and not self.note(now):
            self.note = None
        pair = self.pair
        if pair.attends and not pair.over:
            pair.attend(now)

    def _ended(self, count: int) -> None:
        """Handle the end of the source's stream, or its failure; or nothing. `count`: what a system
        call has returned."""
        if count == 0:
            self.pair.closed_by(self.source)
        elif -count not in (_EAGAIN, _EINTR):
            self.pair.lost(self.source, OSError(-count, os.strerror(-count)))
