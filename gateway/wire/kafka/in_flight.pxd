cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef Py_ssize_t _MOST, _MOST_KEPT
cdef int64_t _LOW_16, _LOW_32


cdef class InFlight:
    cdef Py_ssize_t _kept
    cdef list _line
    cdef public bint has_served
    cdef public Py_ssize_t open
    cpdef bint is_full(self) noexcept
    cpdef passes(self, int64_t key, int64_t version, int64_t correlation)
    @cython.locals(packed=int64_t)
    cpdef int64_t oldest(self, int64_t correlation) except -1
    cpdef bint precedes_own(self)
    @cython.locals(line=list)
    cpdef bytes answered(self)
