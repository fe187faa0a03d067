"""Who lives in a made-up month: tenants, their topics, their clients, and how much each sends.

The load of tenants, and of the topics of one, falls as by Zipf: the n-th has 1/n of the first. One
topic of the first tenant has about as much as all others together. Tenants of two listeners use two
clusters, so what one cluster suffers, the other does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gateway.errors import ConfigurationError
from gateway.pipeline.demo.dice import dice

if TYPE_CHECKING:
    from random import Random

NAMES = (
    *("harbor", "orchard", "lantern", "meadow", "quarry", "foundry", "bakery", "saddle"),
    *("willow", "copper", "anchor", "thimble", "granite", "clover", "bellows", "timber"),
    *("pebble", "juniper", "kettle", "mosaic"),
)
"""Companies that do not exist. The order is that of their load."""

FEWEST_TENANTS = 4
"""So that one can be noisy, one suffer, one be limited, and one idle."""

GATEWAYS = ("edge-1", "edge-2")

LISTENERS = {"clients": "main", "partners": "west"}
"""Names of listeners, and the cluster of each."""

PROTOCOL = "pulsar"

_NAMESPACES = ("web", "shop", "ops")
_TOPICS = ("orders", "clicks", "payments", "mails", "stock", "audit", "prices", "devices")
_ROLES = ("app", "billing", "search", "archive", "reports", "sync")
_SUBSCRIPTIONS = ("warehouse", "search", "archive")
_LIBRARIES = ("Pulsar-Java-v4.0.4", "Pulsar-CPP-v3.7.0", "Pulsar-Go-0.15.0")
"""As clients in Java, Python and Go state them."""

_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
"""All networks of IPv4 that are set aside for documentation (RFC 5737). Tenants share them, as
behind a provider's NAT."""

_BASE = 400.0
"""Messages a second, on average, of all topics but the busy one, before anybody grows."""

_BUSY = 470.0
"""The same of the busy topic: what all others have over a month, as some of them grow."""

STORM_CLIENTS = 200
"""Connections whose token expires at the same minute."""


def network(number: int) -> str:
    """Return a network of IPv6, of those that are set aside for documentation (RFC 3849)."""
    return f"2001:db8:{number:x}::/48"


class Client(NamedTuple):
    """Where some connections of a principal come from, and where they go."""

    gw: str
    listener: str
    principal: str
    method: str
    network: str
    library: str

    @property
    def cluster(self) -> str:
        return LISTENERS[self.listener]


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes of each hour in which a topic is used."""

    first: int = 0
    minutes: int = 60

    def overlap_ms(self, start_ms: int, dur_ms: int) -> int:
        """Return for how long the window is open in an interval that stays in one hour."""
        begin = start_ms % 3_600_000
        first, last = self.first * 60_000, (self.first + self.minutes) * 60_000
        return max(0, min(begin + dur_ms, last) - max(begin, first))


@dataclass(frozen=True, slots=True)
class Topic:
    """`rate`: messages a second, on average over a day. `size`: bytes of a message. `batch`:
    messages of an entry. `senders`: with the share of each."""

    tenant: str
    namespace: str
    name: str
    rate: float
    size: int
    batch: int
    window: Window
    senders: tuple[tuple[Client, float], ...]
    receivers: tuple[tuple[str, Client], ...]


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections of one client that are open at a time."""

    tenant: str
    client: Client
    number: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """`peak`: hour of the day (UTC) of the highest load. `swing`: by which it differs from the
    mean. `weekend`: factor of Saturdays and Sundays. `connections`: those to be open all month.
    `fleet`: a principal whose many clients only hold connections; None: it has none."""

    name: str
    listener: str
    peak: float
    swing: float
    weekend: float
    topics: tuple[Topic, ...]
    connections: tuple[Connections, ...]
    fleet: str | None = None

    @property
    def rate(self) -> float:
        """Return the messages a second that it sends, on average over a day without noise."""
        return sum(it.rate for it in self.topics)


class Roles(NamedTuple):
    """Ranks of the tenants to which something happens."""

    limited: int
    growing: int
    noisy: tuple[int, int]
    launching: int
    shared: int
    guessed: int
    storm: int
    idle: int


def roles_of(tenants: int) -> Roles:
    """Return who is who. Where there are few tenants, one has several roles that agree."""
    if tenants < FEWEST_TENANTS or tenants > len(NAMES):
        raise ConfigurationError(
            f"tenants: {tenants} cannot be; give {FEWEST_TENANTS} to {len(NAMES)}"
        )
    if tenants < 10:
        return Roles(2, 0, (1, 1), 1, 0, 1, 0, tenants - 1)
    return Roles(1, 2, (3, 5), 4, 6, 7, 8, tenants - 1)


