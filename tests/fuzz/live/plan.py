"""What becomes of one connection: both peers read it, the broker by the client's version."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.wire.contract import Direction

from .streams import Arsenal, Stream


class End(Enum):
    """How a connection ends, or does not even begin."""

    CLIENT_CLOSES = auto()
    CLIENT_RESETS = auto()
    CLIENT_POISONS = auto()
    CLIENT_STOPS = auto()  # within a frame, and says no more
    BROKER_CLOSES = auto()
    BROKER_RESETS = auto()
    BROKER_POISONS = auto()
    BROKER_STOPS = auto()
    BROKER_IS_DEAF = auto()  # and then gone
    NO_CONNECT = auto()
    NO_CONNECTED = auto()


_WEIGHTS = {
    End.CLIENT_CLOSES: 12,
    End.BROKER_CLOSES: 8,
    End.CLIENT_RESETS: 3,
    End.BROKER_RESETS: 3,
    End.CLIENT_POISONS: 5,
    End.BROKER_POISONS: 5,
    End.BROKER_IS_DEAF: 1,
    End.CLIENT_STOPS: 1,
    End.BROKER_STOPS: 1,
    End.NO_CONNECT: 5,
    End.NO_CONNECTED: 5,
}
"""Those who stop cost the idle deadline."""


@dataclass(eq=False)
class Plan:
    """`times`: how often each side says its streams. `heard`: set when the stream of a direction
    has come through to its end. `through`: frames that came out of the gateway.
    """

    number: int
    end: End
    noise: random.Random
    streams: dict[Direction, Stream]
    poison: dict[Direction, bytes]
    times: int
    heard: dict[Direction, threading.Event] = field(
        default_factory=lambda: {direction: threading.Event() for direction in Direction}
    )
    through: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction, 0))
    said: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction, 0))

    @property
    def version(self) -> str:
        """What the client calls itself."""
        return f"plan {self.number}"


def drawn(seed: int, number: int, arsenals: dict[Direction, Arsenal], times: int) -> Plan:
    """The plan of one connection: the same for each seed and number."""
    noise = random.Random(f"{seed} {number}")
    (end,) = noise.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    return Plan(
        number,
        end,
        noise,
        {direction: noise.choice(of.streams) for direction, of in arsenals.items()},
        {direction: noise.choice(of.poison) for direction, of in arsenals.items()},
        1 + noise.randrange(times),
    )
