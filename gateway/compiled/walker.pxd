from libc.stdint cimport uint8_t


cdef class Walker:
    cdef public Py_ssize_t owed
    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil
