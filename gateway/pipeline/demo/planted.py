"""What is planted into a made-up month, and the sums that are true of it.

Jobs never see this: tests and the demonstration hold their findings against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class What(StrEnum):
    """Kinds of planted facts. Those from `GAP` on are damage to files."""

    NOISY_NEIGHBOUR = "noisy_neighbour"  # one tenant grows tenfold, and others wait
    LAUNCH = "launch"  # one tenant grows for good, and nobody suffers
    SPRAYING = "spraying"  # one network tries many principals
    SHARED_CREDENTIAL = "shared_credential"  # one principal, many networks at once
    GUESSED = "guessed"  # many failures, and then it is in
    EXPIRED_STORM = "expired_storm"  # a mistake: all clients of a principal fail alike
    GROWTH = "growth"  # some percent each day, towards a limit
    LIMITED = "limited"  # rules hold a tenant back all month
    IDLE = "idle"  # a tenant that uses next to nothing
    RESTART = "restart"  # a gateway's process ends, and another begins
    GAP = "gap"  # a file is missing
    DUPLICATE = "duplicate"  # a file is there twice
    LATE = "late"  # a file is in the folder of a later day
    TORN = "torn"  # a file is cut
    HOSTILE = "hostile"  # a file has lines that are no records
    CLOCK_AHEAD = "clock_ahead"  # the records of a file have times of the future


@dataclass(frozen=True, slots=True)
class Fact:
    """One planted fact. Fields that mean nothing for its kind are empty.

    `start_ms`, `end_ms`: milliseconds since 1970, the end exclusive; of a file those of its
    records. `victims`: tenants that wait longer. `gateway`, `boot`: of the process. `file`,
    `other`: paths below the folder; `other` is the second place of a duplicate. `number`: failures,
    connections, lost or repeated records, lines, or milliseconds of a clock. `factor`: by which
    load grows (of growth: each day). `limit`: messages a second; `reached_ms`: when the highest
    load of a weekday, without noise, is expected to reach it.
    """

    what: What
    start_ms: int
    end_ms: int
    tenant: str | None = None
    victims: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    gateway: str | None = None
    boot: str | None = None
    file: str | None = None
    other: str | None = None
    number: int = 0
    factor: float = 1.0
    limit: float = 0.0
    reached_ms: int | None = None


class Used(NamedTuple):
    """What a tenant used: billed messages and bytes of `send` (in) and `deliver` (out), and the
    milliseconds for which connections of its principals were open."""

    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    open_ms: int = 0

    def plus(self, other: Used) -> Used:
        """Return the sums of both."""
        return Used(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Planted:
    """All that is known of a made-up month.

    `truth`: by tenant, of all records that can be read, each once. Records of connections name no
    tenant, so `owners` has the tenant of each principal. `missing`: usage records that cannot be
    read, by gateway and boot. `records`, `events`: those that can be read, each once.
    """

    facts: tuple[Fact, ...]
    truth: Mapping[str, Used]
    owners: Mapping[str, str]
    missing: Mapping[tuple[str, str], int]
    records: int
    events: int

    def of(self, what: What) -> tuple[Fact, ...]:
        """Return the facts of a kind, in the order of time."""
        return tuple(it for it in self.facts if it.what is what)
