"""The description of a protocol, and the settings of its entries.

Each protocol is one folder, whose module `plugin` defines one `Plugin`; `gateway.protocols` lists
all plugins. The other packages read all words of a protocol from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.wire.account import Action
from gateway.wire.address import Schemes
from gateway.wire.budget import Budget
from gateway.wire.contract import Entry
from gateway.wire.services import Services
from gateway.wire.subject import TopicName


class Mode(StrEnum):
    """Who authenticates clients, gateway or broker, and which credential the broker gets."""

    PASS_THROUGH = "pass-through"
    VERIFY = "verify"
    VERIFY_AND_FORWARD = "verify-and-forward"


FRAME_PADDING = 64 * 1024
"""Bytes of a frame beside its message, which the broker's `max_message_size` bounds."""


@dataclass(frozen=True, slots=True)
class FrameBounds:
    """Bounds of the frames of one connection, from the configuration.

    `collected`: bytes of a stop frame. `all_collected`: bytes of all stop frames of the process,
    and of one stop frame if the broker allows larger messages. `command`: bytes of a client's
    command without the message behind it, and of a broker's command that is read. `fields`: fields
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
        """Return how many bytes of a stop frame may be held in memory if the broker allows frames
        of `broker` bytes. One frame never gets more memory than all frames of the process may have
        together."""
        return max(self.collected, min(broker, self.all_collected))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySettings:
    """The settings of one listener's entry.

    `proxies`: principals of other gateways, which may act for their clients. `chained`: the brokers
    are another gateway, to which its own advertised names are passed back. `limited`: rules may
    limit clients. `unknown_pass`: commands unknown to this version pass. `checksums`: verify the
    checksums of messages. `hides_client_metrics`: brokers do not get the metrics of clients. `tls`:
    clients connect with TLS. `brokers_tls`: a broker's TLS address is preferred. `shows_passwords`:
    the gateway's own password may go to brokers without TLS. `version`: the version of the gateway
    that brokers get. `budget`: memory of all sessions of the process together.
    """

    services: Services
    mode: Mode = Mode.PASS_THROUGH
    proxies: frozenset[str] = frozenset()
    chained: bool = False
    limited: bool = False
    unknown_pass: bool = True
    checksums: bool = False
    hides_client_metrics: bool = False
    tls: bool = False
    brokers_tls: bool = False
    shows_passwords: bool = False
    version: str = "broker-gateway"
    bounds: FrameBounds = FrameBounds()
    budget: Budget = field(default_factory=Budget)


COMMON = frozenset(
    (
        *("listeners.name", "listeners.protocol", "listeners.bind", "listeners.cluster"),
        *("listeners.proxy_protocol", "listeners.tls", "listeners.identity"),
        *("listeners.each_address", "listeners.each_principal", "listeners.access"),
        *("listeners.unknown", "listeners.connection_age", "listeners.trace"),
        *("listeners.identity.mode", "listeners.identity.tls", "listeners.identity.anonymous"),
        *("listeners.identity.principals", "listeners.advertise.ports"),
        *("clusters.brokers", "clusters.proxy_protocol", "clusters.tls", "clusters.targets"),
        *("clusters.credential.token_file", "clusters.credential.oauth2"),
        *("clusters.credential.tls", "clusters.credential.basic"),
        *("clusters.credential.basic.username", "clusters.credential.basic.password_file"),
    )
)
"""Settings of listeners and clusters that every protocol has; the settings of a part, such as
`clusters.credential`, if the protocol has the part."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The description of one protocol.

    `name`: the value of `protocol` of its listeners. `schemes`: URL schemes of its brokers.
    `topic_schemes`: URL schemes that name topics, never hosts. `read_topic`: returns the parts of a
    topic's name; None: the text is not a name. `actions`: actions of clients that rules may limit.
    `settings`: settings of listeners and clusters that the protocol has beside `COMMON`; any other
    is refused if its value is not the default. `setting=value` is a value that not every protocol
    has. `instead`: texts for some refused settings: why the setting has no meaning in this
    protocol, and what to do instead. `under_tls`: methods of `identity` that are offered to clients
    under TLS alone. `masks`: unknown requests never pass, whatever `unknown` says, because peers
    agree on versions first, or because it is not known where such requests name brokers. `enter`:
    makes the entry of one listener; it imports the protocol's modules. `checks`: name of the module
    with the doctor's checks of its brokers (`gateway.doctor.checks`). `numbers_brokers`: brokers
    have ids, and clients reach each at an address of its own, which a listener advertises;
    otherwise by a name in the protocol. `groups_apart`: requests that name a consumer group, which
    rules call a subscription, name no topic, and those with topics no group; likewise those with a
    producer's transactional id.
    """

    name: str
    schemes: Schemes
    topic_schemes: tuple[str, ...]
    read_topic: Callable[[str], TopicName | None]
    actions: frozenset[Action]
    enter: Callable[[EntrySettings], Entry]
    checks: str
    settings: frozenset[str]
    instead: Mapping[str, str] = field(default_factory=dict)
    under_tls: tuple[str, ...] = ()
    masks: bool = False
    numbers_brokers: bool = False
    groups_apart: bool = False

    def why_not(self, setting: str) -> str:
        """Return why a setting has no meaning in this protocol, and what a user does instead."""
        return self.instead.get(setting, f"{self.name} has nothing of the kind; leave it out")
