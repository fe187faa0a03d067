# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The base of the compiled walkers of Kafka and TubeMQ."""

from libc.stdint cimport uint8_t


cdef class Walker:
    """Passes the usual frames of one direction. A pure scanner judges all others.

    `owed`: as of the scanner whose walker this is.
    """

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        """Count usual frames from the border `at` on. Return where they end: at the first frame
        that is not usual or not here as far as its header goes, or beyond `end` by what the last
        frame owes."""
        return at

    def pass_usual(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end):
        """Do the same in a chunk, of which `end` bytes have come."""
        if not 0 <= at or end > len(chunk):
            raise ValueError("the chunk is shorter than that")
        cdef uint8_t *data = chunk
        return self.walk(data, at, end)
