# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Move the usual bytes of a pair: receive, scan and send in one call.

The twin of `plane.pump.Pump.receive` for a source that nothing pauses, and a sink that has taken all
before. The pure version moves all else, and the rest of a chunk from its first unusual frame on.
Streams with TLS are called as the pure version calls them.

Large frames go from socket to socket by way of a pipe (splice), without a copy. All pairs share one
pipe, which is empty between two calls.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

import fcntl
import os
import time

from gateway.wire.scanner cimport BaseScanner

cdef extern from "sys/socket.h" nogil:
    ssize_t recv(int descriptor, void *buffer, size_t size, int flags)
    ssize_t send(int descriptor, const void *buffer, size_t size, int flags)
    int MSG_NOSIGNAL
    int MSG_PEEK

cdef extern from "fcntl.h" nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    """
    ssize_t splice(int source, void *, int sink, void *, size_t size, unsigned int flags)
    unsigned int SPLICE_F_MOVE
    unsigned int SPLICE_F_NONBLOCK

cdef extern from "unistd.h" nogil:
    ssize_t read(int descriptor, void *buffer, size_t size)
    int close(int descriptor)

cdef extern from "time.h" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec *into)
    int CLOCK_MONOTONIC

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_wait(int descriptor, epoll_event *events, int most, int timeout)
    int epoll_ctl(int descriptor, int operation, int of, epoll_event *event)
    int EPOLL_CTL_ADD
    unsigned int EPOLLIN
    unsigned int EPOLLET

cdef extern from "sys/timerfd.h" nogil:
    struct itimerspec:
        timespec it_interval
        timespec it_value
    int timerfd_create(int clock, int flags)
    int timerfd_settime(int timer, int flags, const itimerspec *at, itimerspec *before)
    int TFD_NONBLOCK
    int TFD_CLOEXEC
    int TFD_TIMER_ABSTIME

cdef enum:
    EVENTS_AT_ONCE = 256  # as in plane/reactor
    SPARING_READ = 4096  # as in plane/memory
    # Bytes owed from which a pipe is cheaper than copies. A frame of 16 KB would take two calls of
    # its own in place of a thirtieth part of two.
    BULK = 48 * 1024
    # Bytes that are looked at between large frames: the head and the metadata of nearly all.
    HEAD = 2048
    # Bytes of the pipe: the most that Linux gives an ordinary user.
    PIPE = 1024 * 1024


cdef class Room:
    """The base of `plane.memory.Memory`: what each read looks at."""

    cdef public int64_t used
    cdef public int64_t bound
    cdef public int64_t ample
    cdef public Py_ssize_t size
    cdef public bytearray buffer
    cdef int inlet
    cdef int outlet
    cdef bint splices

    def __cinit__(self):
        self.inlet = self.outlet = -1
        self.splices = True

    def __dealloc__(self):
        self._close()

    cdef bint has_pipe(self):
        """Return whether there is a pipe, which is made here."""
        if self.inlet < 0 and self.splices:
            try:
                self.outlet, self.inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.fcntl(self.inlet, fcntl.F_SETPIPE_SZ, PIPE)
            except OSError:  # no descriptors, or too many pipes of this user: copy
                self._close()
                self.splices = False
        return self.inlet >= 0

    cdef int _close(self) except -1:
        if self.inlet >= 0:
            os.close(self.inlet)
            os.close(self.outlet)
            self.inlet = self.outlet = -1
        return 0


cdef class Descriptor:
    """The base of `plane.lane.Lane`. `plain`: the stream is a socket, which needs no methods."""

    cdef public int fd
    cdef public bint plain
    cdef public object pending
    cdef public object reader


cdef class Mover:
    """The base of `plane.pump.Pump`."""

    cdef public Descriptor source
    cdef public Descriptor sink
    cdef public object scanner
    cdef public object pair
    cdef public object note
    cdef public double heard
    cdef public Room _memory
    cdef public object _moved
    cdef public object _collection
    cdef public object _at_border
    cdef public bytes _carry
    cdef public Py_ssize_t _read_size
    cdef public Py_ssize_t _pauses
    cdef BaseScanner reader
    cdef bint bulk

    def __init__(self, scanner):
        self.scanner = scanner
        if isinstance(scanner, BaseScanner):
            self.reader = scanner

    def readable(self, double now):
        """Move received bytes; see `plane.pump.Pump.receive`."""
        self.move(now)

    cdef int move(self, double now) except -1:
        cdef Room room = self._memory
        cdef Descriptor source = self.source, sink = self.sink
        cdef BaseScanner reader = self.reader
        cdef Py_ssize_t start, most, end, at
        cdef ssize_t count, sent = 0
        cdef int failure = 0
        cdef uint8_t *data
        if (
            self._pauses
            or reader is None
            or sink.pending is not None
            or room.used > room.bound
            or self._collection is not None
            or self._at_border is not None
        ):
            self.bulk = False
            self.receive(now)
            return 0
        if not source.plain or not sink.plain:
            return self.move_records(now)
        self.heard = now
        start = PyBytes_GET_SIZE(self._carry)
        most = self._read_size if room.used <= room.ample else SPARING_READ
        if self.bulk and start == 0:
            return self.pour(now, True)
        data = <uint8_t *>PyByteArray_AS_STRING(room.buffer)
        if start:
            self._put_carry(data, start, most)
        with nogil:
            count = recv(source.fd, data + start, most, 0)
            if count < 0:
                failure = errno
        if count <= 0:
            return self._nothing(count, failure)
        self._moved.bytes += count
        end = start + count
        at = reader.scan(room.buffer, 0, end)
        if at < end:
            self.bulk = False
            self.judged(at, end, count, now)
            return 0
        self.bulk = reader.skips >= BULK and room.has_pipe()
        with nogil:
            sent = send(sink.fd, data, end, MSG_NOSIGNAL)
            if sent < 0:
                failure = errno
        if start:
            room.used -= start
            self._carry = b""
        if sent < 0:
            sent = self._untaken(failure)
            if sent < 0:
                return 0
        if sent < end:
            self.keep_unsent(sent, end)
        elif self.bulk:
            return self.pour(now, False)
        elif count == self._read_size < room.size:
            self._read_more()
        return self.tell(now)

    cdef int _put_carry(self, uint8_t *data, Py_ssize_t start, Py_ssize_t most) except -1:
        """Put the carried bytes before those that are received next."""
        if start + most > len(self._memory.buffer):
            raise RuntimeError(f"a carry of {start} bytes, for which there is no room")
        memcpy(data, PyBytes_AS_STRING(self._carry), start)
        return 0

    cdef int move_records(self, double now) except -1:
        """Move bytes of a pair with TLS: scan them, and call the methods of its streams."""
        cdef Room room = self._memory
        cdef Descriptor source = self.source, sink = self.sink
        cdef uint8_t *data = <uint8_t *>PyByteArray_AS_STRING(room.buffer)
        cdef Py_ssize_t most, at
        cdef ssize_t count, sent
        cdef int failure
        if PyBytes_GET_SIZE(self._carry):
            self.receive(now)
            return 0
        self.heard = now
        most = self._read_size if room.used <= room.ample else SPARING_READ
        if source.plain:
            with nogil:
                count = recv(source.fd, data, most, 0)
                failure = errno
            if count <= 0:
                return self._nothing(count, failure)
        else:
            try:
                count = source.receive_into(room.buffer, most)
            except BlockingIOError:
                return 0
            except OSError as error:
                self.pair.lost(source, error)
                return 0
            if count == 0:
                return self._nothing(0, 0)
        self._moved.bytes += count
        at = self.reader.scan(room.buffer, 0, count)
        if at < count:
            self.judged(at, count, count, now)
            return 0
        if sink.plain:
            with nogil:
                sent = send(sink.fd, data, count, MSG_NOSIGNAL)
                failure = errno
            if sent < 0:
                sent = self._untaken(failure)
                if sent < 0:
                    return 0
        else:
            try:
                sent = sink.transmit(room.view[:count])
            except BlockingIOError:
                sent = 0
            except OSError as error:
                self.pair.lost(sink, error)
                return 0
        if sent < count:
            self.keep_unsent(sent, count)
        elif count == self._read_size < room.size:
            self._read_more()
        return self.tell(now)

    cdef ssize_t _untaken(self, int failure) except -2:
        """Return 0 if the sink has no room. If its peer is gone, end the pair and return -1."""
        if failure == EAGAIN or failure == EINTR:
            return 0
        self.pair.lost(self.sink, OSError(failure, os.strerror(failure)))
        return -1

    cdef int pour(self, double now, bint has_come) except -1:
        """Move large frames by way of the pipe, for as long as they come.

        A head is only looked at in the socket: what the scanner clears of it is owed then, and goes
        through the pipe with the rest. What the pipe has gathered is sent at once, because each
        send wakes its peer. `has_come`: the kernel says that there are bytes. If the pipe takes
        none of them then, one is urgent (TCP), and the next bytes are received.
        """
        cdef Room room = self._memory
        cdef BaseScanner reader = self.reader
        cdef int source = self.source.fd, sink = self.sink.fd, failure = 0, refused = 0
        cdef uint8_t *data = <uint8_t *>PyByteArray_AS_STRING(room.buffer)
        cdef Py_ssize_t most = min(room.size, <Py_ssize_t>PIPE), gathered = 0, wanted, left
        cdef ssize_t count = 1, given
        cdef unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK
        cdef object error = None
        if not room.has_pipe():
            self.bulk = False
            self.receive(now)
            return 0
        while gathered < most:
            if reader.skips == 0:
                with nogil:
                    count = recv(source, data, HEAD, MSG_PEEK)
                if count <= 0:
                    break
                try:
                    reader.look(room.buffer, count)
                except Exception as caught:
                    error = caught  # what the pipe holds goes first: all pairs share the pipe
                    break
                if reader.skips < BULK:
                    self.bulk = False
                    break
            wanted = min(reader.skips, most - gathered)
            with nogil:
                count = splice(source, NULL, room.inlet, NULL, wanted, flags)
            if count <= 0:
                break
            gathered += count
            reader.owed -= count
            reader.skips -= count
            if count < wanted:
                break  # no more has come
        if count < 0:
            failure = errno
            if has_come and gathered == 0:
                self.bulk = False
        left = gathered
        with nogil:
            while left > 0:
                given = splice(room.outlet, NULL, sink, NULL, left, flags)
                if given <= 0:
                    refused = errno if given < 0 else EAGAIN
                    break
                left -= given
        self._moved.bytes += gathered
        if left > 0:
            self._drain(left)
            if refused != EAGAIN and refused != EINTR:
                self.pair.lost(self.sink, OSError(refused, os.strerror(refused)))
                return 0
            self.keep_unsent(0, left)
        if error is not None:
            raise error
        self.tell(now)
        return 0 if count > 0 or self.pair.over else self._nothing(count, failure)

    cdef int _drain(self, Py_ssize_t left) except -1:
        """Take what the sink did not take out of the pipe, into the buffer."""
        cdef Py_ssize_t at = 0
        cdef ssize_t count
        cdef uint8_t *data = <uint8_t *>PyByteArray_AS_STRING(self._memory.buffer)
        while at < left:
            count = read(self._memory.outlet, data + at, left - at)
            if count <= 0:
                self._memory._close()  # what is left in it is nobody else's
                raise OSError(errno, os.strerror(errno))
            at += count
        return 0

    cdef int tell(self, double now) except -1:
        """Tell those who want to know that bytes have moved."""
        if self.note is not None and not self.note(now):
            self.note = None
        if self.pair.attends and not self.pair.over:
            self.pair.attend(now)
        return 0

    cdef int _nothing(self, ssize_t count, int failure) except -1:
        """Handle the end of the source's stream, or its failure; or nothing."""
        if count == 0:
            self.pair.closed_by(self.source)
        elif failure != EAGAIN and failure != EINTR:
            self.pair.lost(self.source, OSError(failure, os.strerror(failure)))
        return 0


