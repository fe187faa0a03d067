cdef class BaseScanner:
    cdef public bint is_slow
    cdef public bint looks
    cdef public Py_ssize_t owed
    cdef public Py_ssize_t skips
    cdef public Py_ssize_t stop
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef look(self, bytearray chunk, Py_ssize_t end)
