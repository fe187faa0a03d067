"""The shape of the configuration file: frozen values, their defaults and the reasons for them.

A value here was read by itself. What one field cannot know of another is in `checks`.
Durations are seconds, sizes are bytes. An `Address` to listen on with host "" is all addresses.
Files are located by the function that validation is given as context `{"locate": ...}`, so that
nothing here opens one; without it a path stays as it was written.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    model_validator,
)

from gateway import protocols
from gateway.config import store, units
from gateway.config.store import StoreAddress
from gateway.config.units import KIB, MIB, Network
from gateway.wire.address import Address

Number = TypeVar("Number", int, float)
Several = TypeVar("Several", tuple[Any, ...], Mapping[str, Any])

VERSIONS = (1,)

MOST_WORKERS = 64
"""Beyond it hosts are divided among gateways: all workers wake up for each new connection."""

SECRET_ALGORITHMS: tuple[str, ...] = ("HS256", "HS384", "HS512")
PUBLIC_KEY_ALGORITHMS: tuple[str, ...] = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
)
_ALGORITHMS = (*SECRET_ALGORITHMS, *PUBLIC_KEY_ALGORITHMS)


def _within(read: Callable[[object], Number], low: str | int, high: str | int) -> PlainValidator:
    """A value that `read` understands, between two bounds in the same notation."""

    def check(value: object) -> Number:
        number = read(value)
        if not read(low) <= number <= read(high):
            raise ValueError(f"is out of bounds; from {low} to {high}")
        return number

    return PlainValidator(check)


def _version(value: object) -> int:
    if isinstance(value, bool) or value not in VERSIONS:
        known = ", ".join(str(version) for version in VERSIONS)
        raise ValueError(f"is not a version that this gateway understands; {known}, without quotes")
    return units.whole(value)


def _workers(value: object) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_WORKERS:
        return value
    raise ValueError(f"is not a number of processes; 1 to {MOST_WORKERS} without quotes, or auto")


def _some(items: Several) -> Several:
    # Unlike `min_length`, this does not count entries that are there but wrong.
    if not items:
        raise ValueError("is empty; at least one")
    return items


def _different(items: tuple[Address, ...]) -> tuple[Address, ...]:
    if len(set(items)) < len(items):
        raise ValueError("has the same broker twice; each once")
    return items


def _locate(value: object, info: ValidationInfo) -> Path:
    locate: Callable[[str], Path] = (info.context or {}).get("locate", Path)
    return locate(units.text(value))


def _locate_folder(value: object, info: ValidationInfo) -> Path:
    locate: Callable[[str], Path] = (info.context or {}).get("locate_folder", Path)
    return locate(units.text(value))


def _algorithm(value: object) -> str:
    if value == "none":
        raise ValueError("would accept tokens that nobody signed; one of " + ", ".join(_ALGORITHMS))
    if value not in _ALGORITHMS:
        raise ValueError("is not an algorithm known here; one of " + ", ".join(_ALGORITHMS))
    return units.text(value)


def _usual_algorithms(token: dict[str, Any]) -> tuple[str, ...]:
    """What Pulsar's own brokers take where nothing is said."""
    return ("RS256",) if token.get("public_key_file") else ("HS256",)


# The examples are what a message about a missing key shows.
Name = Annotated[str, PlainValidator(units.name), Field(examples=["main"])]
Text = Annotated[str, PlainValidator(units.text)]
File = Annotated[Path, PlainValidator(_locate), Field(examples=["secrets/key"])]
FileOrFolder = Annotated[Path, PlainValidator(_locate_folder), Field(examples=["rules"])]
Bind = Annotated[Address, PlainValidator(units.bind), Field(examples=["127.0.0.1:6650"])]
Broker = Annotated[Address, PlainValidator(units.broker)]
HostPattern = Annotated[str, PlainValidator(units.host_pattern)]
# One text with commas, or a list: an environment variable can only be the former.
_ENTRIES = BeforeValidator(units.entries)
Networks = Annotated[tuple[Annotated[Network, PlainValidator(units.network)], ...], _ENTRIES]
Port = Annotated[int, PlainValidator(units.port)]
Algorithm = Annotated[str, PlainValidator(_algorithm)]
Version = Annotated[int, PlainValidator(_version), Field(examples=[1])]
NOT_EMPTY = AfterValidator(_some)


