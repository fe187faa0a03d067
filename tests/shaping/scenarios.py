"""The measurable scenarios as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.clients.loads import Offer

LIMITED, FREE = "limited", "free"
"""Topics: the limit applies to those whose name begins with the first."""
LEAST_BURST = 0.1
"""Seconds of the rate that may pass at once, unless a rule says otherwise."""


class Way(StrEnum):
    """Which component limits, and what clients connect to."""

    GATEWAY = "gateway"
    BROKER = "broker"
    PROXY = "broker behind its proxy"


class Unit(StrEnum):
    MESSAGES = "messages"
    BYTES = "bytes"


@dataclass(frozen=True)
class Limit:
    """A limit of each topic. `action`: what is limited, as rules name it."""

    rate: float
    unit: Unit = Unit.MESSAGES
    action: str = "publish"

    def rule(self, topic: str = f"{LIMITED}*") -> dict[str, Any]:
        """Return the limit as a gateway's rule."""
        value = f"{self.rate:.0f}/s" if self.unit is Unit.MESSAGES else f"{self.rate:.0f}B/s"
        limit = {self.action: {self.unit.value: value}}
        return {"id": LIMITED, "match": {"topic": topic}, "limit": limit, "per": "topic"}

    @property
    def policy(self) -> Mapping[str, int]:
        """Return the limit as a namespace policy of a broker, which holds for each of its
        topics."""
        messages, size = (int(self.rate), -1)[:: 1 if self.unit is Unit.MESSAGES else -1]
        return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}

    def most(self, seconds: float, frame: float) -> float:
        """Return the most that may pass in this many seconds with frames of this size."""
        return self.rate * (seconds + LEAST_BURST) + 1 + frame


@dataclass(frozen=True)
class Flow:
    """The producers of one topic in each program; `rate`: each one's messages a second."""

    rate: float
    topic: str = LIMITED
    producers: int = 1


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    `programs`: how many run, each with all flows on a connection of its own. Passed messages are
    counted for `seconds`, from `warm_up` seconds after the last producer started. `deduplicated`:
    the broker drops repeats. `reads`: stored messages are read back. `curve`: offered and passed
    rates are recorded over time.
    """

    part: str
    name: str
    client: str
    limit: Limit
    flows: tuple[Flow, ...]
    way: Way = Way.GATEWAY
    offer: Offer = field(default_factory=Offer)
    programs: int = 1
    warm_up: float = 2.0
    seconds: float = 10.0
    deduplicated: bool = False
    reads: bool = True
    curve: bool = False
