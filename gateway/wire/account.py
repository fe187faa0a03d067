"""The account of what a client was admitted to: what passed, and how much more may pass."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from gateway.wire.subject import NOBODY, Subject


class Action(StrEnum):
    """What a client may be admitted to do."""

    PRODUCE = "produce"
    CONSUME = "consume"
    LOOKUP = "lookup"
    CONNECT = "connect"


ENDLESS = 1 << 62
"""A ceiling that no counter reaches: at 10 GB/s a byte counter needs 14 years."""


class Patience(NamedTuple):
    """What of an account may wait, before more of it is refused rather than held."""

    messages: float
    bytes: float


class Account:
    """Counters and allowance of one open producer or consumer, `subject`.

    Counters only grow. The *allowance* is what lies between a counter and its ceiling:
    a frame may pass while both allowances are above zero, so a limit is exact to one frame, and
    a frame larger than what is left passes and leaves debt. A lease raises the ceilings, holding
    puts them at the counters, and an account that nothing limits has ceilings it never reaches.

    `messages` counts what batches hold, `surplus` those beyond the first of each frame.
    `queued`: bytes that wait for allowance. `damaged`: frames whose checksum was wrong, where it is
    verified. Counts are written by the scanner, ceilings by policy,
    `queued` by the plane; telemetry reads them.
    `generation` is that of the rules which admitted it. `patience`: None where nothing is refused.
    """

    __slots__ = (
        "action",
        "bytes",
        "bytes_ceiling",
        "damaged",
        "generation",
        "messages",
        "messages_ceiling",
        "patience",
        "queued",
        "receipts",
        "subject",
        "surplus",
    )

    def __init__(self, action: Action, subject: Subject = NOBODY, generation: int = 0) -> None:
        self.subject = subject
        self.action = action
        self.generation = generation
        self.messages = self.surplus = self.bytes = self.receipts = self.queued = 0
        self.damaged = 0
        self.messages_ceiling = self.bytes_ceiling = ENDLESS
        self.patience: Patience | None = None

    @property
    def topic(self) -> str:
        """The name under which this topic is counted; empty without a topic."""
        topic = self.subject.topic
        return "" if topic is None else topic.name

    @property
    def frames(self) -> int:
        """How many frames passed. Derived, so that the scan of single messages has one sum less."""
        return self.messages - self.surplus

    @property
    def held(self) -> bool:
        """No allowance is left."""
        return self.messages >= self.messages_ceiling or self.bytes >= self.bytes_ceiling

    @property
    def is_endless(self) -> bool:
        """Nothing limits it."""
        return self.messages_ceiling == self.bytes_ceiling == ENDLESS

    @property
    def is_waiting(self) -> bool:
        """Frames of it wait, and none of them may pass now."""
        return self.held and self.queued > 0

    @property
    def outstanding(self) -> int:
        """Frames that passed to the broker and have no receipt yet."""
        return self.frames - self.receipts

    def count(self, messages: int) -> None:
        """Count one frame of so many messages."""
        self.messages += messages
        self.surplus += messages - 1

    def hold(self) -> None:
        """Take the whole allowance away. Debt stays."""
        self.messages_ceiling = min(self.messages_ceiling, self.messages)
        self.bytes_ceiling = min(self.bytes_ceiling, self.bytes)

    def grant(self, messages: int = ENDLESS, size: int = ENDLESS) -> None:
        """Allow this much more. Debt stays: the ceilings rise from where they are."""
        self.messages_ceiling = _raised(self.messages_ceiling, messages)
        self.bytes_ceiling = _raised(self.bytes_ceiling, size)


def _raised(ceiling: int, by: int) -> int:
    return min(ENDLESS, ceiling + by)