def cast_of(seed: int, tenants: int) -> tuple[Tenant, ...]:
    """Return all tenants, that of the highest load first. Raises `ConfigurationError` if their
    number cannot be."""
    roles = roles_of(tenants)
    weights = [1.0 / (rank + 1) for rank in range(tenants - 1)]
    found = [
        _tenant(rank, _BASE * weight / sum(weights), roles, dice(seed, f"tenant {rank}"))
        for rank, weight in enumerate(weights)
    ]
    return (*found, _idle(NAMES[roles.idle]))


def listener_of(rank: int) -> str:
    """Return the listener that a tenant uses: each third one is a partner."""
    return "partners" if rank % 3 == 2 else "clients"


def _tenant(rank: int, rate: float, roles: Roles, rng: Random) -> Tenant:
    name, listener = NAMES[rank], listener_of(rank)
    clients = _clients(rank, rng)
    number = 7 if rank == 0 else min(rng.randint(1, 8), rng.randint(1, 8))
    shares = [1.0 / (it + 1) for it in range(number)]
    begin = 1 if rank == 0 else 0
    topics = [
        _topic(name, it, rate * share / sum(shares), clients, rng)
        for it, share in enumerate(shares, begin)
    ]
    if rank == 0:
        topics.insert(0, _busy(name, clients))
    connections = [Connections(name, it, rng.randint(1, 8)) for it in clients]
    fleet = f"{name}-fleet" if rank == roles.storm else None
    if fleet:
        connections += _fleet(fleet, name, clients)
    peak, swing, weekend = rng.uniform(9, 17), rng.uniform(0.3, 0.7), rng.uniform(0.4, 0.9)
    return Tenant(
        name, listener, peak, swing, weekend, tuple(topics), tuple(connections), fleet=fleet
    )


def _clients(rank: int, rng: Random) -> list[Client]:
    """Return one to six principals. Each has its network and gateway; those of the largest tenant
    have two of both."""
    name, listener = NAMES[rank], listener_of(rank)
    networks = (rng.choice(_NETWORKS), network(0x100 + rank))
    method = "tls" if listener == "partners" else rng.choice(("token", "basic"))
    home = rank % len(GATEWAYS)
    number = 2 if rank == 0 else min(rng.randint(1, 6), rng.randint(1, 6))
    found = []
    for at, role in enumerate(_ROLES[:number]):
        client = Client(
            GATEWAYS[home],
            listener,
            f"{name}-{role}",
            method,
            networks[at % 2],
            rng.choice(_LIBRARIES),
        )
        found.append(client)
        if rank == 0:
            found.append(client._replace(gw=GATEWAYS[1 - home], network=networks[1 - at % 2]))
    return found


def _topic(tenant: str, number: int, rate: float, clients: list[Client], rng: Random) -> Topic:
    namespace = f"{tenant}/{_NAMESPACES[number % 3]}"
    minutes = rng.choice((5, 10, 20))
    window = Window(5 * rng.randrange(12 - minutes // 5), minutes) if number else Window()
    subscriptions = _SUBSCRIPTIONS[: min(rng.randint(1, 3), rng.randint(1, 3))]
    return Topic(
        tenant,
        namespace,
        f"persistent://{namespace}/{_TOPICS[number]}",
        rate,
        size=rng.choice((200, 500, 1_000, 2_000, 8_000)),
        batch=rng.choice((1, 10, 50, 100)),
        window=window,
        senders=((rng.choice(clients), 1.0),),
        receivers=tuple((it, rng.choice(clients)) for it in subscriptions),
    )


def _busy(tenant: str, clients: list[Client]) -> Topic:
    """Return the topic with half of all traffic, which clients of both gateways use."""
    first, second = clients[0], next(it for it in clients if it.gw != clients[0].gw)
    return Topic(
        tenant,
        f"{tenant}/{_NAMESPACES[0]}",
        f"persistent://{tenant}/{_NAMESPACES[0]}/{_TOPICS[0]}",
        _BUSY,
        size=1_000,
        batch=50,
        window=Window(),
        senders=((first, 0.6), (second, 0.4)),
        receivers=(("warehouse", first), ("search", second)),
    )


def _fleet(principal: str, tenant: str, clients: list[Client]) -> list[Connections]:
    """Return many clients of one principal in two networks."""
    usual = clients[0]._replace(principal=principal, method="token", library=_LIBRARIES[0])
    half = STORM_CLIENTS // 2
    networks = usual.network, network(0x900)
    return [Connections(tenant, usual._replace(network=it), half) for it in networks]


def _idle(name: str) -> Tenant:
    """Return a tenant that sends some messages a day, and holds one connection."""
    client = Client(GATEWAYS[0], "clients", f"{name}-app", "token", network(0x1FF), _LIBRARIES[1])
    return Tenant(name, "clients", 12.0, 0.0, 1.0, (), (Connections(name, client, 1),))
