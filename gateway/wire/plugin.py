"""What a protocol brings along, and what its entries are made of.

Each protocol is one folder, whose module `plugin` holds one `Plugin`; `gateway.protocols` lists
them. Everything else of the gateway reads a protocol's words from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.wire.account import Action
from gateway.wire.address import Schemes
from gateway.wire.budget import Budget
from gateway.wire.contract import Entry
from gateway.wire.services import Services
from gateway.wire.subject import TopicName


class Mode(StrEnum):
    """Who authenticates clients, and what the broker is told of them."""

    PASS_THROUGH = "pass-through"
    VERIFY = "verify"
    VERIFY_AND_FORWARD = "verify-and-forward"


@dataclass(frozen=True, slots=True)
class FrameBounds:
    """What one connection may send, and what of it is read; settings of the configuration.

    `collected`: bytes of a stop frame. `all_collected`: bytes of one where the broker allows larger
    messages; all connections together have no more for them. `command`: bytes of a client's
    command, without the message behind it, and of a broker's command that is read. `fields`: fields
    of a command that is decoded. `names`: characters of a name. `text`: characters of a broker's
    text that a client gets.
    """

    collected: int = 6 * 1024 * 1024
    all_collected: int = 32 * 1024 * 1024
    command: int = 1024 * 1024
    fields: int = 5_000
    names: int = 2048
    text: int = 4096

    def collected_from(self, broker: int) -> int:
        """Return the largest stop frame where the broker allows frames of so many bytes. Whatever
        it says, one frame gets no more memory than all together."""
        return max(self.collected, min(broker, self.all_collected))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySettings:
    """How the clients of one listener are served.

    `proxies`: principals that are gateways themselves; they are believed who their clients are.
    `chained`: the brokers are another gateway, which gets back the names that it gives.
    `limited`: rules may limit what clients do. `unknown_pass`: commands that this version does not
    know pass. `checksums`: verify those of messages. `version`: what brokers are told of the
    gateway. `budget`: what all sessions of the process may keep together.
    """

    services: Services
    mode: Mode = Mode.PASS_THROUGH
    proxies: frozenset[str] = frozenset()
    chained: bool = False
    limited: bool = False
    unknown_pass: bool = True
    checksums: bool = False
    version: str = "broker-gateway"
    bounds: FrameBounds = FrameBounds()
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Plugin:
    """One protocol.

    `name`: as `protocol` of a listener has it. `schemes`: of URLs that name its brokers.
    `topic_schemes`: texts like `scheme://...` that name topics, and never a host.
    `read_topic`: returns the parts of a topic's name, None where it is not one. `actions`: what
    its clients do, and rules may limit.
    `enter`: makes the entry of one listener; it loads what the protocol needs.
    `checks`: name of the module with the doctor's checks of its brokers (`gateway.doctor.checks`).
    """

    name: str
    schemes: Schemes
    topic_schemes: tuple[str, ...]
    read_topic: Callable[[str], TopicName | None]
    actions: frozenset[Action]
    enter: Callable[[EntrySettings], Entry]
    checks: str
