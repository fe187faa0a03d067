cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.tubemq cimport scanning
from gateway.wire.tubemq.scanning cimport BlockScanner

cdef Py_ssize_t _FIRST, _BLOCK, _STRIDE, _SIZE, _LONGEST_LENGTH, _MOST
cdef int _SEND, _METHOD, _TIMEOUT, _REQUEST, _LAST_OF_HEADER
cdef int _CLIENT, _TOPIC, _PARTITION, _DATA, _FLAG, _ADDRESS, _TIME


cdef class ToBrokerScanner(BlockScanner):
    cdef Counters _account
    cdef object _asked
    cdef bytes _call
    cdef object _in_flight
    cdef bytes _names
    cdef bytes _proof
    cdef bint _sends
    cdef dict _uses

    @cython.locals(behind=Py_ssize_t)
    cdef Py_ssize_t _run(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef bint _waits(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(
        data="const uint8_t *", first=Py_ssize_t, behind=Py_ssize_t, more=int64_t,
        lengths=Py_ssize_t, envelope_end=Py_ssize_t, edge=Py_ssize_t, at=Py_ssize_t,
        call=Py_ssize_t, call_end=Py_ssize_t, names=Py_ssize_t, names_end=Py_ssize_t,
        size=int64_t, is_last=bint, _=Py_ssize_t,
    )
    cdef Py_ssize_t _pass(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(data="const uint8_t *")
    cdef bint _find(
        self, bytearray chunk, Py_ssize_t call, Py_ssize_t call_end, Py_ssize_t names,
        Py_ssize_t names_end,
    ) except -1
    @cython.locals(account=Counters)
    cdef bint _counts(self, int64_t serial, int64_t size) except -1


@cython.locals(names_end=Py_ssize_t, begin=Py_ssize_t, size=uint64_t, _=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t, int64_t) _sent(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept

@cython.locals(tag=int, begin=Py_ssize_t, behind=Py_ssize_t)
cdef Py_ssize_t _behind_texts(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept

cdef bint _is_ascii(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept
