cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets

cdef int _END, _PAUSED, _TAGGED
cdef int64_t _AT_ONCE
cdef int _OVER, _TEXT, _RUN, _LOOP, _NEXT, _MARK, _WANTED, _OPTIONAL, _TAGS, _TAG, _KNOWN, _UNTAG, _STOP
cdef Py_ssize_t _SIZE, _A, _B, _C, _D, _E, _LONGEST_COMPACT
cdef uint64_t _HIGHEST_COMPACT


cdef class Walker:
    cdef bytes _code
    cdef object _frame
    cdef Py_ssize_t _edge
    cdef Py_ssize_t _pc
    cdef int64_t _remain
    cdef Py_ssize_t _loop
    cdef int64_t _tags
    cdef int64_t _length
    cdef int64_t _left
    cdef int64_t _pause
    cdef list _stack
    cdef list _marks
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t until
    cdef readonly int64_t count

    @cython.locals(
        code="const uint8_t *", data="const uint8_t *", pc=Py_ssize_t, at=Py_ssize_t,
        begin=Py_ssize_t, op=int, label=int, count=int64_t, size=int64_t,
    )
    cpdef int advance(self) except -9
    @cython.locals(length=int64_t, number=uint64_t, behind=Py_ssize_t)
    cdef Py_ssize_t _read_length(
        self, const uint8_t *data, Py_ssize_t at, int size, int least
    ) except -1
    cdef Py_ssize_t _begin_array(self, Py_ssize_t pc, Py_ssize_t behind, int64_t count) except -1
    cdef bint _take_step(self) except -1
    cdef bint _any(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept
    @cython.locals(code="const uint8_t *")
    cdef Py_ssize_t _read_optional(self, const uint8_t *data, Py_ssize_t pc, int op) except? -1
    @cython.locals(
        code="const uint8_t *", tag=int64_t, start=Py_ssize_t, until=Py_ssize_t, known=Py_ssize_t,
        behind=Py_ssize_t,
    )
    cdef Py_ssize_t _read_tag(self, const uint8_t *data, Py_ssize_t pc) except? -1
