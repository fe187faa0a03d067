# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Pass the usual frames of Pulsar: the twins of the loops in `wire.pulsar.scan`.

A frame is usual if its command is canonical and shorter than 128 bytes, and if what is counted of
it is written as every known client and broker writes it. The walkers halt at all others, and a pure
scanner judges these. So nothing here refuses, halts for good, or reads what the pure scanners would
read otherwise; the conformance battery and the fuzzer compare the two.
"""

import functools

from cython cimport no_gc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from gateway.compiled.counters cimport (
    ENOUGH,
    AccountTable,
    Counts,
    Entry,
    Walker,
    count,
    may_pass,
    number,
)

cdef enum:
    HEADER = 10  # bytes up to a command's type
    SMALLEST = 6  # size of a command of type, tag, length and an id
    LARGEST = 131  # size of a command whose length has one byte
    BODY = 12  # offset of the fields of SEND, SEND_RECEIPT and MESSAGE then
    LARGE = 8192  # as in wire/pulsar/metadata
    SUSPICIOUS = 5000  # as in wire/pulsar/counts
    SEND = 6
    RECEIPT = 7
    MESSAGE = 9
    PASS = 0  # as in wire/pulsar/frames
    COMMAND_TYPE = 0x08
    CHECKSUM_MAGIC = 0x0E01
    ID = 0x08  # tag of a consumer's or a producer's id
    MESSAGE_ID = 0x12
    REDELIVERIES = 0x18
    EPOCH = 0x28
    NUM_MESSAGES = 11 << 3
    MOST_MESSAGES = 0x7FFFFFFF  # of a frame, by int32


cdef struct Varint:
    uint64_t value
    Py_ssize_t behind  # its end; 0: it has too many bytes, or has not come that far


cdef inline Varint read(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int most = 9
) noexcept nogil:
    """Read a varint of at most `most` bytes, which ends before `end`."""
    cdef Varint found
    if at < end and data[at] < 128:  # most have one byte
        found.value, found.behind = data[at], at + 1
        return found
    return read_more(data, at, end, most)


cdef Varint read_more(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int most
) noexcept nogil:
    """Do what `read` does, for any length. A tenth byte counts as far as 64 bits reach."""
    cdef Varint found
    cdef int shift = 0
    found.value, found.behind = 0, 0
    end = min(end, at + most)
    while at < end:
        found.value |= <uint64_t>(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            found.behind = at
            break
        shift += 7
    return found


cdef Py_ssize_t body_of(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t size, Py_ssize_t end
) noexcept nogil:
    """Return the offset of the fields of the command in the frame at `at`, whose type has one byte;
    0 if the command is not canonical, is longer than `LARGEST`, or has not come that far."""
    cdef unsigned int tag = <unsigned int>data[at + 9] << 3 | 2
    cdef Py_ssize_t length_at = at + 11
    if tag > 127:
        length_at += 1
    if length_at >= end or size > LARGEST:
        return 0
    if tag > 127:
        if data[at + 10] != (tag & 127 | 128) or data[at + 11] != tag >> 7:
            return 0
    elif data[at + 10] != tag:
        return 0
    if data[length_at] > 127 or length_at + 1 + data[length_at] != at + 8 + size:
        return 0
    return length_at + 1


@functools.cache
def _bits(actions):
    """Return a number with a bit for each action that lets a command pass unread."""
    return sum(1 << place for place, action in enumerate(actions) if action == PASS)


cdef class FrameWalker(Walker):
    """The part that both directions share: the commands that pass unread, a bit for each type."""

    cdef uint64_t passes[2]
    cdef Py_ssize_t command_bound

    def __init__(self, actions, command_bound):
        self.passes[0], self.passes[1] = _bits(actions[:64]), _bits(actions[64:])
        self.command_bound = min(command_bound, LARGEST)

    cdef inline bint _passes(
        self, const uint8_t *data, Py_ssize_t at, Py_ssize_t size, Py_ssize_t total, Py_ssize_t end
    ) noexcept nogil:
        """Return whether the command passes unread, and nothing is behind it."""
        return (
            data[at + 8] == COMMAND_TYPE
            and data[at + 9] < 128
            and self.passes[data[at + 9] >> 6] >> (data[at + 9] & 63) & 1
            and 2 <= size <= self.command_bound
            and total == size + 4
            and body_of(data, at, size, end) != 0
        )


@no_gc
cdef class ToBrokerWalker(FrameWalker):
    """Passes SENDs of open producers that have allowance, and commands that pass unread.

    `distance`: bytes of limited producers until counts are compared again, if `compares`.
    """

    cdef readonly AccountTable producers
    cdef bint compares
    cdef public int64_t distance

    def __init__(self, actions, command_bound, AccountTable producers not None, *, bint compares):
        super().__init__(actions, command_bound)
        self.producers = producers
        self.compares = compares

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        cdef Py_ssize_t total, size, field, command_end
        cdef uint64_t producer = 0, messages, last_id = 0
        cdef Varint value
        cdef bint named
        cdef uint8_t tag
        cdef Entry *last = NULL
        cdef Counts *counts
        while end - at >= HEADER:
            total, size = number(data + at), number(data + at + 4)
            command_end = at + 8 + size
            if not (
                data[at + 9] == SEND
                and data[at + 8] == COMMAND_TYPE
                and data[at + 10 if end - at > 10 else at] == (SEND << 3 | 2)
            ):
                if not self._passes(data, at, size, total, end):
                    return at
                at += total + 4
                continue
            if (
                command_end > end
                or not SMALLEST <= size <= self.command_bound
                or size + 4 > total
                or data[at + 11] != size - 4
            ):
                return at
            field = at + BODY
            named, messages = False, 1
            while field < command_end:
                tag = data[field]
                value = read(data, field + 1, command_end)
                if tag & 0x87 or tag == 0 or value.behind == 0:
                    return at
                field = value.behind
                if tag == ID:
                    named, producer = True, value.value
                elif tag == 0x18:
                    messages = <uint32_t>value.value
            if not named or messages == 0 or messages > MOST_MESSAGES:
                return at
            if last is NULL or producer != last_id:
                last, last_id = self.producers.find(producer), producer
            if last is NULL or not may_pass(last.counts):
                return at
            counts = last.counts
            if self.compares and counts.messages_ceiling < ENOUGH:
                if self.distance <= 0 or messages > SUSPICIOUS:
                    return at
                self.distance -= total + 4
            count(counts, messages, total + 4)
            at += total + 4
        return at


cdef inline int64_t messages_in(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return the message count of whole metadata, as `metadata.count_messages` reads it."""
    cdef Varint value
    cdef uint32_t found = 1, tag
    while at < end:
        value = read(data, at, end, 10)
        if value.behind == 0:
            break
        tag, at = <uint32_t>value.value, value.behind
        if tag & 7 == 0 or tag & 7 == 2:
            value = read(data, at, end, 10)
            if value.behind == 0:
                break
            at = value.behind
            if tag == NUM_MESSAGES:
                found = <uint32_t>value.value
            elif tag & 7 == 2:
                if value.value > <uint64_t>(end - at):
                    break
                at += value.value
        elif tag & 7 == 1:
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            break
    return found if 0 < found <= MOST_MESSAGES else 1


