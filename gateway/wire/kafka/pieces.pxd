cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets

cdef int _COMPACT
cdef uint64_t _LONGEST
cdef Py_ssize_t _SHORT, _HEAD, _LENGTH_AT, _FORMAT_AT, _COUNT_AT, _AFTER_LENGTH, _DENSEST, _MOST
cdef int _FORMAT


@cython.locals(value=uint64_t, behind=Py_ssize_t, stated=int64_t)
cpdef (int64_t, Py_ssize_t) length(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int size
) noexcept

@cython.locals(stated=int64_t, messages=int64_t, is_latest=bint, most=int64_t)
cpdef (int64_t, int64_t) batch(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int64_t left
) noexcept
