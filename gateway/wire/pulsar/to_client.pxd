cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.pulsar.canonical cimport find_body
from gateway.wire.scanner cimport BaseScanner

cdef Py_ssize_t _HEADER, _COMMAND_BOUND, _LEAST, _BODY, _HEADS, _READ
cdef int _PASS, _MESSAGE, _RECEIPT, _LAST_TYPE, _TYPE_TAG, _ID, _REDELIVERIES, _NUM_MESSAGES
cdef int _CHECKSUM, _ENTRY
cdef int _BORDER, _ENTRY_HEAD, _SKIPPED, _CHECKSUM_HEAD, _SIZE, _METADATA, _PAYLOAD
cdef int64_t _ENDLESS
cdef uint64_t _SMALL, _LOW_32, _MOST_MESSAGES
cdef bytes _BARE, _LISTS


@cython.locals(
    id=uint64_t, redeliveries=uint64_t, value=uint64_t, tag=uint64_t, wire=int, has_id=bint
)
cdef (uint64_t, uint64_t, bint) _read_ids(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept


cdef class ToClientScanner(BaseScanner):
    cdef public dict consumers
    cdef public dict producers
    cdef public Counters unknown
    cdef Counters _account
    cdef bytes _actions
    cdef Py_ssize_t _command_bound
    cdef uint32_t _computed
    cdef uint32_t _expected
    cdef object _crc32c
    cdef Py_ssize_t _heads
    cdef uint64_t _messages
    cdef int _part
    cdef Py_ssize_t _rest
    cdef Py_ssize_t _skip
    cdef bint _sums

    @cython.locals(
        data="const uint8_t *", at=Py_ssize_t, summed=Py_ssize_t, part=int, frame_end=Py_ssize_t,
        rest=Py_ssize_t, skip=Py_ssize_t, heads=Py_ssize_t, messages=uint64_t, account=Counters,
        producer=Counters, sums=bint, known=bint, last=uint64_t,
        known_producer=bint, last_producer=uint64_t, total=Py_ssize_t, size=Py_ssize_t,
        kind=int, command_end=Py_ssize_t, body=Py_ssize_t, is_plain=bint, id=uint64_t,
        redeliveries=uint64_t, has_id=bint, metadata_end=Py_ssize_t, here=Py_ssize_t,
        begin=Py_ssize_t, tag=uint64_t, value=uint64_t, wire=int, cleared=Py_ssize_t,
    )
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1

    cdef object _sum(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end)
    cdef object _compare(self, object account)