cdef struct Found:
    uint64_t id
    Entry *entry  # NULL: none was looked up, or it is not open


@no_gc
cdef class ToClientWalker(FrameWalker):
    """Counts MESSAGEs of open consumers and receipts of open producers; passes both, and commands
    that pass unread."""

    cdef readonly AccountTable consumers
    cdef readonly AccountTable producers

    def __init__(
        self,
        actions,
        command_bound,
        AccountTable consumers not None,
        AccountTable producers not None,
    ):
        super().__init__(actions, command_bound)
        self.consumers = consumers
        self.producers = producers

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        cdef Py_ssize_t total, size, behind
        cdef Found last
        last.entry = NULL
        while end - at >= HEADER:
            total, size = number(data + at), number(data + at + 4)
            behind = 0
            if data[at + 8] == COMMAND_TYPE and data[at + 9] == MESSAGE:
                behind = self._message(data, at, total, size, end, &last)
            elif data[at + 8] == COMMAND_TYPE and data[at + 9] == RECEIPT:
                behind = self._receipt(data, at, total, size, end)
            elif self._passes(data, at, size, total, end):
                behind = at + 4 + total
            if behind == 0:
                return at
            at = behind
        return at

    cdef inline Py_ssize_t _receipt(
        self,
        const uint8_t *data,
        Py_ssize_t at,
        Py_ssize_t total,
        Py_ssize_t size,
        Py_ssize_t end,
    ) noexcept nogil:
        """Count a SEND_RECEIPT. Return the offset behind it; 0 if it is not usual."""
        cdef Py_ssize_t command_end = at + 8 + size
        cdef Varint producer
        cdef Entry *entry
        if command_end > end or total != size + 4:
            return 0
        producer = first_id(data, at, size)
        if producer.behind == 0:
            return 0
        if producer.behind > at + 14 and not has_no_other(data, producer.behind, command_end):
            return 0
        entry = self.producers.find(producer.value)
        if entry is not NULL:
            entry.counts.receipts += 1
        return command_end

    cdef inline Py_ssize_t _message(
        self,
        const uint8_t *data,
        Py_ssize_t at,
        Py_ssize_t total,
        Py_ssize_t size,
        Py_ssize_t end,
        Found *last,
    ) noexcept nogil:
        """Count a MESSAGE. Return the offset behind it; 0 if it is not usual. `last`: the consumer
        that was looked up for the MESSAGE before it."""
        cdef Py_ssize_t command_end = at + 8 + size, metadata = command_end + 10
        cdef Py_ssize_t metadata_end
        cdef Varint consumer
        if (
            command_end + 12 > end
            or size + 4 > total
            or data[command_end] != CHECKSUM_MAGIC >> 8
            or data[command_end + 1] != CHECKSUM_MAGIC & 0xFF
        ):
            return 0
        metadata_end = metadata + number(data + command_end + 6)
        if metadata_end > end or metadata_end > at + 4 + total or metadata_end - metadata > LARGE:
            return 0
        consumer = first_id(data, at, size)
        if consumer.behind == 0 or not is_first_delivery(data, at, consumer.behind, command_end):
            return 0
        if last.entry is NULL or consumer.value != last.id:
            last.entry, last.id = self.consumers.find(consumer.value), consumer.value
        if last.entry is NULL:
            return 0
        count(last.entry.counts, messages_in(data, metadata, metadata_end), total + 4)
        return at + 4 + total


