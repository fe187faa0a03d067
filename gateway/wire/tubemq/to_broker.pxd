cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.tubemq cimport scanning
from gateway.wire.tubemq.scanning cimport BlockScanner

cdef int64_t _TOKEN, _MOST_BLOCKS
cdef Py_ssize_t _FIRST, _BLOCK, _SIZE, _LONGEST_LENGTH, _LONGEST_TAIL, _MOST
cdef int _SEND, _METHOD, _TIMEOUT, _REQUEST, _LAST_OF_HEADER
cdef int _CLIENT, _TOPIC, _PARTITION, _DATA, _VARINT, _LONG, _BYTES, _SHORT
cdef uint64_t _NUMBER_OF_DATA, _NUMBER_OF_TYPE, _NUMBER_OF_TIME, _NUMBER_OF_PROOF, _LARGEST_TAG


cdef class ToBrokerScanner(BlockScanner):
    cdef Counters _account
    cdef object _asked
    cdef int64_t _block
    cdef bytes _call
    cdef object _in_flight
    cdef bytes _instead
    cdef int64_t _left
    cdef bytes _names
    cdef object _sending
    cdef int64_t _serial
    cdef int64_t _size
    cdef int64_t _tail
    cdef dict _uses
    cdef bint _verifies

    @cython.locals(rest=int64_t)
    cdef Py_ssize_t _rest(self) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef Py_ssize_t _run(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(data="const uint8_t *", size=int64_t, blocks=int64_t)
    cdef bint _waits(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(
        data="const uint8_t *", blocks=int64_t, edge=Py_ssize_t, call=Py_ssize_t,
        envelope_end=Py_ssize_t, call_end=Py_ssize_t, names=Py_ssize_t, names_end=Py_ssize_t,
        begin=Py_ssize_t, sent=int64_t, tail=int64_t, serial=int64_t, account=Counters,
    )
    cdef Py_ssize_t _pass(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(data="const uint8_t *")
    cdef bint _find(
        self, bytearray chunk, Py_ssize_t call, Py_ssize_t call_end, Py_ssize_t names,
        Py_ssize_t names_end,
    ) except -1
    @cython.locals(
        data="const uint8_t *", step=int64_t, tail=int64_t, here=int64_t, behind=Py_ssize_t,
        joined=bytearray,
    )
    cdef Py_ssize_t _go_on(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    cdef object _end(self)
    cpdef finish(self)
    @cython.locals(rest=int64_t)
    cdef int64_t _next_block(self, int64_t size) except -1
    @cython.locals(tag=uint64_t, begin=Py_ssize_t, is_text=bint)
    cdef bint _is_tail(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) except -1


@cython.locals(
    first=Py_ssize_t, blocks=int64_t, size=int64_t, at=Py_ssize_t, length=int64_t,
    call=Py_ssize_t, whole=int64_t, _=Py_ssize_t,
)
cdef (Py_ssize_t, Py_ssize_t) _call_at(
    const uint8_t *data, Py_ssize_t pos, Py_ssize_t end
) noexcept

@cython.locals(names_end=Py_ssize_t, begin=Py_ssize_t, size=uint64_t, _=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t, int64_t) _sent(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept

@cython.locals(begin=Py_ssize_t, size=Py_ssize_t, _=uint64_t)
cdef (Py_ssize_t, Py_ssize_t) _behind_value(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int wire
) noexcept

@cython.locals(place=Py_ssize_t)
cdef bint _is_text(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) except -1
