"""Plain counters: whoever does something adds one, and the metrics read them.

An increment of a slot costs 35 ns; a metrics library's own counter costs 600 to 1900.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gateway.wire.contract import EndReason
from gateway.wire.services import LookupOutcome
from gateway.wire.subject import TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator


def _no_ends() -> dict[EndReason, int]:
    return dict.fromkeys(EndReason, 0)


def _no_lookups() -> dict[LookupOutcome, int]:
    return dict.fromkeys(LookupOutcome, 0)


@dataclass(slots=True)
class ListenerFigures:
    """Connections of one listener: accepted and ended since the start, the others right now.

    `stopped`: it accepts no more, and those that are open drain. `accept_failures`: calls that
    should have brought a connection, and did not.
    """

    accepted: int = 0
    accept_failures: int = 0
    opening: int = 0
    open: int = 0
    stopped: bool = False
    ended: dict[EndReason, int] = field(default_factory=_no_ends)


@dataclass(slots=True)
class ClusterFigures:
    """Lookups of one cluster since the start, and migrations of topics out of it: told to clients,
    and withheld from them.
    """

    lookups: dict[LookupOutcome, int] = field(default_factory=_no_lookups)
    redirects: int = 0
    migrations: int = 0
    migrations_withheld: int = 0


@dataclass(slots=True)
class ReloadFigures:
    """Reloads of rules since the start, by outcome; `loaded_at`: when the last good one was, the
    start among them, in wall-clock seconds. `generation` is that of the rules in force.
    """

    loaded_at: float
    generation: int = 1
    loaded: int = 0
    refused: int = 0


@dataclass(slots=True)
class StoreFigures:
    """Of the store by which processes share limits. Since the start: `calls`, of which `failures`,
    how many limits were `asked` for in them, and how many of these were `refused` alone. Right now:
    `processes` that share, and whether it is `lost`.
    """

    calls: int = 0
    failures: int = 0
    asked: int = 0
    refused: int = 0
    processes: int = 0
    lost: bool = False


@dataclass(slots=True)
class LogFigures:
    """Lines of the log that were `dropped` since the start: too many waited, or nobody could be
    told.
    """

    dropped: int = 0


class CrewFigures(NamedTuple):
    """Processes that serve: `running` right now, and how often one was started in the place of one
    that had ended.
    """

    running: int
    restarts: int


class PlaneFigures(NamedTuple):
    """`buffered`: bytes that wait right now; of these `held` for allowance, and `collected` to
    become a whole frame. Beside them `remembered`: what sessions keep for as long as clients want.
    Since the start `turns`: of the reactor; `resets`: of producers whose frames waited too long.
    """

    buffered: int
    held: int
    collected: int
    remembered: int
    turns: int
    resets: int


class RuleFigures(NamedTuple):
    """What one rule does in one thing that it limits.

    Right now: `limits`, as it may have one for each tenant or topic, and producers `waiting`. Since
    the start: how often one had to wait, and `seconds` in all. Of a shadow `held` messages or bytes
    would have waited, and `seconds` are those in which some would. `refused`: requests; of a shadow
    those that would have been.
    """

    rule: str
    what: str
    mode: str
    limits: int = 0
    waiting: int = 0
    waits: int = 0
    seconds: float = 0.0
    held: float = 0.0
    refused: int = 0


class BrokerFailures(NamedTuple):
    """How often brokers of one cluster were not reached, for one cause."""

    cluster: str
    cause: str
    number: int


class BrokerHealth(NamedTuple):
    """What we think of one broker."""

    cluster: str
    broker: str
    healthy: bool


OTHER = TopicName("", "", "__other__")
"""Stands for all topics that a book has folded into one."""


class Totals(NamedTuple):
    """What passed one way on one topic. `open`: producers or consumers right now. `damaged`: frames
    whose checksum was wrong, where it is verified."""

    messages: int
    bytes: int
    frames: int
    receipts: int
    open: int
    damaged: int = 0


class TopicFigures(NamedTuple):
    """One topic: `produced` went to the broker, `consumed` to clients."""

    topic: TopicName
    produced: Totals
    consumed: Totals


class TopicBook(Protocol):
    """Where the figures of topics are; it may change while they are read. Those of one topic may
    come in parts, which add up."""

    def topics(self) -> Iterator[TopicFigures]: ...
