# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Checks that a command is canonical; see `frames`."""

from __future__ import annotations

_LONGEST_LENGTH = 5


def find_body(chunk: bytearray, command: int, end: int, command_end: int) -> int:
    """Return the offset in `chunk` at which the fields of a command begin, if the command is
    canonical. Return 0 if it is not canonical, and -1 if too few bytes have come to tell. The
    command's type has one byte.

    `command`, `command_end`: offsets at which the command begins and ends. `end`: offset up to
    which bytes have come.
    """
    data = chunk
    kind = data[command + 1]
    tag = kind << 3 | 2
    at = command + 2
    here = end
    short = -1
    if end >= command_end:
        here = command_end
        short = 0
    if at >= here:
        return short
    if tag > 127:
        if data[at] != (tag & 127 | 128):
            return 0
        at += 1
        if at >= here:
            return short
        tag >>= 7
    if data[at] != tag:
        return 0
    at += 1
    length = shift = 0
    for _ in range(_LONGEST_LENGTH):
        if at >= here:
            return short
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            return at if at + length == command_end else 0
        shift += 7
    return 0
