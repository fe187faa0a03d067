cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from gateway.wire cimport octets
from gateway.wire.counters cimport Counters
from gateway.wire.kafka cimport pieces
from gateway.wire.kafka.in_flight cimport InFlight
from gateway.wire.scanner cimport BaseScanner

cdef int _PRODUCE, _FETCH, _LEADERS, _NOBODYS
cdef int _BORDER, _BODY, _TOPIC, _PARTITION, _ABORTED, _RECORDS, _BATCH, _BLANK, _TAGS, _END
cdef Py_ssize_t _ANSWER, _SIZE, _ID, _WAITED_FOR, _LONGEST_TEXT, _MOST_TOPICS, _COUNT, _MOST_ENDS, _TAIL
cdef uint64_t _MOST_TAGS
cdef int _FLEXIBLE_PRODUCE, _FLEXIBLE_FETCH, _BY_ID, _WITH_SESSIONS, _WITH_REPLICA, _WITH_LEADERS


cdef class ToClientScanner(BaseScanner):
    cdef public bint passes
    cdef public bint raw
    cdef public bint within
    cdef int64_t _aborted
    cdef public Counters account
    cdef int _after
    cdef object _book
    cdef int64_t _bytes
    cdef int _error
    cdef bint _goes_on
    cdef InFlight _in_flight
    cdef bint _is_id
    cdef Counters _known
    cdef int64_t _messages
    cdef object _original
    cdef int _part
    cdef int64_t _partitions
    cdef int64_t _records
    cdef int64_t _refused
    cdef object _services
    cdef int64_t _session
    cdef object _substitutes
    cdef Py_ssize_t _tags
    cdef object _throttle
    cdef bytes _topic
    cdef int64_t _topics
    cdef int _version
    cdef bint _waits

    @cython.locals(
        data="uint8_t *", at=Py_ssize_t, here=Py_ssize_t, frame_end=Py_ssize_t, part=int,
        flexible=bint, size=int, batch=int64_t, messages=int64_t, value=uint64_t,
        behind=Py_ssize_t, records=int64_t, partitions=int64_t, name_end=Py_ssize_t,
        total=Py_ssize_t, cleared=Py_ssize_t, is_last=bint, says_at=Py_ssize_t, version=int, leads=bint,
        offsets=Py_ssize_t, aborted=int64_t, blank_end=Py_ssize_t, fixed=Py_ssize_t,
        topics=int64_t, kind=int64_t,
    )
    cpdef Py_ssize_t scan(self, bytearray chunk, Py_ssize_t start, Py_ssize_t end) except -1

    cdef object _begin(self, int version)
    cdef object _note_session(self, int error, int64_t session)
    @cython.locals(by_id=bint, behind=Py_ssize_t, length=int64_t, table=dict, is_known=bint)
    cdef Py_ssize_t _find(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end) except -1
    cdef object _restore(self, bytearray chunk, Py_ssize_t end)
    cdef object _find_original(self, bytes topic)
    @cython.locals(error=int, account=Counters)
    cdef object _note_partition(self, bytearray chunk, Py_ssize_t at, Py_ssize_t size)
    cdef object _charge_refused(self)
    @cython.locals(account=Counters)
    cdef object _count(self)
    @cython.locals(account=Counters)
    cdef bint _lacks(self, int64_t size) noexcept
    cdef object _wait(self, int64_t size)
    @cython.locals(account=Counters)
    cdef object _count_early(self)
    cdef object _tell(self, bytearray chunk, Py_ssize_t at)
    cdef bint _is_fine(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int version
    ) except -1
    cdef object _receive(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int version)
    @cython.locals(
        data="const uint8_t *", flexible=bint, size=int, tag=int, each=Py_ssize_t,
        topics=int64_t, behind=Py_ssize_t, length=int64_t, account=Counters, partitions=int64_t,
        table=dict,
    )
    cdef bint _walk(
        self, bytearray chunk, Py_ssize_t at, Py_ssize_t end, int version, int receipts
    ) except -1
    cdef object _appended(self, dict ends, int partition, int64_t offset)
