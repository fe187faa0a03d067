cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.tubemq cimport scanning
from gateway.wire.tubemq.scanning cimport BlockScanner

cdef int _TAG, _VALUE, _LENGTH, _NUMBER, _LONG, _BYTES, _SHORT, _ALL, _ALL_BUT_FLAG, _DIGITS
cdef uint64_t _LARGEST_TAG, _JUDGED, _OFFSET, _END, _BROUGHT_TAG, _ID, _CHECKSUM, _PAYLOAD, _FLAG
cdef uint64_t _LOW_64
cdef bytes _TAKEN
cdef Py_ssize_t _HEADERS, _BLOCK, _FIRST, _LONGEST_LEAD, _LONGEST_RECEIPT, _LONGEST_LENGTH
cdef int64_t _TOKEN, _MOST_BLOCKS
cdef int64_t _OUTSIDE
cdef int _LAST_OF_HEADER, _METHOD, _REPLY, _SEND, _GET, _TEXT, _ASKS, _NUMBER_OF_MESSAGE
cdef int _OFFSET_OF_MESSAGE, _DIGIT_0, _DIGIT_9


cdef class ToClientScanner(BlockScanner):
    cdef public bytes lead
    cdef public Py_ssize_t left
    cdef object _asked
    cdef Py_ssize_t _block
    cdef int64_t _bytes
    cdef int _digits
    cdef Py_ssize_t _envelope
    cdef bint _has_offset
    cdef object _in_flight
    cdef int64_t _inner
    cdef int64_t _messages
    cdef int64_t _offset
    cdef int64_t _partition_end
    cdef int64_t _payload
    cdef int _seen
    cdef object _serial
    cdef object _services
    cdef int _shift
    cdef int64_t _skip
    cdef int _state
    cdef uint64_t _tag
    cdef uint64_t _value

    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef finish(self)
    cdef Py_ssize_t _rest(self) except -1
    @cython.locals(begun=Py_ssize_t)
    cdef Py_ssize_t _run(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(data="const uint8_t *", size=int64_t)
    cdef bint _waits(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(
        data="const uint8_t *", serial=int64_t, blocks=int64_t, size=int64_t, first=Py_ssize_t,
        begin=Py_ssize_t, behind=Py_ssize_t, whole=int64_t, full=int64_t, envelope_end=Py_ssize_t, method=int,
        lead=bytes, least=int64_t,
    )
    cdef Py_ssize_t _begin(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(
        data="const uint8_t *", begun=Py_ssize_t, size=Py_ssize_t, behind=Py_ssize_t,
        left=Py_ssize_t,
    )
    cdef Py_ssize_t _read_on(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(data="const uint8_t *", step=int64_t, behind=Py_ssize_t)
    cdef object _read(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end)
    @cython.locals(
        data="const uint8_t *", inner=int64_t, payload=int64_t, at=Py_ssize_t, messages=int64_t,
        total=int64_t, place=Py_ssize_t, length=uint64_t, first=Py_ssize_t, size=uint64_t,
        behind=Py_ssize_t, rest=int64_t, _=uint64_t,
    )
    cdef Py_ssize_t _usual(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    @cython.locals(value=uint64_t, state=int, bits=uint64_t)
    cdef object _step(self, int byte)
    @cython.locals(wire=int, number=uint64_t)
    cdef object _tagged(self, uint64_t tag)
    @cython.locals(number=int64_t)
    cdef object _number(self, uint64_t value)
    cdef object _begin_bytes(self, int64_t size)
    cdef object _pass(self, int64_t size)
    cdef object _count(self)
    cdef object _end(self)


@cython.locals(
    header=Py_ssize_t, at=Py_ssize_t, size=int64_t, begin=Py_ssize_t, envelope_end=Py_ssize_t,
)
cdef (Py_ssize_t, Py_ssize_t) _body(
    const uint8_t *data, Py_ssize_t first, Py_ssize_t end, int method
) noexcept

@cython.locals(behind=Py_ssize_t, begin=Py_ssize_t)
cdef bint _is_receipt(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept

cdef bint _are_digits(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept
