cimport cython
from libc.stdint cimport int64_t

from gateway.plane cimport calls
from gateway.plane.fairness cimport Served
from gateway.wire.scanner cimport BaseScanner

cdef Py_ssize_t _SPARING_READ, _AT_ONCE, _BULK, _HEAD, _PIPE, _NOTHING
cdef int _EAGAIN, _EINTR


cdef class Room:
    cdef public int64_t ample
    cdef public int64_t bound
    cdef public bytearray buffer
    cdef public int inlet
    cdef public int outlet
    cdef public Py_ssize_t size
    cdef public bint splices
    cdef public int64_t used

    cdef bint has_pipe(self) except -1
    cpdef close_pipe(self)


cdef class Descriptor:
    cdef public int fd
    cdef public object pending
    cdef public bint plain
    cdef public object reader
    cdef public Served served


cdef class Mover:
    cdef public object _at_border
    cdef public bytes _carry
    cdef public object _collection
    cdef public Room _memory
    cdef public object _moved
    cdef public Py_ssize_t _pauses
    cdef public Py_ssize_t _read_size
    cdef public Py_ssize_t at_once
    cdef public bint bulk
    cdef public double heard
    cdef public object note
    cdef public object pair
    cdef BaseScanner reader
    cdef public object scanner
    cdef public Descriptor sink
    cdef public Descriptor source

    @cython.locals(
        room=Room, start=Py_ssize_t, count=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t,
        sent=Py_ssize_t, reader=BaseScanner,
    )
    cpdef move(self, double now)
    @cython.locals(room=Room, source=Descriptor, most=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _receive(self, Py_ssize_t start) except -2
    @cython.locals(room=Room, sink=Descriptor, sent=Py_ssize_t)
    cdef Py_ssize_t _transmit(self, Py_ssize_t end) except -2
    cdef Py_ssize_t _untaken(self, int failure) except -2
    @cython.locals(
        room=Room, reader=BaseScanner, source=int, most=Py_ssize_t, gathered=Py_ssize_t,
        count=Py_ssize_t, wanted=Py_ssize_t,
    )
    cdef object _pour(self, double now, bint has_come)
    @cython.locals(
        room=Room, left=Py_ssize_t, failure=int, count=Py_ssize_t, at=Py_ssize_t,
    )
    cdef bint _empty(self, Py_ssize_t gathered) except -1
    cdef object _tell(self, double now)
    cdef object _ended(self, Py_ssize_t count)
