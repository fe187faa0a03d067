cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.kafka cimport pieces
from gateway.wire.kafka.in_flight cimport InFlight
from gateway.wire.scanner cimport BaseScanner

cdef int _PRODUCE, _FETCH, _BORDER, _TOPIC, _PARTITION, _BATCH, _TAGS, _END
cdef Py_ssize_t _REQUEST, _SIZE, _ID, _LONGEST_CLIENT, _LONGEST_TEXT, _MOST_TOPICS, _MOST_NEW, _COUNT, _TAIL
cdef uint64_t _MOST_TAGS
cdef int _LAST_PRODUCE, _LAST_FETCH, _FLEXIBLE_PRODUCE, _FLEXIBLE_FETCH, _BY_ID, _WITH_TRANSACTIONS


cdef class ToBrokerScanner(BaseScanner):
    cdef public bint collects
    cdef public int halts
    cdef public bint overdrawn
    cdef public bint passes
    cdef public bint raw
    cdef public bint stops
    cdef public bint within
    cdef public Counters account
    cdef int _acks
    cdef int _after
    cdef object _book
    cdef int64_t _bytes
    cdef Py_ssize_t _collected_bound
    cdef InFlight _in_flight
    cdef bint _has_any
    cdef bint _is_closed
    cdef bint _is_cut
    cdef bint _is_id
    cdef Counters _known
    cdef int64_t _messages
    cdef int _part
    cdef int64_t _partitions
    cdef int64_t _records
    cdef bint _refused
    cdef set _seen
    cdef Py_ssize_t _tags
    cdef object _throttle
    cdef bytes _topic
    cdef int64_t _topics
    cdef int _version

    @cython.locals(
        data="const uint8_t *", at=Py_ssize_t, here=Py_ssize_t, frame_end=Py_ssize_t, part=int,
        flexible=bint, size=int, batch=int64_t, messages=int64_t, value=uint64_t,
        behind=Py_ssize_t, records=int64_t, partitions=int64_t, name_end=Py_ssize_t,
        total=Py_ssize_t, cleared=Py_ssize_t, tail=Py_ssize_t, is_last=bint,
    )
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(key=int, version=int, is_fetch=bint)
    cdef Py_ssize_t _begin(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, Py_ssize_t frame_end
    ) except -1
    @cython.locals(
        here=Py_ssize_t, flexible=bint, at=Py_ssize_t, topics=int64_t, behind=Py_ssize_t,
        name_end=Py_ssize_t, passes=bint, partitions=int64_t, first=Py_ssize_t, account=Counters,
    )
    cdef Py_ssize_t _begin_produce(
        self, bytearray chunk, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t frame_end, int version
    ) except -1
    cdef bint _begins_large(self, int64_t topics) except -1
    cdef Py_ssize_t _halt(self, Py_ssize_t begin, Py_ssize_t frame_end) noexcept
    @cython.locals(length=int64_t, at=Py_ssize_t)
    cdef Py_ssize_t _head(
        self, bytearray chunk, Py_ssize_t begin, Py_ssize_t end, int tag
    ) except -2
    @cython.locals(length=int64_t, begin=Py_ssize_t)
    cdef Py_ssize_t _read_transaction(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int size
    ) except -1
    @cython.locals(by_id=bint, behind=Py_ssize_t, length=int64_t, table=dict, is_known=bint)
    cdef Py_ssize_t _find(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end) except -1
    @cython.locals(
        data="const uint8_t *", flexible=bint, size=int, tag=int, partitions=int64_t,
        records=int64_t, topic_size=int64_t,
    )
    cdef bint _may_use_all(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int64_t topics
    ) except -1
    @cython.locals(account=Counters)
    cdef object _note_needs(self, int64_t size)
    cdef object _count(self)
    cpdef count(self, Counters account, int64_t messages, int64_t size, int acks)
    @cython.locals(
        data="const uint8_t *", flexible=bint, tag=int, at=Py_ssize_t, session=int64_t,
        forgotten=int64_t, length=int64_t,
    )
    cdef bint _may_fetch(
        self, bytearray chunk, Py_ssize_t begin, Py_ssize_t end, int version
    ) except -1
    @cython.locals(
        data="const uint8_t *", flexible=bint, by_id=bint, table=dict, size=int, tag=int,
        each=Py_ssize_t, topics=int64_t, behind=Py_ssize_t, length=int64_t, partitions=int64_t,
    )
    cdef Py_ssize_t _pass_wanted(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int version
    ) except -1
