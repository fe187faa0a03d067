cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.scanner cimport BaseScanner

cdef Py_ssize_t _FIRST, _HEAD, _SIZE, _LONGEST_LENGTH
cdef int _WIRE, _FIRST_TAG, _LAST_OF_CONNECTION


cdef class BlockScanner(BaseScanner):
    cdef public int64_t missing
    cdef Py_ssize_t _again
    cdef int64_t _blocks
    cdef public Py_ssize_t _largest

    @cython.locals(owed=Py_ssize_t)
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(
        at=Py_ssize_t, blocks=int64_t, behind=Py_ssize_t, left=int64_t, size=int64_t,
    )
    cdef object _stop(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end)
    cdef Py_ssize_t _rest(self) except -1
    cdef Py_ssize_t _run(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    cdef bint _waits(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end) except -1
    cpdef offer_again(self)


@cython.locals(size=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t) heads(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int last
) noexcept

@cython.locals(_=uint64_t)
cdef Py_ssize_t numbers(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int tag, int last
) noexcept

@cython.locals(size=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t) text(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int tag
) noexcept

@cython.locals(size=uint64_t, behind=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t) sized(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept

@cython.locals(size=int64_t, behind=Py_ssize_t)
cdef Py_ssize_t rest(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t envelope_end
) noexcept