cdef class Rounds:
    """The base of `plane.reactor.Reactor`, whose `serve` this is the twin of."""

    cdef public object clock
    cdef public object sampler
    cdef public dict _lanes
    cdef public double until
    cdef public double due
    cdef public double turn_seconds
    cdef public bint gave_work
    cdef public Py_ssize_t decisions
    cdef epoll_event events[EVENTS_AT_ONCE]
    cdef int first
    cdef int after_last
    cdef int timer
    cdef bint registered
    cdef double rings
    cdef bint rang

    def __cinit__(self):
        self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)

    def __dealloc__(self):
        if self.timer >= 0:
            close(self.timer)

    def serve(self, int descriptor, int linger):
        """Handle events until the turn is over or no event is left. Return the time of its end.

        One timer ends all waits of a turn. A timeout of each wait would cost 2 us an event, because
        the kernel sets its own timer for one that is due before the next tick, and resets it
        afterwards: more than all else that is done here.
        """
        cdef bint is_monotonic = self.clock is time.monotonic, lingers = False
        cdef int wait = 0  # there are events, or else nobody would have called
        cdef double now, after = self.time(is_monotonic)
        self.rang = False
        while self.first < self.after_last or self.poll(descriptor, wait):
            now = self.time(is_monotonic)
            after = self.handle(now, is_monotonic)
            self.turn_seconds += after - now
            if after > self.until or self.rang:
                break
            if self.decisions or self.gave_work or not linger:
                wait = 0
                continue
            if not lingers or self.due != self.rings:
                lingers = is_monotonic and self.set_timer(descriptor)
            wait = -1 if lingers else linger
        if lingers and not self.rang:
            self.stop_timer()
        return after

    cdef bint set_timer(self, int descriptor) noexcept:
        """Have the timer ring when the turn is due to end. Return whether it will."""
        cdef itimerspec at
        cdef epoll_event event
        if self.timer < 0:  # no descriptors
            return False
        if not self.registered:
            event.events = EPOLLIN | EPOLLET
            event.data.fd = self.timer
            self.registered = epoll_ctl(descriptor, EPOLL_CTL_ADD, self.timer, &event) == 0
        at.it_interval.tv_sec = at.it_interval.tv_nsec = 0
        self.rings = self.due
        at.it_value.tv_sec = <long>self.due
        at.it_value.tv_nsec = <long>(1e9 * (self.due - <double>at.it_value.tv_sec))
        return self.registered and timerfd_settime(self.timer, TFD_TIMER_ABSTIME, &at, NULL) == 0

    cdef void stop_timer(self) noexcept:
        """Keep the timer from waking the process after the turn."""
        cdef itimerspec never
        memset(&never, 0, sizeof(never))
        timerfd_settime(self.timer, 0, &never, NULL)

    cdef double time(self, bint is_monotonic) except? -1:
        """Return the time of the clock; `is_monotonic`: it is Python's, which asks this one."""
        cdef timespec now
        if not is_monotonic:
            return self.clock()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return <double>now.tv_sec + 1e-9 * <double>now.tv_nsec

    cdef bint poll(self, int descriptor, int milliseconds) except -1:
        """Take events from the kernel, for `handle`. Return whether there are any."""
        cdef int count
        with nogil:
            count = epoll_wait(descriptor, self.events, EVENTS_AT_ONCE, milliseconds)
        if count < 0 and errno != EINTR:
            raise OSError(errno, os.strerror(errno))
        self.first, self.after_last = 0, max(count, 0)
        return count > 0

    cdef double handle(self, double now, bint is_monotonic) except? -1:
        """Handle the events that `poll` took, until the turn is over. Return the time."""
        cdef Descriptor lane
        cdef int descriptor
        cdef unsigned int event
        cdef double after = now
        while self.first < self.after_last:
            descriptor = self.events[self.first].data.fd
            event = self.events[self.first].events
            self.first += 1
            lane = self._lanes.get(descriptor)
            if lane is None:
                self.rang |= descriptor == self.timer
                continue
            try:
                if event != EPOLLIN:
                    self._handle_other(lane, event, now)
                elif not self.sampler.skips:
                    lane.reader.timed(now, self.sampler.sample(now))
                else:
                    self.sampler.skips -= 1
                    if isinstance(lane.reader, Mover):
                        (<Mover>lane.reader).move(now)
                    else:
                        lane.reader.readable(now)
            except Exception as error:
                self._failed(lane, error)
            after = self.time(is_monotonic)
            if after > self.until:
                break
        return after
