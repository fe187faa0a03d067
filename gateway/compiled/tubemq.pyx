# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Read replies of TubeMQ that bring messages, while they pass: the twin of
`wire.tubemq.bringing.Bringing`.

How such a reply begins is learned there. The walker halts at each other frame. At a reply that does
not go on as it must it halts as well, and `read` raises then.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from gateway.compiled.walker cimport Walker
from gateway.wire.octets cimport u32
from gateway.errors import PeerError

cdef enum:
    HEAD = 12  # bytes of a frame's head
    FIRST = 16  # and of the length of its first block
    DIGITS = 4  # bytes of a block's length
    BLOCK = 8192  # bytes of a full one
    MOST_BLOCKS = 3584
    GET_MESSAGES = 17
    OUTSIDE = -1  # of all messages
    JUDGED = 3
    ALL = 15
    TAG = 0  # what is read next
    VALUE = 1
    LENGTH = 2
    NUMBER = 0  # wire types
    LONG = 1
    BYTES = 2
    SHORT = 5
    MESSAGE = 4 << 3 | BYTES  # tags of a reply
    OFFSET = 5 << 3
    END = 10 << 3
    ID = 1 << 3  # and of its messages
    CHECKSUM = 2 << 3
    PAYLOAD = 3 << 3 | BYTES
    FLAG = 4 << 3
    ALL_BUT_FLAG = 7
    HEADERS = 45  # bytes of a flag and all of the next message before its payload, at most

cdef uint32_t TOKEN = 0xFF7FF4FE

cdef bytes BODY = bytes((0x08, GET_MESSAGES, 0x12))

WRONG = "a reply that does not go on as one that brings messages"


cdef inline Py_ssize_t length_at(
    const uint8_t *data, Py_ssize_t *at, Py_ssize_t end
) noexcept nogil:
    """Return the length at `at`, which moves behind it; -1: it is cut, or too long."""
    cdef Py_ssize_t found = 0
    cdef int place
    for place in range(5):
        if at[0] >= end:
            return -1
        found |= <Py_ssize_t>(data[at[0]] & 127) << 7 * place
        at[0] += 1
        if data[at[0] - 1] < 128:
            return found
    return -1


