cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.pulsar.canonical cimport find_body
from gateway.wire.scanner cimport BaseScanner

cdef Py_ssize_t _HEADER, _BODY, _LONGEST_FLOW, _CARRY_BOUND, _WAITED_FOR
cdef int _STOP, _PASS, _SEND, _FLOW, _LAST_TYPE, _SEND_TAG, _TYPE_TAG, _ID, _PERMITS, _NUM_MESSAGES
cdef int _FINE, _ODD, _BROKEN
cdef int64_t _ENDLESS, _SUSPICIOUS
cdef uint64_t _SMALL, _LOW_32, _MOST_MESSAGES
cdef int _MAGIC, _ENTRY, _COMPARED_AT_ONCE
cdef bytes _BARE


@cython.locals(
    producer=uint64_t, messages=uint64_t, value=uint64_t, tag=int, outcome=int, begin=Py_ssize_t
)
cdef (uint64_t, uint64_t, int) _read_send(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept


cdef class ToBrokerScanner(BaseScanner):
    cdef public dict producers
    cdef public dict consumers
    cdef public bytes damaged
    cdef object _account
    cdef bytes _actions
    cdef Py_ssize_t _collected
    cdef bytes _head
    cdef object _checks
    cdef Py_ssize_t _command_bound
    cdef int _compared
    cdef uint32_t _computed
    cdef uint32_t _expected
    cdef object _crc32c
    cdef int64_t _distance
    cdef bint _sums

    @cython.locals(
        data="const uint8_t *", at=Py_ssize_t, total=Py_ssize_t, size=Py_ssize_t, body=Py_ssize_t,
        command_end=Py_ssize_t, kind=int, action=int, outcome=int, producer=uint64_t,
        last=uint64_t, messages=uint64_t, account=Counters, known=bint,
    )
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(
        data="const uint8_t *", at=Py_ssize_t, total=Py_ssize_t, size=Py_ssize_t,
        producer=uint64_t, outcome=int, _=uint64_t,
    )
    cpdef Py_ssize_t following(self, object account, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(total=Py_ssize_t)
    cdef Py_ssize_t _halt_send(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t command_end, Py_ssize_t end
    ) except -1
    cdef object _begin_sum(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t command_end, Py_ssize_t end
    )
    cdef Py_ssize_t _halt(self, Py_ssize_t at, Py_ssize_t total) noexcept

    cpdef compared(self)
    @cython.locals(consumer=uint64_t, permits=uint64_t, value=uint64_t, named=bint, tag=int)
    cdef object _count_flow(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end)

    @cython.locals(total=Py_ssize_t, frame_end=Py_ssize_t)
    cdef bint _is_compared(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t command_end, Py_ssize_t here,
        object account, uint64_t messages,
    ) except -1
    @cython.locals(frame_end=Py_ssize_t)
    cdef bint _may_pass(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t command_end, Py_ssize_t end
    ) except -1
    @cython.locals(computed=uint32_t)
    cdef bint _is_damaged(self, bytearray chunk, Py_ssize_t command_end, Py_ssize_t end) except -1
    cdef object _sum(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end, Py_ssize_t owed)
