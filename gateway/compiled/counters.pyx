# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What walkers of all protocols share: an account's counters, accounts by id, and the walker.

The counters of an account are numbers of 64 bits here, at a fixed place: a walker adds to them
without the interpreter, and policy reads and writes them as attributes, as it does the pure ones.
"""

import os

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef int64_t MOST = (1 << 63) - 1
LARGEST_ID = (1 << 64) - 1

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "big")


cdef inline uint64_t hashed(uint64_t id) noexcept nogil:
    """Return a hash that nobody foresees: the mixing steps of splitmix64 on a secret sum."""
    id += SEED
    id = (id ^ (id >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    id = (id ^ (id >> 27)) * <uint64_t>0x94D049BB133111EB
    return id ^ (id >> 31)


cdef int64_t at_most(object value) except? -1:
    """Return a number, or the largest that fits: a peer may claim 2³¹ messages in each frame."""
    return <int64_t>MOST if value > MOST else <int64_t>value


cdef class Counters:
    """The base of `wire.account.Account`: what walkers read and write."""

    def __cinit__(self):
        self.counts.messages_ceiling = self.counts.bytes_ceiling = ENOUGH

    @property
    def messages(self):
        return self.counts.messages

    @messages.setter
    def messages(self, value):
        self.counts.messages = at_most(value)

    @property
    def surplus(self):
        return self.counts.surplus

    @surplus.setter
    def surplus(self, value):
        self.counts.surplus = at_most(value)

    @property
    def bytes(self):
        return self.counts.bytes

    @bytes.setter
    def bytes(self, value):
        self.counts.bytes = at_most(value)

    @property
    def receipts(self):
        return self.counts.receipts

    @receipts.setter
    def receipts(self, value):
        self.counts.receipts = value

    @property
    def redelivered(self):
        return self.counts.redelivered

    @redelivered.setter
    def redelivered(self, value):
        self.counts.redelivered = value

    @property
    def messages_ceiling(self):
        return self.counts.messages_ceiling

    @messages_ceiling.setter
    def messages_ceiling(self, value):
        self.counts.messages_ceiling = value

    @property
    def bytes_ceiling(self):
        return self.counts.bytes_ceiling

    @bytes_ceiling.setter
    def bytes_ceiling(self, value):
        self.counts.bytes_ceiling = value

    @property
    def held(self):
        return not may_pass(&self.counts)


cdef class AccountTable:
    """Accounts by the ids that peers choose: the twin of an `IdTable` of accounts.

    A hash table with linear probing, at most half full. Its seed is secret, so nobody can choose
    ids that collide. It keeps its accounts alive: a walker needs no reference of its own.
    """

    def __class_getitem__(cls, _):
        """Return the class: it is generic for type checkers."""
        return cls

    def __dealloc__(self):
        cdef size_t at
        for at in range(self.size):
            if self.entries[at].account is not NULL:
                Py_DECREF(<object>self.entries[at].account)
        PyMem_Free(self.entries)

    @property
    def small(self):
        """Return the table itself, which finds small ids as it finds others."""
        return self

    def __len__(self):
        return self.used

    def __iter__(self):
        return iter([account for _, account in self.items()])

    def items(self):
        """Return all ids with their accounts."""
        found = []
        cdef size_t at
        for at in range(self.size):
            if self.entries[at].account is not NULL:
                found.append((self.entries[at].id, <object>self.entries[at].account))
        return found

    def get(self, id):
        """See `IdTable.get`."""
        if not 0 <= id <= LARGEST_ID:
            return None  # -1 stands for a command without an id
        cdef Entry *entry = self.find(id)
        return None if entry is NULL else <object>entry.account

    def put(self, id, Counters account not None):
        """See `IdTable.put`. Raises `OverflowError` for more than 64 bits."""
        self.pop(id)
        if 2 * (self.used + 1) > self.size:
            self._grow()
        cdef size_t at = hashed(id) & (self.size - 1)
        while self.entries[at].account is not NULL:
            at = (at + 1) & (self.size - 1)
        Py_INCREF(account)
        self.entries[at].id = id
        self.entries[at].account = <PyObject *>account
        self.entries[at].counts = &account.counts
        self.used += 1

    def pop(self, id):
        """See `IdTable.pop`."""
        found = self.get(id)
        if found is not None:
            self._remove(self.find(id) - self.entries)
            Py_DECREF(found)
        return found

    cdef Entry *find(self, uint64_t id) noexcept nogil:
        """Return the entry of an id; NULL without one."""
        cdef size_t at
        if self.used == 0:
            return NULL
        at = hashed(id) & (self.size - 1)
        while self.entries[at].account is not NULL:
            if self.entries[at].id == id:
                return &self.entries[at]
            at = (at + 1) & (self.size - 1)
        return NULL

    cdef int _grow(self) except -1:
        cdef size_t size = max(2 * self.size, 4), at, to
        cdef Entry *entries = <Entry *>PyMem_Calloc(size, sizeof(Entry))
        if entries is NULL:
            raise MemoryError
        for at in range(self.size):
            if self.entries[at].account is not NULL:
                to = hashed(self.entries[at].id) & (size - 1)
                while entries[to].account is not NULL:
                    to = (to + 1) & (size - 1)
                entries[to] = self.entries[at]
        PyMem_Free(self.entries)
        self.entries, self.size = entries, size
        return 0

    cdef void _remove(self, size_t at) noexcept nogil:
        """Empty a place, and move entries behind it that would not be found any more."""
        cdef size_t mask = self.size - 1, behind = at, home
        self.used -= 1
        while True:
            behind = (behind + 1) & mask
            if self.entries[behind].account is NULL:
                break
            home = hashed(self.entries[behind].id) & mask
            if ((behind - home) & mask) >= ((behind - at) & mask):
                self.entries[at] = self.entries[behind]
                at = behind
        self.entries[at].account = NULL


cdef class Walker:
    """Passes the usual frames of one direction. A pure scanner judges all others.

    `owed`: as of the scanner whose walker this is.
    """

    cdef Py_ssize_t walk(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
        """Count usual frames from the border `at` on. Return where they end: at the first frame
        that is not usual or not here as far as its header goes, or beyond `end` by what the last
        frame owes."""
        return at

    def pass_usual(self, bytearray chunk, Py_ssize_t at, Py_ssize_t end):
        """Do the same in a chunk, of which `end` bytes have come."""
        if not 0 <= at or end > len(chunk):
            raise ValueError("the chunk is shorter than that")
        cdef uint8_t *data = chunk
        return self.walk(data, at, end)