cdef inline bint begins(
    const uint8_t *data, bytes other, Py_ssize_t *at, Py_ssize_t end
) noexcept:
    """Return whether these bytes are at `at`, which moves behind them."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(other)
    if end - at[0] < size or memcmp(data + at[0], PyBytes_AS_STRING(other), size) != 0:
        return False
    at[0] += size
    return True


cdef inline Py_ssize_t behind(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    """Return where the value at `at` ends; 0: it is too long."""
    cdef Py_ssize_t last = at + 9
    while data[at] > 127:
        if at == last:
            return 0
        at += 1
    return at + 1


cdef class ReplyWalker(Walker):
    """See `wire.tubemq.bringing.Bringing`. `count`: called with what a reply has brought.
    `is_armed`: the next bytes begin a frame, or go on with the reply under way."""

    cdef object pending
    cdef object services
    cdef object count
    cdef bytes heads
    cdef bytes text
    cdef object told
    cdef public Py_ssize_t left
    cdef public bint is_armed
    cdef object asked
    cdef int32_t serial
    cdef Py_ssize_t envelope
    cdef Py_ssize_t block
    cdef int64_t skip
    cdef int64_t inner
    cdef int64_t payload
    cdef int64_t messages
    cdef int64_t size
    cdef int64_t offset
    cdef int64_t end
    cdef uint64_t value
    cdef uint64_t tag
    cdef int digits
    cdef int shift
    cdef int state
    cdef int seen
    cdef bint has_offset
    cdef bint is_wrong

    def __init__(self, pending, services, count):
        self.pending, self.services, self.count = pending, services, count

    @property
    def lead(self):
        return self.told

    @lead.setter
    def lead(self, lead):
        self.heads, self.text = lead
        self.told = lead

    def begin(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        return self.start(<const uint8_t *>chunk, pos, end)

    def read(self, bytearray chunk, Py_ssize_t pos, Py_ssize_t end):
        cdef Py_ssize_t behind = self.go_on(<const uint8_t *>chunk, pos, end)
        if behind < 0:
            raise PeerError(WRONG)
        return behind

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        if not self.is_armed:
            return at
        if self.left > end - at:  # all of it is the same reply
            return end if self.go_through(data, at, end) else at
        with gil:
            return self.run(data, at, end)

    cdef Py_ssize_t run(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
        cdef Py_ssize_t behind
        while at < end:
            behind = self.go_on(data, at, end) if self.left else self.start(data, at, end)
            if behind < 0 or behind == at:
                break
            at = behind
        return at

    cdef Py_ssize_t start(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) except -1:
        """See `Bringing.begin`."""
        cdef Py_ssize_t place = at + FIRST, body, message, envelope
        cdef uint32_t blocks, size
        if self.told is None or end - at <= FIRST or u32(data, at) != TOKEN:
            return at
        blocks, size = u32(data, at + 8), u32(data, at + HEAD)
        asked = self.pending.get(<int32_t>u32(data, at + 4))
        if asked is None or asked[0] != GET_MESSAGES or asked[2] is None:
            return at
        if not begins(data, self.heads, &place, end):
            return at
        body = length_at(data, &place, end)
        envelope = place + body - at - FIRST
        if body < 0 or not begins(data, BODY, &place, end):
            return at
        message = length_at(data, &place, end)
        if message < 0 or place + message != at + FIRST + envelope:
            return at
        if not begins(data, self.text, &place, end):
            return at
        place -= 1  # the tag of the first message
        if blocks > MOST_BLOCKS or blocks != (envelope + BLOCK - 1) // BLOCK:
            return at
        if size != min(envelope, <Py_ssize_t>BLOCK) or place - at - FIRST >= size:
            return at
        self.asked, self.serial = asked, <int32_t>u32(data, at + 4)
        self.envelope = envelope - (place - at - FIRST)
        self.block = size - (place - at - FIRST)
        self.left = self.envelope + (blocks - 1) * DIGITS
        self.digits = self.shift = self.seen = 0
        self.state, self.value, self.inner = TAG, 0, OUTSIDE
        self.skip = self.messages = self.size = self.payload = self.end = 0
        self.has_offset = False
        return place

    cdef Py_ssize_t go_on(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) except -2:
        """See `Bringing.read`; -1: the reply does not go on as it must."""
        cdef Py_ssize_t behind = min(end, at + self.left)
        if not self.go_through(data, at, behind):
            return -1
        if self.left == 0:
            self.pending.pop(self.serial, None)
            asked, self.asked = self.asked, None
            offset = self.offset if self.has_offset else None
            self.count(self.services, asked, self.messages, self.size, offset, self.end)
        return behind

    cdef bint go_through(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        """Read a part of the reply. Return whether it goes on as it must."""
        cdef Py_ssize_t part, left = self.left - (end - at)
        cdef Py_ssize_t size
        if self.is_wrong:
            return False
        self.is_wrong = True
        while at < end:
            if self.block == 0:
                size = min(self.envelope, <Py_ssize_t>BLOCK)
                if data[at] != (size >> 8 * (DIGITS - 1 - self.digits) & 255):
                    return False
                at += 1
                self.digits += 1
                if self.digits == DIGITS:
                    self.digits, self.block = 0, size
                continue
            part = min(self.block, end - at)
            if not self.parse(data, at, at + part):
                return False
            self.block -= part
            self.envelope -= part
            at += part
        if left == 0 and (self.skip or self.shift or self.state != TAG or self.inner != OUTSIDE):
            return False
        self.left = left
        self.is_wrong = False
        return True

    cdef bint parse(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        """Read a part of the envelope. Return whether it goes on as it must."""
        cdef int64_t step
        cdef Py_ssize_t passed
        while at < end:
            if self.skip:
                step = min(self.skip, <int64_t>(end - at))
                self.skip -= step
                at += step
                if self.skip == 0 and self.inner == 0 and not self.ends():
                    return False
                continue
            if self.state == TAG and self.shift == 0 and end - at >= HEADERS:
                passed = self.pass_usual_messages(data, at, end)
                if passed > at:
                    at = passed
                    continue
            if self.inner > 0:
                self.inner -= 1
            if self.shift < 64:
                self.value |= <uint64_t>(data[at] & 127) << self.shift
            self.shift += 7
            at += 1
            if data[at - 1] > 127:
                if self.shift >= (70 if self.state == VALUE else 35) or self.inner == 0:
                    return False
                continue
            if not self.understand(self.value):
                return False
            self.value = 0
            self.shift = 0
            if self.inner == 0 and self.skip == 0 and (self.state != TAG or not self.ends()):
                return False
        return True

    cdef Py_ssize_t pass_usual_messages(
        self, const uint8_t *data, Py_ssize_t begun, Py_ssize_t end
    ) noexcept nogil:
        """See `Bringing._run`. At least `HEADERS` bytes have come."""
        cdef Py_ssize_t at = begun, place, first, length, size
        cdef int64_t inner = self.inner, payload = self.payload, rest, messages = 0, total = 0
        if inner != OUTSIDE and self.seen != ALL_BUT_FLAG:
            return begun
        while end - at >= HEADERS:
            place = at
            if inner != OUTSIDE:
                if data[place] != FLAG:
                    break
                place = behind(data, place + 1)
                if place - at != inner:
                    break
            if data[place] != MESSAGE:
                break
            place += 1
            length = length_at(data, &place, end)
            first = place
            if length < 0 or data[place] != ID:
                break
            place = behind(data, place + 1)
            if place == 0 or data[place] != CHECKSUM:
                break
            place = behind(data, place + 1)
            if place == 0 or data[place] != PAYLOAD:
                break
            place += 1
            size = length_at(data, &place, end)
            rest = length - (place - first) - size
            if size <= 0 or rest <= 0:
                break
            if inner != OUTSIDE:
                messages += 1
                total += payload
            payload, inner, at = size, rest, place + size
        if at > begun:
            self.messages += messages
            self.size += total
            self.seen, self.payload, self.inner = ALL_BUT_FLAG, payload, inner
            self.skip = max(at - end, 0)
        return min(at, end)

    cdef bint understand(self, uint64_t value) noexcept nogil:
        """Take a tag, a value or a length. Return whether it may stand there."""
        cdef int was = self.state
        if was == TAG:
            return self.tagged(value)
        self.state = TAG
        if was == LENGTH:
            return self.begin_bytes(<int64_t>value)
        if self.inner == OUTSIDE:
            if self.tag == OFFSET:
                self.offset, self.has_offset = <int64_t>value, True
            elif self.tag == END:
                self.end = <int64_t>value
        return True

    cdef bint tagged(self, uint64_t tag) noexcept nogil:
        cdef int wire = tag & 7
        if tag >> 3 == 0 or tag >> 32 or (self.inner == OUTSIDE and tag >> 3 <= JUDGED):
            return False
        self.tag = tag
        if self.inner != OUTSIDE:
            if tag == ID:
                self.seen |= 1
            elif tag == CHECKSUM:
                self.seen |= 2
            elif tag == PAYLOAD:
                self.seen |= 4
            elif tag == FLAG:
                self.seen |= 8
        if wire == NUMBER:
            self.state = VALUE
        elif wire == BYTES:
            self.state = LENGTH
        elif wire == LONG or wire == SHORT:
            return self.pass_bytes(8 if wire == LONG else 4)
        else:
            return False
        return True

    cdef bint begin_bytes(self, int64_t size) noexcept nogil:
        if self.inner != OUTSIDE:
            if self.tag == PAYLOAD:
                self.payload = size
            return self.pass_bytes(size)
        if self.tag != MESSAGE:
            self.skip = size
            return True
        self.inner, self.seen = size, 0
        return size != 0

    cdef bint pass_bytes(self, int64_t size) noexcept nogil:
        if self.inner != OUTSIDE:
            if size > self.inner:
                return False
            self.inner -= size
        self.skip = size
        return True

    cdef bint ends(self) noexcept nogil:
        """Count the message that ends here. Return whether it has all that it must have."""
        self.inner = OUTSIDE
        self.messages += 1
        self.size += self.payload
        return self.seen == ALL
