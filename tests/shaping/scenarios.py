"""What can be measured, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.clients.loads import Offer

LIMITED, FREE = "limited", "free"
"""Topics: the limit is for those whose name begins with the first."""
LEAST_BURST = 0.1
"""Seconds of the rate that may pass at once, where a rule does not say it."""


class Way(StrEnum):
    """Who limits, and what clients go through."""

    GATEWAY = "gateway"
    BROKER = "broker"
    PROXY = "broker behind its proxy"


class Unit(StrEnum):
    MESSAGES = "messages"
    BYTES = "bytes"


@dataclass(frozen=True)
class Limit:
    """Of each topic. `action`: what is limited, as rules name it."""

    rate: float
    unit: Unit = Unit.MESSAGES
    action: str = "publish"

    def rule(self, topic: str = f"{LIMITED}*") -> dict[str, Any]:
        """As a gateway is told it."""
        value = f"{self.rate:.0f}/s" if self.unit is Unit.MESSAGES else f"{self.rate:.0f}B/s"
        limit = {self.action: {self.unit.value: value}}
        return {"id": LIMITED, "match": {"topic": topic}, "limit": limit, "per": "topic"}

    @property
    def policy(self) -> Mapping[str, int]:
        """As a broker is told it, for a namespace: it holds for each of its topics."""
        messages, size = (int(self.rate), -1)[:: 1 if self.unit is Unit.MESSAGES else -1]
        return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}

    def most(self, seconds: float, frame: float) -> float:
        """What may pass in so many seconds at most, where a frame holds so much."""
        return self.rate * (seconds + LEAST_BURST) + 1 + frame


@dataclass(frozen=True)
class Flow:
    """Producers of one topic, in each program; `rate`: what each of them offers a second."""

    rate: float
    topic: str = LIMITED
    producers: int = 1


@dataclass(frozen=True)
class Scenario:
    """`programs`: how many run, each with all flows on a connection of its own. What passes is
    counted for `seconds`, from `warm_up` seconds after the last producer began. `deduplicated`: the
    broker drops what it has already. `reads`: what was stored is read back. `curve`: what was
    offered and passed is kept over time.
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
