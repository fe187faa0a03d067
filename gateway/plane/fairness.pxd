cimport cython

cdef double _AHEAD


cdef class Served:
    cdef object __weakref__
    cdef public Served above
    cdef public double now
    cdef public double until

    @cython.locals(one=Served)
    cpdef bint is_due(self) except -1
    @cython.locals(one=Served, above=Served)
    cpdef object charge(self, double seconds)
    cpdef bint precedes(self, Served other) except -1
    @cython.locals(one=Served, above=Served)
    cpdef object admit(self)
