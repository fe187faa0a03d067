# The functions of octets.py in C, for compiled readers.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

cdef enum:
    LONGEST_VARINT = 10


cdef inline uint16_t u16(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    return <uint16_t>(data[at] << 8 | data[at + 1])


cdef inline uint32_t u32(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    return (
        <uint32_t>data[at] << 24 | <uint32_t>data[at + 1] << 16
        | <uint32_t>data[at + 2] << 8 | data[at + 3]
    )


cdef inline int16_t i16(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    return <int16_t>u16(data, at)


cdef inline int32_t i32(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    return <int32_t>u32(data, at)


cdef inline int64_t i64(const uint8_t *data, Py_ssize_t at) noexcept nogil:
    return <int64_t>(<uint64_t>u32(data, at) << 32 | u32(data, at + 4))


cdef inline (uint64_t, Py_ssize_t) varint(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    if at < end and data[at] < 128:
        return (data[at], at + 1)
    return long_varint(data, at, end)


cdef inline (uint64_t, Py_ssize_t) long_varint(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef Py_ssize_t last = at + LONGEST_VARINT
    while at < last:
        if at >= end:
            return (0, -1)
        value |= <uint64_t>(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return (value, at)
        shift += 7
    return (0, 0)


cdef inline int64_t signed(uint64_t value) noexcept nogil:
    return <int64_t>value


cdef inline bytes piece(const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
    return (<const char *>data)[at:end]


cdef inline void blank(uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    memset(data + at, 0, end - at)


cdef inline bint same(const uint8_t *data, Py_ssize_t at, Py_ssize_t end, bytes other) noexcept:
    return end - at == PyBytes_GET_SIZE(other) and (
        memcmp(data + at, PyBytes_AS_STRING(other), end - at) == 0
    )
