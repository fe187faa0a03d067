# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Pass frames of Kafka that are like the last one: the twins of `wire.kafka.in_flight.Line`, and of
the loops in `wire.kafka.requests` and `answers`.

What successive frames have in common is learned by `wire.kafka.alike`, and given to the walkers
here. They halt at each frame that differs, or with which something ends: an allowance, or the room
of the line. So nothing here refuses, holds or writes.

The line of requests and the ends of partitions are objects of Python. So these walkers hold the
interpreter, which costs some 50 ns for each read.
"""

from cython cimport no_gc
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE, PyBytes_Check
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from gateway.compiled.walker cimport Walker
from gateway.wire.counters cimport Counters
from gateway.wire.octets cimport u32

cdef enum:
    SIZE = 4  # bytes of a frame's size
    UNUSUAL = -1  # the kind of a place whose object says all
    ANSWER_HEAD = 8  # size, correlation id
    REQUEST_HEAD = 12  # size, API, version, correlation id
    INDEX = 4  # of a partition
    ERROR_AT = 4  # behind the index
    OFFSET_AT = 6
    APPENDED = 14  # index, error and offset
    ENDS = 35  # index, error, where the partition ends, two offsets, and the middle
    MIDDLE = 5
    EPOCH = 4  # of a fetch session
    TAIL = 3  # as in wire/kafka/quick
    BATCH = 61  # bytes of the head of a batch
    AFTER_LENGTH = 12  # bytes of a batch up to where its length begins to count
    LENGTH_AT = 8
    FORMAT_AT = 16
    COUNT_AT = 57
    FORMAT = 2
    SHORT = 17  # as in wire/kafka/records
    LEAST_PLACES = 4


cdef struct Place:
    int32_t correlation
    int32_t kind  # API and version as one number, or UNUSUAL
    PyObject *it  # the account or NULL; of an unusual place the `Asked`, or an own answer


@no_gc
cdef class Line:
    """The base of `wire.kafka.in_flight.Pending`: a ring of places, of which an empty line has none.
    `open`: see there.

    A usual request has no claim, is the client's own, and sends to one topic or none. Its place has
    no `Asked`, which `make` makes if somebody wants to see it.

    Connections are many, so the numbers are small ones, and there is no part for the collector of
    cycles: nothing that is asked refers to the line.
    """

    cdef Place *places
    cdef uint32_t size
    cdef uint32_t start
    cdef uint32_t used
    cdef uint32_t most
    cdef readonly uint32_t open
    cdef object make

    def __init__(self, make, uint32_t most):
        self.make = make
        self.most = most

    def __dealloc__(self):
        cdef uint32_t at
        for at in range(self.used):
            Py_XDECREF(self.places[(self.start + at) & (self.size - 1)].it)
        PyMem_Free(self.places)

    def __len__(self):
        return self.used

    def __iter__(self):
        cdef uint32_t at
        return iter([self._object(at) for at in range(self.used)])

    @property
    def room(self):
        return <Py_ssize_t>self.most - <Py_ssize_t>self.used

    @property
    def is_full(self):
        return self.used >= self.most

    @property
    def precedes_own_answer(self):
        return self.used > 1 and self._is_own(1)

    @property
    def first(self):
        return self._object(0) if self.used else None

    def ask(self, asked):
        key, version, correlation, accounts, is_own, claim, since = asked
        self.open += 1
        if len(accounts) > 1 or is_own or claim is not None or since:
            self._add(correlation, UNUSUAL, asked)
        else:
            self._add(correlation, key << 16 | version, accounts[0] if accounts else None)

    def add(self, bytes own not None):
        self._add(0, UNUSUAL, own)

    def take(self, int32_t correlation, like):
        accounts = like[3]
        if len(accounts) > 1:
            return False
        account = accounts[0] if accounts else None
        return self.takes(correlation, like[0] << 16 | like[1], account)

    def pop(self):
        """Remove the first place, and return what it had."""
        found = self._object(0)
        if not PyBytes_Check(found):
            self.open -= 1
        self._drop()
        return found

    cdef bint has_room(self) noexcept nogil:
        return self.used < self.most

    cdef int takes(self, int32_t correlation, int32_t kind, object account) except -1:
        """Remove the first place if it is this usual one, and no own answer follows it. Return
        whether it was there."""
        cdef Place *first = &self.places[self.start]
        cdef PyObject *it = <PyObject *>account if account is not None else NULL
        if self.used == 0 or first.correlation != correlation or first.kind != kind:
            return False
        if first.it != it or (self.used > 1 and self._is_own(1)):
            return False
        self.open -= 1
        self._drop()
        return True

    cdef int put(self, int32_t correlation, int32_t kind, object account) except -1:
        """Add a usual request."""
        self.open += 1
        return self._add(correlation, kind, account)

    cdef int _add(self, int32_t correlation, int32_t kind, object it) except -1:
        if self.used == self.size:
            self._grow()
        cdef Place *place = &self.places[(self.start + self.used) & (self.size - 1)]
        place.correlation, place.kind, place.it = correlation, kind, NULL
        if it is not None:
            Py_INCREF(it)
            place.it = <PyObject *>it
        self.used += 1
        return 0

    cdef int _drop(self) except -1:
        cdef PyObject *it = self.places[self.start].it
        self.start = (self.start + 1) & (self.size - 1)
        self.used -= 1
        if self.used == 0:
            PyMem_Free(self.places)
            self.places = NULL
            self.size = self.start = 0
        Py_XDECREF(it)
        return 0

    cdef int _grow(self) except -1:
        cdef uint32_t size = max(2 * self.size, <uint32_t>LEAST_PLACES), at
        cdef Place *places = <Place *>PyMem_Calloc(size, sizeof(Place))
        if places is NULL:
            raise MemoryError
        for at in range(self.used):
            places[at] = self.places[(self.start + at) & (self.size - 1)]
        PyMem_Free(self.places)
        self.places = places
        self.size, self.start = size, 0
        return 0

    cdef bint _is_own(self, uint32_t at):
        """Return whether a place has an answer of the gateway."""
        cdef Place *place = &self.places[(self.start + at) & (self.size - 1)]
        return place.kind == UNUSUAL and PyBytes_Check(<object>place.it)

    cdef object _object(self, uint32_t at):
        cdef Place *place = &self.places[(self.start + at) & (self.size - 1)]
        if place.kind == UNUSUAL:
            return <object>place.it
        accounts = (<object>place.it,) if place.it is not NULL else ()
        return self.make(place.kind >> 16, place.kind & 0xFFFF, place.correlation, accounts)


cdef class Watch:
    """`edition` grows whenever something changes by which frames that are like the last one would
    not pass any more. Its twin is `wire.kafka.watch.Watch`."""

    cdef public int64_t edition


cdef inline uint32_t number(const uint8_t *data) noexcept nogil:
    return u32(data, 0)


cdef inline int64_t long_number(const uint8_t *data) noexcept nogil:
    """Return the big-endian number in the next eight bytes."""
    return <int64_t>(<uint64_t>number(data) << 32 | number(data + 4))


cdef inline bint tells(const uint8_t *data, Py_ssize_t digits, Py_ssize_t size) noexcept nogil:
    """Return whether a compact length of so many bytes says that `size` bytes follow."""
    cdef Py_ssize_t rest = size + 1, at
    for at in range(digits - 1):
        if data[at] != (rest & 127 | 128):
            return False
        rest >>= 7
    return 0 < rest < 128 and data[digits - 1] == rest


cdef inline bint same(const uint8_t *data, bytes other) noexcept:
    return memcmp(data, PyBytes_AS_STRING(other), PyBytes_GET_SIZE(other)) == 0


cdef inline Py_ssize_t batch_size(const uint8_t *data, int32_t *messages) noexcept nogil:
    """Return the bytes of the batch whose head is at `data`, and how many messages it has; 0: it is
    not of format 2, or states what it cannot have."""
    cdef int32_t length = <int32_t>number(data + LENGTH_AT)
    messages[0] = <int32_t>number(data + COUNT_AT)
    if data[FORMAT_AT] != FORMAT or messages[0] < 0 or length < BATCH - AFTER_LENGTH:
        return 0
    return <Py_ssize_t>length + AFTER_LENGTH


cdef class ProduceForm:
    """What requests of Produce have in common; see `wire.kafka.alike.Producing`."""

    cdef bytes lead
    cdef uint32_t kind
    cdef bint acks
    cdef Py_ssize_t digits

    def __init__(self, lead, kind, acks, digits):
        self.lead, self.kind, self.acks, self.digits = lead, kind, acks != 0, digits


cdef class FetchForm:
    """What requests of Fetch have in common; see `wire.kafka.alike.Asking`."""

    cdef Py_ssize_t size
    cdef uint32_t kind
    cdef bytes lead
    cdef bytes topic
    cdef bytes rest

    def __init__(self, size, kind, lead, topic, rest):
        self.size, self.kind, self.lead, self.topic, self.rest = size, kind, lead, topic, rest


cdef class AcceptedForm:
    """What answers to Produce have in common; see `wire.kafka.alike.Accepted`."""

    cdef Py_ssize_t size
    cdef int32_t kind
    cdef bytes lead
    cdef bytes rest

    def __init__(self, size, kind, lead, rest):
        self.size, self.kind, self.lead, self.rest = size, kind, lead, rest


cdef class GivenForm:
    """What answers to Fetch have in common; see `wire.kafka.alike.Giving`."""

    cdef int32_t kind
    cdef bytes lead
    cdef bytes middle
    cdef Py_ssize_t digits

    def __init__(self, kind, lead, middle, digits):
        self.kind, self.lead, self.middle, self.digits = kind, lead, middle, digits


@no_gc
cdef class LikeWalker(Walker):
    """The part that both directions share: nothing passes unless the scanner has armed the walker,
    and nothing has changed on the watch since. What a walker refers to does not refer to it, so the
    collector of cycles need not know it."""

    cdef Line line
    cdef Watch watch
    cdef int64_t edition

    def __init__(self, Line line not None, Watch watch not None):
        self.line = line
        self.watch = watch
        self.edition = -1

    def arm(self, bint passes):
        """Let frames pass that are like those which have been learned, until something changes; or
        none, until this is called again."""
        self.edition = self.watch.edition if passes else -1

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        with gil:
            return at if self.edition != self.watch.edition else self.run(data, at, end)

    cdef Py_ssize_t run(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        """Pass the frames at `at` that are like the last one. Return the offset behind them."""
        return at


@no_gc
cdef class RequestWalker(LikeWalker):
    """Passes requests of Produce and of Fetch. `produced`: the account of the former."""

    cdef public Counters produced
    cdef public ProduceForm producing
    cdef public FetchForm asking

    def run_produces(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        """See `wire.kafka.requests.Requests`."""
        return self.pass_produces(<const uint8_t *>chunk, pos, end)

    def run_fetches(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        """See `wire.kafka.requests.Requests`."""
        return self.pass_fetches(<const uint8_t *>chunk, pos, end)

    cdef Py_ssize_t run(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        if self.asking is not None:
            at = self.pass_fetches(data, at, end)
        if self.producing is not None:
            at = self.pass_produces(data, at, end)
        return at

    cdef Py_ssize_t pass_produces(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        cdef ProduceForm form = self.producing
        cdef Line line = self.line
        cdef Py_ssize_t length_at = REQUEST_HEAD + PyBytes_GET_SIZE(form.lead) + INDEX, batch
        cdef Py_ssize_t batch_at = length_at + form.digits, last = end - batch_at - BATCH
        cdef Py_ssize_t around = batch_at - SIZE + TAIL
        cdef const uint8_t *frame
        cdef int32_t messages
        cdef Counters counts = self.produced
        while at <= last and line.has_room():
            frame = data + at
            if number(frame + SIZE) != form.kind or not same(frame + REQUEST_HEAD, form.lead):
                break
            batch = batch_size(frame + batch_at, &messages)
            if messages <= 0 or batch == 0 or <int32_t>number(frame) != batch + around:
                break
            if not tells(frame + length_at, form.digits, batch):
                break
            if uses_up(counts, messages, batch):
                break
            if form.acks:
                line.put(<int32_t>number(frame + 8), form.kind, self.produced)
            else:
                counts.receipts += 1
            counts.add(messages, batch)
            at += SIZE + batch + around
        return at

    cdef Py_ssize_t pass_fetches(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        cdef FetchForm form = self.asking
        cdef Line line = self.line
        cdef Py_ssize_t last = end - SIZE - form.size
        cdef Py_ssize_t topic_at = REQUEST_HEAD + PyBytes_GET_SIZE(form.lead) + EPOCH
        cdef Py_ssize_t rest_at = SIZE + form.size - PyBytes_GET_SIZE(form.rest)
        cdef const uint8_t *frame
        while at <= last and line.has_room():
            frame = data + at
            if number(frame) != <uint32_t>form.size or number(frame + SIZE) != form.kind:
                break
            if not (
                same(frame + REQUEST_HEAD, form.lead)
                and same(frame + topic_at, form.topic)
                and same(frame + rest_at, form.rest)
            ):
                break
            line.put(<int32_t>number(frame + 8), form.kind, None)
            at += SIZE + form.size
        return at


@no_gc
cdef class AnswerWalker(LikeWalker):
    """Passes answers to Produce and to Fetch. `produced`, `consumed`: the accounts of each.
    `most_ends`: partitions of one topic whose ends are noted."""

    cdef public object produced
    cdef public AcceptedForm accepted
    cdef public object consumed
    cdef public GivenForm giving
    cdef Py_ssize_t most_ends

    def __init__(self, Line line not None, Watch watch not None, Py_ssize_t most_ends):
        super().__init__(line, watch)
        self.most_ends = most_ends

    def run_accepted(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        """See `wire.kafka.responses.Answers`."""
        return self.pass_accepted(<const uint8_t *>chunk, pos, end)

    def run_given(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        """See `wire.kafka.responses.Answers`."""
        return self.pass_given(<const uint8_t *>chunk, pos, end)

    cdef Py_ssize_t run(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        if self.giving is not None:
            at = self.pass_given(data, at, end)
        if self.accepted is not None:
            at = self.pass_accepted(data, at, end)
        return at

    cdef Py_ssize_t pass_accepted(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        cdef AcceptedForm form = self.accepted
        cdef Counters account = self.produced
        cdef Py_ssize_t partition_at = ANSWER_HEAD + PyBytes_GET_SIZE(form.lead)
        cdef Py_ssize_t last = end - form.size
        cdef const uint8_t *frame
        cdef const uint8_t *passed = NULL
        while at <= last and not account.is_held():
            frame = data + at
            if number(frame) != <uint32_t>(form.size - SIZE):
                break
            if not same(frame + ANSWER_HEAD, form.lead):
                break
            if frame[partition_at + ERROR_AT] or frame[partition_at + ERROR_AT + 1]:
                break
            if not same(frame + partition_at + APPENDED, form.rest):
                break
            if not self.line.takes(<int32_t>number(frame + SIZE), form.kind, account):
                break
            account.receipts += 1
            at += form.size
            passed = frame + partition_at
        if passed is not NULL and at == end:
            self._appended(<int32_t>number(passed), long_number(passed + OFFSET_AT))
        return at

    cdef Py_ssize_t pass_given(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        cdef GivenForm form = self.giving
        cdef Counters account = self.consumed
        cdef Py_ssize_t index_at = ANSWER_HEAD + PyBytes_GET_SIZE(form.lead)
        cdef Py_ssize_t length_at = index_at + ENDS
        cdef Py_ssize_t batch_at = length_at + form.digits, last = end - batch_at - BATCH
        cdef Py_ssize_t around = batch_at - SIZE + TAIL, batches, first, size
        cdef int64_t told
        cdef int32_t messages
        cdef const uint8_t *frame
        cdef const uint8_t *passed = NULL
        while at <= last:
            frame = data + at
            if not same(frame + ANSWER_HEAD, form.lead):
                break
            if frame[index_at + ERROR_AT] or frame[index_at + ERROR_AT + 1]:
                break
            if not same(frame + length_at - MIDDLE, form.middle):
                break
            size = <int32_t>number(frame)
            batches = size - around
            first = batch_size(frame + batch_at, &messages)
            if first == 0 or messages == 0 or first > batches:
                break
            if not tells(frame + length_at, form.digits, batches):
                break
            told = messages
            if first < batches:  # of several, of which a cut answer does not tell all
                if at + SIZE + size > end:
                    break
                told = messages_in(frame + batch_at + first, batches - first)
                if told < 0:
                    break
                told += messages
            if uses_up(account, told, batches):
                break
            if not self.line.takes(<int32_t>number(frame + SIZE), form.kind, None):
                break
            account.add(told, batches)
            if passed is not NULL and number(passed) != number(frame + index_at):
                self._ended(<int32_t>number(passed), long_number(passed + OFFSET_AT))
            passed = frame + index_at
            at += SIZE + size
        if passed is not NULL:
            self._ended(<int32_t>number(passed), long_number(passed + OFFSET_AT))
        return at

    cdef int _ended(self, int32_t partition, int64_t offset) except -1:
        """Note where a partition ends, as an answer to Fetch says."""
        ends = self.consumed.ends
        if ends is not None and (partition in ends or len(ends) < self.most_ends):
            ends[partition] = offset
        return 0

    cdef int _appended(self, int32_t partition, int64_t offset) except -1:
        """Note that a partition has a batch at this offset, so that it ends behind it."""
        ends = self.produced.ends
        if ends is not None and offset >= ends.get(partition, 0) and len(ends) < self.most_ends:
            ends[partition] = offset + 1
        return 0


cdef inline bint uses_up(Counters counts, int64_t messages, int64_t size) noexcept:
    """Return whether a frame of this many messages and bytes would use up the allowance."""
    return (
        messages >= counts.messages_ceiling - counts.messages
        or size >= counts.bytes_ceiling - counts.bytes
    )


cdef int64_t messages_in(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    """See `wire.kafka.quick.messages_in`."""
    cdef int64_t told = 0
    cdef int32_t messages
    cdef Py_ssize_t at = 0, batch
    while size - at >= BATCH:
        batch = batch_size(data + at, &messages)
        if batch == 0:
            return -1
        at += batch
        if at > size:
            return told
        told += messages
    return -1 if size - at >= SHORT else told
