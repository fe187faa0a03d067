cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef int _LONGEST_LENGTH


@cython.locals(data="const uint8_t *", at=Py_ssize_t, here=Py_ssize_t, short=Py_ssize_t, kind=int, tag=int, shift=int, byte=int64_t, length=int64_t, _=int)
cpdef Py_ssize_t find_body(
    bytearray chunk, Py_ssize_t command, Py_ssize_t end, Py_ssize_t command_end
) except -2
