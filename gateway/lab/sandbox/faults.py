"""Faults on request: what a broker does wrong, and until when.

Times are arguments, in seconds since 1970. Differences between clocks do not matter here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from struct import Struct

LONGEST = 3600.0
"""Seconds. For a longer fault, stop the sandbox."""

_SIZE = Struct(">I")
_LIE = 1 << 30
"""Bytes that the LIE fault adds to the size of a frame: more than any peer accepts."""


class Fault(StrEnum):
    """What a broker does wrong. `FREEZE`: reads and writes nothing. `CUT`: closes all connections
    once. `DELAY`: delays each response. `REFUSE`: closes new connections at once and fails lookups
    with ServiceNotReady. `LIE`: the next frame of each open connection claims a wrong size."""

    FREEZE = "freeze"
    CUT = "cut"
    DELAY = "delay"
    REFUSE = "refuse"
    LIE = "lie"


@dataclass(slots=True)
class Faults:
    """The faults of one broker. `delay`: seconds; `lies`: number of requested LIE faults;
    `replies`: per kind of command, the frame that replies to all commands of that kind.
    """

    frozen_until: float = 0.0
    refusing_until: float = 0.0
    delay: float = 0.0
    lies: int = 0
    replies: dict[int, bytes] = field(default_factory=dict)

    def cause(self, fault: Fault, seconds: float, now: float) -> None:
        """Begin a fault that lasts for a number of seconds; 0 ends it."""
        match fault:
            case Fault.FREEZE:
                self.frozen_until = now + seconds
            case Fault.REFUSE:
                self.refusing_until = now + seconds
            case Fault.DELAY:
                self.delay = seconds
            case Fault.LIE:
                self.lies += 1
            case Fault.CUT:
                pass  # `RunningBroker.cut` closes the connections

    def is_refusing(self, now: float) -> bool:
        return now < self.refusing_until


def read_seconds(text: str) -> float:
    """Return the seconds that a parameter gives a fault. Raises `ValueError` with the reason."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"seconds={text} is not a number from 0 to {LONGEST:.0f}")
    return seconds


def falsify_size(frame: bytes) -> bytes:
    """Return a frame with a wrong size in its head."""
    (size,) = _SIZE.unpack_from(frame)
    return _SIZE.pack(size + _LIE) + frame[_SIZE.size :]
