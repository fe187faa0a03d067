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
    """What a broker does wrong. `FREEZE`: the broker reads and writes nothing. `CUT`: it closes all
    connections once. `DELAY`: it delays each response. `REFUSE`: it closes new connections at once
    and fails lookups with ServiceNotReady. `LIE`: the next frame of each open connection states a
    wrong size."""

    FREEZE = "freeze"
    CUT = "cut"
    DELAY = "delay"
    REFUSE = "refuse"
    LIE = "lie"


@dataclass(slots=True)
class Faults:
    """The faults of one broker at present. `delay`: seconds by which responses are delayed; `lies`:
    how many LIE faults were requested; `replies`: by kind of command, a frame with which the broker
    responds to each command of that kind."""

    frozen_until: float = 0.0
    refusing_until: float = 0.0
    delay: float = 0.0
    lies: int = 0
    replies: dict[int, bytes] = field(default_factory=dict)

    def cause(self, fault: Fault, seconds: float, now: float) -> None:
        """Begin a fault at the time `now`. `seconds`: how long `FREEZE` or `REFUSE` lasts, or by
        how much `DELAY` delays each response from now on; 0 ends these faults."""
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
    """Return the seconds in `text`, which is a parameter of a request. Raises `ValueError` if
    `text` is not a number from 0 to `LONGEST`."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"seconds={text} is not a number from 0 to {LONGEST:.0f}")
    return seconds


def falsify_size(frame: bytes) -> bytes:
    """Return a frame whose head states a wrong size, otherwise unchanged."""
    (size,) = _SIZE.unpack_from(frame)
    return _SIZE.pack(size + _LIE) + frame[_SIZE.size :]
