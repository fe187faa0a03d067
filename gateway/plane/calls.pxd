# The functions of calls.py in C, for compiled loops.
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc

cdef extern from "sys/socket.h" nogil:
    ssize_t recv(int descriptor, void *buffer, size_t size, int flags)
    ssize_t send(int descriptor, const void *buffer, size_t size, int flags)
    int MSG_NOSIGNAL
    int MSG_PEEK

cdef extern from "fcntl.h" nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    static inline ssize_t gateway_splice(int source, int sink, size_t most) {
        return splice(source, NULL, sink, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    }
    """
    ssize_t gateway_splice(int source, int sink, size_t most)

cdef extern from "unistd.h" nogil:
    ssize_t read(int descriptor, void *buffer, size_t size)
    int close(int descriptor)

cdef extern from "time.h" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec *into)
    int CLOCK_MONOTONIC

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_wait(int descriptor, epoll_event *events, int most, int timeout)
    int epoll_ctl(int descriptor, int operation, int of, epoll_event *event)
    int EPOLL_CTL_ADD
    unsigned int EPOLLIN
    unsigned int EPOLLET

cdef extern from "sys/timerfd.h" nogil:
    struct itimerspec:
        timespec it_interval
        timespec it_value
    int timerfd_create(int clock, int flags)
    int timerfd_settime(int timer, int flags, const itimerspec *at, itimerspec *before)
    int TFD_NONBLOCK
    int TFD_CLOEXEC
    int TFD_TIMER_ABSTIME

cdef enum:
    SPLICES = 1
    EVENTS_AT_ONCE = 256


cdef inline Py_ssize_t receive_by(
    int descriptor, char *data, Py_ssize_t most, int flags
) noexcept:
    cdef ssize_t count
    with nogil:
        count = recv(descriptor, data, most, flags)
        if count < 0:
            count = -errno
    return count


cdef inline Py_ssize_t receive(
    int descriptor, bytearray buffer, Py_ssize_t start, Py_ssize_t most
) noexcept:
    return receive_by(descriptor, PyByteArray_AS_STRING(buffer) + start, most, 0)


cdef inline Py_ssize_t transmit(int descriptor, bytearray buffer, Py_ssize_t end) noexcept:
    cdef char *data = PyByteArray_AS_STRING(buffer)
    cdef ssize_t count
    with nogil:
        count = send(descriptor, data, end, MSG_NOSIGNAL)
        if count < 0:
            count = -errno
    return count


cdef inline Py_ssize_t peek(int descriptor, bytearray buffer, Py_ssize_t most) noexcept:
    return receive_by(descriptor, PyByteArray_AS_STRING(buffer), most, MSG_PEEK)


cdef inline Py_ssize_t splice(int source, int sink, Py_ssize_t most) noexcept:
    cdef ssize_t count
    with nogil:
        count = gateway_splice(source, sink, most)
        if count < 0:
            count = -errno
    return count


cdef inline Py_ssize_t take(
    int pipe, bytearray buffer, Py_ssize_t at, Py_ssize_t most
) noexcept:
    cdef ssize_t count = read(pipe, PyByteArray_AS_STRING(buffer) + at, most)
    return -errno if count < 0 else count


cdef inline double monotonic() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double>now.tv_sec + 1e-9 * <double>now.tv_nsec


cdef inline epoll_event *make_events() except NULL:
    cdef epoll_event *events = <epoll_event *>malloc(EVENTS_AT_ONCE * sizeof(epoll_event))
    if events == NULL:
        raise MemoryError
    return events


cdef inline void free_events(epoll_event *events) noexcept:
    free(events)


cdef inline int wait(
    epoll_event *events, object epoll, int descriptor, int milliseconds
) except -1:
    cdef int count
    with nogil:
        count = epoll_wait(descriptor, events, EVENTS_AT_ONCE, milliseconds)
        if count < 0:
            count = -errno
    if count < 0 and count != -EINTR:
        raise OSError(-count, "epoll_wait")
    return max(count, 0)


cdef inline int descriptor_of(epoll_event *events, int place) noexcept:
    return events[place].data.fd


cdef inline unsigned int what_of(epoll_event *events, int place) noexcept:
    return events[place].events


cdef inline int make_timer() noexcept:
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)


cdef inline bint register_timer(int descriptor, int timer) noexcept:
    cdef epoll_event event
    event.events = EPOLLIN | EPOLLET
    event.data.fd = timer
    return epoll_ctl(descriptor, EPOLL_CTL_ADD, timer, &event) == 0


cdef inline bint set_timer(int timer, double due) noexcept:
    cdef itimerspec at
    at.it_interval.tv_sec = at.it_interval.tv_nsec = 0
    at.it_value.tv_sec = <long>due
    at.it_value.tv_nsec = <long>(1e9 * (due - <double>at.it_value.tv_sec))
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0


cdef inline void close_timer(int timer) noexcept:
    if timer >= 0:
        close(timer)
