from libc.stdint cimport int64_t, uint8_t, uint64_t

from cpython.object cimport PyObject


cdef extern from *:
    """
    /* `wire.account.ENDLESS`; a Cython enum holds no such number. */
    #define ENOUGH ((int64_t)1 << 62)
    """
    const int64_t ENOUGH


cdef struct Counts:
    int64_t messages
    int64_t surplus
    int64_t bytes
    int64_t receipts
    int64_t redelivered
    int64_t messages_ceiling
    int64_t bytes_ceiling


cdef struct Entry:
    uint64_t id
    PyObject *account
    Counts *counts


cdef class Counters:
    cdef Counts counts


cdef class AccountTable:
    cdef Entry *entries
    cdef size_t size
    cdef size_t used
    cdef Entry *find(self, uint64_t id) noexcept nogil
    cdef int _grow(self) except -1
    cdef void _remove(self, size_t at) noexcept nogil


cdef class Walker:
    cdef public Py_ssize_t owed
    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil


cdef inline void count(Counts *counts, int64_t messages, int64_t size) noexcept nogil:
    """Count a frame of this many messages and bytes. Messages that a peer only claims, 2³¹ in each
    frame, make no number overflow."""
    if counts.messages < ENOUGH:
        counts.messages += messages
        counts.surplus += messages - 1
    counts.bytes += size


cdef inline bint may_pass(const Counts *counts) noexcept nogil:
    """Return whether allowance is left of both kinds, as `not Account.held`."""
    return (
        counts.messages < counts.messages_ceiling and counts.bytes < counts.bytes_ceiling
    )


cdef inline unsigned int number(const uint8_t *data) noexcept nogil:
    """Return the big-endian number in the next four bytes."""
    return (
        <unsigned int>data[0] << 24 | <unsigned int>data[1] << 16
        | <unsigned int>data[2] << 8 | data[3]
    )