class Part(BaseModel):
    """Any part of the file: frozen, and without keys that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Token(Part):
    """How the JSON Web Tokens of clients are verified: by one secret or one public key."""

    secret_file: File | None = None
    public_key_file: File | None = None
    # Never from the token itself: it would choose the check that it passes.
    algorithms: Annotated[tuple[Algorithm, ...], _ENTRIES, AfterValidator(_some)] = Field(
        default_factory=_usual_algorithms
    )
    principal_claim: Text = "sub"
    audience: Text | None = None
    issuer: Text | None = None
    # Machines with synchronized clocks need none; an hour would keep dead tokens alive.
    clock_skew: Annotated[float, _within(units.seconds, 0, "10m")] = 0.0


class Identity(Part):
    """Who authenticates clients: the broker (pass-through), or the gateway."""

    # The plain sidecar: nothing changes for clients and brokers.
    mode: Literal["pass-through", "verify", "verify-and-forward"] = "pass-through"
    token: Token | None = None
    # Gateways before this one, by the names in their tokens: they are believed who a client is.
    trusted_proxies: Annotated[tuple[Text, ...], _ENTRIES] = ()


class Listener(Part):
    """One place where clients connect."""

    name: Name
    protocol: Annotated[str, PlainValidator(units.protocol)] = protocols.DEFAULT
    # Several where clients come by more than one address or port.
    bind: Annotated[
        tuple[Address, ...], PlainValidator(units.binds), Field(examples=["127.0.0.1:6650"])
    ]
    cluster: Name
    identity: Identity = Identity()
    # Newer clients and brokers go on working; an edge masks what it does not know.
    unknown: Literal["pass", "mask"] = "pass"
    # Brokers and consumers verify them anyway; here it tells on which side messages are damaged.
    checksums: Literal["pass", "verify"] = "pass"
    trace: Networks = ()


class Credential(Part):
    """Our own credential towards brokers.

    Used with the verify modes. Without one the gateway says nothing about itself, which only
    brokers without authentication accept.
    """

    token_file: File


class Targets(Part):
    """Where a client may be led to: a listed port of a listed host or network.

    Checked on the address that is dialled. `hosts` may hold `*` for any characters.
    """

    hosts: Annotated[tuple[HostPattern, ...], _ENTRIES] = ()
    networks: Networks = ()
    ports: Annotated[tuple[Port, ...], _ENTRIES, AfterValidator(_some), Field(examples=["[6650]"])]

    @model_validator(mode="after")
    def _reach_something(self) -> Self:
        if not self.hosts and not self.networks:
            raise ValueError("allow nothing; at least one of hosts or networks")
        return self


class SealingKey(Part):
    """One key of sealed names."""

    file: File


class Sealed(Part):
    """Brokers behind sealed names. The first key seals, all keys open.

    Without keys this process makes its own: good for one process until it ends. Replicas and
    restarts need a key in a file.
    """

    keys: tuple[SealingKey, ...] = ()


class Template(Part):
    """Brokers behind readable names; `{n}` is the broker's number in both."""

    advertise: Annotated[
        str, PlainValidator(units.host_template), Field(examples=["broker-{n}.example"])
    ]
    broker: Annotated[
        str, PlainValidator(units.broker_template), Field(examples=["pulsar-{n}.internal:6650"])
    ]


class Names(Part):
    """How brokers are named towards clients: one of the two."""

    sealed: Sealed | None = None
    template: Template | None = None


class Migration(Part):
    """Another cluster, to which topics of this one may migrate."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        Field(examples=["pulsar://blue.internal:6650"]),
    ]
    gateway: Annotated[Broker, Field(examples=["pulsar://blue-gateway.example:6650"])]


class Cluster(Part):
    """Brokers that know each other."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        AfterValidator(_different),
        Field(examples=["pulsar://127.0.0.1:16650"]),
    ]
    # Gateways: the names that they give are handed back to them, and never dialled.
    brokers_are: Literal["brokers", "gateways"] = "brokers"
    credential: Credential | None = None
    # None: the hosts and ports of `brokers`, and nothing else.
    targets: Targets | None = None
    names: Names = Names(sealed=Sealed())
    # Where migrations lead; of others clients are told nothing.
    migrations: tuple[Migration, ...] = ()