cdef inline Varint first_id(const uint8_t *data, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Read the id that a whole command begins with. Its `behind` is also 0 if the command is not
    canonical, is longer than `LARGEST`, or begins otherwise."""
    cdef Varint found
    if (
        SMALLEST <= size <= LARGEST
        and data[at + 10] == (data[at + 9] << 3 | 2)
        and data[at + 11] == size - 4
        and data[at + 12] == ID
    ):
        return read(data, at + BODY + 1, at + 8 + size)
    found.value, found.behind = 0, 0
    return found


cdef bint is_first_delivery(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t behind_id, Py_ssize_t end
) noexcept nogil:
    """Return whether a MESSAGE is delivered for the first time, as far as that is seen at once.

    Behind its id come the id of the message and an epoch, a redelivery count of 0, or no more. An
    id of one byte is taken as `ToClientScanner` takes it.
    """
    cdef Py_ssize_t rest
    if behind_id > at + 14:
        return has_no_other(data, behind_id, end)
    if behind_id + 2 > end or data[behind_id] != MESSAGE_ID:
        return False
    rest = behind_id + 2 + data[behind_id + 1]
    return (
        rest == end
        or (rest < end and data[rest] == EPOCH)
        or (rest == end - 2 and data[rest] == REDELIVERIES and data[rest + 1] == 0)
    )


cdef bint has_no_other(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Return whether fields fill these bytes of which none is another id, or counts deliveries
    above 0."""
    cdef Varint value
    cdef uint8_t tag
    while at < end:
        tag = data[at]
        if tag > 127 or tag == ID or (tag & 7 != 0 and tag & 7 != 2):
            return False
        value = read(data, at + 1, end)
        if value.behind == 0 or (tag == REDELIVERIES and value.value != 0):
            return False
        at = value.behind
        if tag & 7 == 2:
            if value.value > <uint64_t>(end - at):
                return False
            at += value.value
    return at == end
