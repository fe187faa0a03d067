from libc.stdint cimport int64_t

cdef int64_t _ENDLESS


cdef class Counters:
    cdef public int64_t messages
    cdef public int64_t surplus
    cdef public int64_t bytes
    cdef public int64_t receipts
    cdef public int64_t redelivered
    cdef public int64_t messages_ceiling
    cdef public int64_t bytes_ceiling
    cdef bint is_held(self) noexcept
    cpdef bint lacks(self, int64_t size) noexcept
    cpdef void add(self, int64_t messages, int64_t size) noexcept