class Admin(Part):
    """Health and metrics over HTTP; broker addresses show there, so keep it private."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8080"])]
    # Probes, scrapers and people are a few dozen. Idle ones cost 8 KB each, and nobody has to end
    # for 2,000 of them; beyond, the one that has waited longest does.
    connections: Annotated[int, _within(units.whole, 64, 65_536)] = 2048
    # Enough for two Prometheus replicas. A scrape takes milliseconds of the data plane's time and
    # 40 bytes of memory for each topic; with workers, it holds the lines of all of them.
    scrapes: Annotated[int, _within(units.whole, 1, 32)] = 2


class Deadlines(Part):
    """How long we wait, in seconds."""

    # Pulsar clients give a connection 10 s themselves; later nobody listens.
    handshake: Annotated[float, _within(units.seconds, "100ms", "5m")] = 10.0
    # Half of the clients' patience, so that a second broker can still be tried.
    dial: Annotated[float, _within(units.seconds, "10ms", "1m")] = 5.0
    # Clients and brokers ping each other every 30 s: four in a row are missing.
    idle: Annotated[float, _within(units.seconds, "1s", "1h")] = 120.0
    # One of the two, while the other one speaks. Go clients, the most patient, wait as long.
    silent: Annotated[float, _within(units.seconds, "1s", "1h")] = 90.0
    # For what a peer could not take at once. Clients and brokers give each other 60 s for a word.
    stalled: Annotated[float, _within(units.seconds, "1s", "1h")] = 60.0
    # For a frame that must be held whole, from its first byte. Brokers end a connection that
    # answers no PING for 30 to 60 s, and an answer behind a slower frame would be as late.
    frame: Annotated[float, _within(units.seconds, "1s", "10m")] = 60.0
    # In the queue of a producer above its limit. Clients give up after 30 s, and send again.
    held: Annotated[float, _within(units.seconds, "1s", "10m")] = 20.0
    # Moving a client takes milliseconds, and waits 4 s for a broker that does not answer. Well
    # below the 30 s that Kubernetes waits before it kills.
    grace: Annotated[float, _within(units.seconds, 0, "10m")] = 20.0


class ResourceLimits(Part):
    """What bounds memory. Sizes are bytes."""

    # Two descriptors and up to 5 KB each when idle: 50 MB.
    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] = 10_000
    # Before somebody is known. Tokens are below 16 KiB; Kerberos tickets reach 64.
    handshake_frame: Annotated[int, _within(units.size, "1KiB", "5MiB")] = 64 * KIB
    # A broker's own bound is 5 MiB of payload; metadata come on top.
    collected_frame: Annotated[int, _within(units.size, "64KiB", "64MiB")] = 6 * MIB
    # Of a client, without the message behind it; of a broker, where it is read. The largest are
    # schemas: real ones have some kilobytes, and brokers keep them in memory.
    command: Annotated[int, _within(units.size, "16KiB", "16MiB")] = MIB
    # Of a command beyond 64 KiB that is decoded, at all levels. Counting 5,000 takes 2 ms; real
    # commands have some dozens, a schema with properties some hundred.
    fields: Annotated[int, _within(units.whole, 100, 100_000)] = 5_000
    # Characters of the name of a topic, subscription, producer or consumer. Brokers put topics
    # into paths of some hundred; patterns that Java clients look up as topics are longer.
    name: Annotated[int, _within(units.whole, 64, 65_536)] = 2_048
    # Characters of a broker's error text; longer ones are cut. Brokers' own words are hundreds, and
    # two names fit beside them; no client decides on stack traces. Clients make brokers say long
    # ones, and looking for addresses in 4,096 takes up to 2 ms.
    text: Annotated[int, _within(units.whole, 256, 65_536)] = 4_096
    # What waits for allowance. One producer has half of it at most, which is a client's thousand
    # messages on the way, of 32 KB each; who is above a limit stops nobody else.
    # None: a quarter of `buffered`, and half of `waiting` at most.
    held: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    # Frames that must be held whole and have not come yet. Apart from all else, so that nobody
    # else waits for them. None: an eighth of `buffered`, and one frame at least.
    collected: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    # The same before connections are open, for frames beyond 4 KiB. None: a sixteenth.
    handshakes: Annotated[int, _within(units.size, "1KiB", "16GiB")] | None = None
    # What sessions keep for as long as a client wants: its CONNECT, producers and consumers with
    # their names, unanswered lookups, frames whose time has not come. A producer takes 1.3 KB of
    # it: the half that one address may have is enough for 200,000.
    # None: twice as much as `buffered`.
    remembered: Annotated[int, _within(units.size, "64KiB", "64GiB")] | None = None
    # All bytes that wait for slow peers, decisions or allowance; beyond it reading stops.
    buffered: Annotated[int, _within(units.size, "1MiB", "64GiB")] = 256 * MIB

    @property
    def all_collected(self) -> int:
        """Bytes of all frames that must be held whole and have not come yet."""
        return self.collected or max(self.collected_frame, self.buffered // 8)

    @property
    def all_handshakes(self) -> int:
        """Bytes of all large frames before connections are open."""
        return self.handshakes or max(self.handshake_frame, self.buffered // 16)

    @property
    def all_remembered(self) -> int:
        """Bytes that all sessions keep for as long as clients want."""
        return self.remembered or 2 * self.buffered

    @property
    def deciding(self) -> int:
        """Bytes that deciding one frame takes: a copy of it, of its command, what that is decoded
        to, and what that is encoded to. One frame is decided at a time, and all that is freed
        before the next. `fields` bounds what decoding adds to a command's size."""
        return max(2 * self.collected_frame, self.collected_frame + 4 * self.command)

    @property
    def waiting(self) -> int:
        """Bytes of `buffered` that are left for what waits for slow peers and allowance."""
        return self.buffered - self.all_collected - self.all_handshakes - self.deciding

    @property
    def all_held(self) -> int:
        """Of these, bytes of what waits for allowance."""
        return self.held or min(self.buffered // 4, self.waiting // 2)

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if 4 * self.collected_frame > self.buffered:
            raise ValueError(
                "leave too little to others; buffered four times as much as collected_frame"
            )
        if self.all_collected < self.collected_frame:
            raise ValueError("allow more to one than to all; collected above collected_frame")
        if self.all_handshakes < self.handshake_frame:
            raise ValueError("allow more to one than to all; handshakes above handshake_frame")
        if self.waiting < self.buffered // 8:
            raise ValueError(
                "leave too little to others; collected and handshakes smaller, or buffered larger"
            )
        if self.all_held > self.waiting * 3 // 4:
            raise ValueError("leave too little to others; held smaller, or buffered larger")
        return self


class DataPlane(Part):
    """How the reactor works."""

    # Measured: 64 KiB 0.84, 256 KiB 1.3, 512 KiB 1.9 times HAProxy; little comes beyond.
    buffer: Annotated[int, _within(units.size, "64KiB", "4MiB")] = 512 * KIB
    # What everybody else in the process waits for at most.
    turn: Annotated[float, _within(units.seconds, "0.1ms", "100ms")] = 0.002
    # The kernel tunes its buffers to the way's length; a fixed size limits long ways.
    socket_buffer: Annotated[int, _within(units.size, "4KiB", "64MiB")] | None = None


class Store(Part):
    """A Redis or Valkey, by which replicas share limits."""

    url: Annotated[
        StoreAddress, PlainValidator(store.address), Field(examples=["redis://127.0.0.1:6379"])
    ]
    # Without a name and a password: whoever reaches the store may do all.
    username: Text | None = None
    password_file: File | None = None
    # None: the authorities that this machine trusts.
    ca_file: File | None = None
    # Other gateways may have the same store, and other limits by the same names.
    prefix: Annotated[str, PlainValidator(store.prefix)] = "gateway:"
    # A store nearby answers in less than 1 ms. What is reserved lasts for 100 ms: who has waited
    # for half of that does better without.
    timeout: Annotated[float, _within(units.seconds, "1ms", "5s")] = 0.05


class Log(Part):
    """What goes to standard error."""

    # `auto`: for people on a terminal, for machines elsewhere.
    format: Literal["json", "console", "auto"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    # Of one event in 10 s. What a busy gateway's clients do in ordinary operation, 100 a second, is
    # written whole; a flood costs 0.3 MB in 10 s.
    burst: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1000
    # Characters. Names and errors of real clients and brokers are below 300; peers choose some.
    longest_text: Annotated[int, _within(units.whole, 64, 65_536)] = 1024
    # What waits for whoever reads: ten seconds of a flood that is folded, some 250 bytes a line.
    queue: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 4 * MIB
    queue_lines: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000


class Configuration(Part):
    """The whole file."""

    version: Version
    listeners: Annotated[
        tuple[Listener, ...],
        AfterValidator(_some),
        Field(examples=["[{name: clients, bind: 127.0.0.1:6650, cluster: main}]"]),
    ]
    clusters: Annotated[
        Mapping[Name, Cluster],
        AfterValidator(_some),
        Field(examples=["{main: {brokers: pulsar://127.0.0.1:16650}}"]),
    ]
    admin: Admin | None = None
    # Processes. A second one takes memory, and a parent for both; pods are scaled by their number.
    workers: Annotated[int | Literal["auto"], PlainValidator(_workers)] = 1
    deadlines: Deadlines = Deadlines()
    limits: ResourceLimits = ResourceLimits()
    data_plane: DataPlane = DataPlane()
    log: Log = Log()
    # Without one each replica has limits of its own.
    store: Store | None = None
    # Without any nothing is limited.
    rules: Annotated[tuple[FileOrFolder, ...], _ENTRIES] = ()
