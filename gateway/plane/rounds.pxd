cimport cython

from gateway.plane cimport calls
from gateway.plane.moving cimport Descriptor, Mover
from gateway.plane.fairness cimport Served

cdef unsigned int _IN
cdef int _FOREVER


cdef class Rounds:
    cdef public object _epoll
    cdef public dict _lanes
    cdef public object clock
    cdef public Py_ssize_t decisions
    cdef public double due
    cdef public bint gave_work
    cdef public object sampler
    cdef public double turn_seconds
    cdef public double until
    cdef int _after_last
    cdef calls.epoll_event *_events
    cdef bint _has_rung
    cdef bint _is_registered
    cdef int _next
    cdef double _rings
    cdef int _timer_fd

    @cython.locals(is_monotonic=bint, lingers=bint, wait=int, now=double, after=double)
    cpdef double serve(self, int descriptor, int linger) except? -1
    cdef bint _set_timer(self, int descriptor) except -1
    cdef double _time(self, bint is_monotonic) except? -1
    cdef bint _poll(self, int descriptor, int milliseconds) except -1
    @cython.locals(
        after=double, before=double, descriptor=int, event="unsigned int", first=Served,
        lane=Descriptor, mover=Mover, served=Served, start=int,
    )
    cdef double _handle(self, double now, bint is_monotonic) except? -1
