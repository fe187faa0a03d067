"""Faults on request: what a broker does wrong, and until when.

Times are seconds since 1970, and arguments. That two clocks differ does not matter here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from struct import Struct

LONGEST = 3600.0
"""Seconds. Somebody who wants an hour and more means for ever, and can stop the sandbox."""

_SIZE = Struct(">I")
_LIE = 1 << 30
"""Bytes that a lie adds to the size of a frame: more than any peer believes."""


class Fault(StrEnum):
    """`FREEZE`: reads and writes nothing. `CUT`: all connections are closed, once. `DELAY`: each
    answer comes late. `REFUSE`: new connections are closed at once, and lookups are not ready.
    `LIE`: the next frame of each open connection claims a wrong size.
    """

    FREEZE = "freeze"
    CUT = "cut"
    DELAY = "delay"
    REFUSE = "refuse"
    LIE = "lie"


@dataclass(slots=True)
class Faults:
    """Those of one broker. `delay`: seconds; `lies`: how often a lie was asked for; `words`: by the
    kind of a command, the frame that answers it, whatever it asks.
    """

    frozen_until: float = 0.0
    refusing_until: float = 0.0
    delay: float = 0.0
    lies: int = 0
    words: dict[int, bytes] = field(default_factory=dict)

    def cause(self, fault: Fault, seconds: float, now: float) -> None:
        """From now on, for so many seconds; with 0 what was asked for is over."""
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
                pass  # of the moment: whoever has the connections closes them

    def is_refusing(self, now: float) -> bool:
        return now < self.refusing_until


def seconds_of(text: str) -> float:
    """A span of a fault. Raises `ValueError` with the reason."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"seconds={text} is not a number from 0 to {LONGEST:.0f}")
    return seconds


def lie(frame: bytes) -> bytes:
    """The frame with a size that is not its own."""
    (size,) = _SIZE.unpack_from(frame)
    return _SIZE.pack(size + _LIE) + frame[_SIZE.size :]
