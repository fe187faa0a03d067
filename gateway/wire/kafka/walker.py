# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Walks over the body of a frame by a program, and stops at each wanted field.

A program is a sequence of instructions, each an operation and `_ARGUMENTS` numbers; `walk` makes
programs from schemas. Nothing is kept of a field that is stepped over, so a walk takes the same
memory whatever the size of the body, and its caller may leave it between two fields, or within a
long array, and go on later.

All lengths come from a peer, and none is trusted; see `walk`.
"""

from __future__ import annotations

from struct import Struct
from typing import cast

from gateway.errors import PeerError
from gateway.wire import octets

END = -1
"""The walk is over."""

PAUSED = -2
"""The walk has taken as many steps as it may take at once, and goes on at the next call."""

TAGGED = -3
"""A tagged field begins which contains wanted fields: `walker.start` is the offset of its stated
size, `walker.end` that of its content, and `walker.until` that of the byte behind it."""

AT_ONCE = 1000
"""Steps between two pauses. A step over a few fields takes 0.1 to 0.3 µs, and 2 to 5 µs if this
module is not compiled."""

_AT_ONCE = AT_ONCE
_END = END
_PAUSED = PAUSED
_TAGGED = TAGGED

# -- operations, with their arguments ------------------------------------------------------------

OVER = 0
"""Step over `a` bytes."""
TEXT = 1
"""Step over a length of `a` bytes (0: a compact one), and over as many bytes as it states. `b`: the
least length, -1 if null is allowed."""
RUN = 2
"""Step over an array of numbers of `c` bytes each. `a`, `b`: as for `TEXT`."""
LOOP = 3
"""Begin an array whose elements have at least `c` bytes. `a`, `b`: as for `TEXT`. `d`: where the
program goes on behind the array. `e`: the label of its length, -1 without."""
NEXT = 4
"""End an element of an array."""
MARK = 5
"""A wanted field begins."""
WANTED = 6
"""The wanted field with the label `a` ends. `b`: 1 if it is wanted only if it is not zero."""
OPTIONAL = 7
"""Step over the byte that says whether a struct is there. `d`: where the program goes on if not."""
TAGS = 8
"""Begin the tagged fields of a struct. `d`: where the program goes on behind them."""
TAG = 9
"""Read the next tagged field. `d`: as for `TAGS`. Behind it is a `KNOWN` for each known field."""
KNOWN = 10
"""The tagged field with the number `a` is read at `d`. `b`: 1 if it contains wanted fields."""
UNTAG = 11
"""End the content of a tagged field. `d`: its `TAG`."""
STOP = 12
"""End the walk."""

_OVER = OVER
_TEXT = TEXT
_RUN = RUN
_LOOP = LOOP
_NEXT = NEXT
_MARK = MARK
_WANTED = WANTED
_OPTIONAL = OPTIONAL
_TAGS = TAGS
_TAG = TAG
_KNOWN = KNOWN
_UNTAG = UNTAG
_STOP = STOP

INSTRUCTION = Struct(">6i")
"""An operation, and its arguments `a` to `e`."""

_SIZE = INSTRUCTION.size
_A = 4
_B = 8
_C = 12
_D = 16
_E = 20

_LONGEST_COMPACT = 5  # bytes
_HIGHEST_COMPACT = (1 << 32) - 1


class Walker:
    """One walk. `start`, `end`: the field that `advance` has found is `frame[start:end]`. `until`:
    see `TAGGED`. `count`: the length of the array whose length was found, -1 for null. `at`: the
    offset of the next byte."""

    __slots__ = (
        "_code",
        "_edge",
        "_frame",
        "_left",
        "_length",
        "_loop",
        "_marks",
        "_pause",
        "_pc",
        "_remain",
        "_stack",
        "_tags",
        "at",
        "count",
        "end",
        "start",
        "until",
    )

    def __init__(self, code: bytes, frame: bytes | bytearray, at: int, end: int, most: int) -> None:
        """`code`: the program. `frame[at:end]`: the body. `most`: the most elements and tagged
        fields that the body may have."""
        self._code = cast("bytearray", code)  # which is only read, as `octets` does
        self._frame = cast("bytearray", frame)
        self._edge = end  # of the body, or of the tagged field that is read
        self._pc = 0
        self._remain = 0  # elements of the array that is read, this one included
        self._loop = 0  # where the program of its elements begins
        self._tags = 0  # of the struct that is read, those that follow
        self._length = 0  # the last one
        self._left = most
        self._pause = _AT_ONCE
        self._stack: list[int] = []  # the outer arrays' and structs' values of these
        self._marks: list[int] = []
        self.at = at
        self.start = self.end = self.until = self.count = 0

    def advance(self) -> int:  # noqa: C901 - flat, because a call costs a field
        """Go on to the next wanted field and return its label, or else `END`, `PAUSED` or `TAGGED`.
        Raises `PeerError` if the body is truncated or malformed, or has too many fields."""
        code, data = self._code, self._frame
        pc, at = self._pc, self.at
        while True:
            op = octets.i32(code, pc)
            if op == _OVER:
                at += octets.i32(code, pc + _A)
                if at > self._edge:
                    raise PeerError("a frame that is torn")
            elif op <= _LOOP:
                begin = at
                at = self._read_length(
                    data, at, octets.i32(code, pc + _A), octets.i32(code, pc + _B)
                )
                count = self._length
                size = 1 if op == _TEXT else octets.i32(code, pc + _C)
                if count > (self._edge - at) // size:
                    raise PeerError(f"a length of {count} in a frame that is too short for it")
                if op == _LOOP:
                    label = octets.i32(code, pc + _E)
                    pc = self._begin_array(pc, octets.i32(code, pc + _D), count)
                    if label >= 0:
                        self.start, self.end, self.count = begin, at, count
                        self._pc, self.at = pc, at
                        return label
                    continue
                if count > 0:
                    at += count * size
            elif op == _NEXT:
                self._remain -= 1
                if self._remain > 0:
                    pc = self._loop
                    if self._take_step():
                        self._pc, self.at = pc, at
                        return _PAUSED
                    continue
                self._loop = self._stack.pop()
                self._remain = self._stack.pop()
            elif op == _MARK:
                self._marks.append(at)
            elif op == _WANTED:
                self.start = self._marks.pop()
                if not octets.i32(code, pc + _B) or self._any(data, self.start, at):
                    self.end = at
                    self._pc, self.at = pc + _SIZE, at
                    return octets.i32(code, pc + _A)
            elif op == _STOP:
                self._pc, self.at = pc, at
                return _END
            else:
                self.at = at
                pc = self._read_optional(data, pc, op)
                at = self.at
                if pc < 0:
                    self._pc = -pc
                    return _TAGGED
                continue
            pc += _SIZE

    def _read_length(self, data: bytearray, at: int, size: int, least: int) -> int:
        """Read a length, and return the offset behind it. A null has the length -1."""
        if size:
            if size > self._edge - at:
                raise PeerError("a length that is torn")
            length = octets.i16(data, at) if size == 2 else octets.i32(data, at)
            at += size
        else:
            number, behind = octets.varint(data, at, self._edge)
            if behind <= 0 or behind - at > _LONGEST_COMPACT or number > _HIGHEST_COMPACT:
                raise PeerError("a length that does not end")
            length = number - 1
            at = behind
        if length < least:
            raise PeerError(f"a length of {length}")
        self._length = length
        return at

    def _begin_array(self, pc: int, behind: int, count: int) -> int:
        """Return where the program goes on at the begin of an array."""
        if count <= 0:
            return behind
        self._stack.append(self._remain)
        self._stack.append(self._loop)
        self._remain = count
        self._loop = pc + _SIZE
        self._left -= 1
        if self._left < 0:
            raise PeerError("a frame of too many fields")
        return self._loop

    def _take_step(self) -> bool:
        """Count a step, and return whether it is time for a pause."""
        self._left -= 1
        if self._left < 0:
            raise PeerError("a frame of too many fields")
        self._pause -= 1
        if self._pause:
            return False
        self._pause = _AT_ONCE
        return True

    def _any(self, data: bytearray, at: int, end: int) -> bool:
        """Return whether any byte of a field is not zero."""
        while at < end:
            if data[at]:
                return True
            at += 1
        return False

    def _read_optional(self, data: bytearray, pc: int, op: int) -> int:
        """Carry out an operation of optional structs and tagged fields. Return where the program
        goes on; negative if it does so behind a stop at a tagged field."""
        code = self._code
        if op == _OPTIONAL:
            if self.at >= self._edge:
                raise PeerError("a frame that is torn")
            self.at += 1
            # A signed byte: below zero stands for null.
            return pc + _SIZE if data[self.at - 1] < 128 else octets.i32(code, pc + _D)
        if op == _TAGS:
            self.at = self._read_length(data, self.at, 0, -1)
            if self._length < 0:
                return octets.i32(code, pc + _D)
            self._stack.append(self._tags)
            self._tags = self._length + 1
            return pc + _SIZE
        if op == _TAG:
            return self._read_tag(data, pc)
        if self.at != self._edge:  # of `UNTAG`
            raise PeerError("a tagged field of another size than it states")
        self._edge = self._stack.pop()
        return octets.i32(code, pc + _D)

    def _read_tag(self, data: bytearray, pc: int) -> int:
        """Read the head of a tagged field; see `_read_optional`."""
        code = self._code
        if not self._tags:
            self._tags = self._stack.pop()
            return octets.i32(code, pc + _D)
        self._tags -= 1
        self._take_step()
        self.at = self._read_length(data, self.at, 0, -1)
        tag, start = self._length + 1, self.at
        self.at = self._read_length(data, start, 0, -1)
        until = self.at + self._length + 1
        if until > self._edge:
            raise PeerError("a tagged field that is torn")
        known = pc + _SIZE
        while octets.i32(code, known) == _KNOWN:
            if octets.i32(code, known + _A) == tag:
                self._stack.append(self._edge)
                self._edge = until
                behind = octets.i32(code, known + _D)
                if not octets.i32(code, known + _B):
                    return behind
                self.start, self.end, self.until = start, self.at, until
                return -behind
            known += _SIZE
        self.at = until
        return pc
