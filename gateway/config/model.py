"""The shape of the configuration file: frozen values, their defaults and the reasons for them.

Each value here is read by itself; `checks` has the checks that span several fields. Durations are
seconds, sizes are bytes. An `Address` to listen on with host "" means all addresses. Files are
located by a function in the validation context, `{"locate": ...}`, so that nothing here opens a
file; without it a path stays as written.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from gateway import protocols
from gateway.config import store, units
from gateway.config.expressions import compiled
from gateway.config.parts import (
    AfterValidator,
    BeforeValidator,
    Field,
    Part,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from gateway.config.store import StoreAddress
from gateway.config.units import KIB, MIB, Network
from gateway.wire.address import LAST_PORT, Address

Number = TypeVar("Number", int, float)
Several = TypeVar("Several", tuple[Any, ...], Mapping[str, Any])

VERSIONS = (1,)

HEADER_VERSION = 2
"""The version of the PROXY protocol that brokers are sent."""

MOST_WORKERS = 64
"""Larger hosts should run several gateways: all workers wake up for each new connection."""

SECRET_ALGORITHMS: tuple[str, ...] = ("HS256", "HS384", "HS512")
PUBLIC_KEY_ALGORITHMS: tuple[str, ...] = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),  # two names of one signature (RFC 8037, RFC 9864)
)
_ALGORITHMS = (*SECRET_ALGORITHMS, *PUBLIC_KEY_ALGORITHMS)


def _within(read: Callable[[object], Number], low: str | int, high: str | int) -> PlainValidator:
    """Return a validator for values that `read` understands, between two bounds in its notation."""

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


def _header_version(value: object) -> int:
    if isinstance(value, bool) or value != HEADER_VERSION:
        raise ValueError(f"is not a version that can be sent; {HEADER_VERSION}, without quotes")
    return HEADER_VERSION


def _workers(value: object) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_WORKERS:
        return value
    raise ValueError(f"is not a number of processes; 1 to {MOST_WORKERS} without quotes, or auto")


def _some(items: Several) -> Several:
    # Unlike `min_length`, this does not complain about entries that are present but wrong.
    if not items:
        raise ValueError("is empty; at least one")
    return items


def _different(items: tuple[Address, ...]) -> tuple[Address, ...]:
    if len(set(items)) < len(items):
        raise ValueError("has the same broker twice; list each once")
    return items


def _located(by: str) -> PlainValidator:
    def locate(value: object, info: ValidationInfo) -> Path:
        found: Path = (info.context or {}).get(by, Path)(units.text(value))
        return found

    return PlainValidator(locate)


def _algorithm(value: object) -> str:
    if value == "none":
        raise ValueError("would accept unsigned tokens; one of " + ", ".join(_ALGORITHMS))
    if value not in _ALGORITHMS:
        raise ValueError("is not a known algorithm; one of " + ", ".join(_ALGORITHMS))
    return units.text(value)


def _usual_algorithms(token: dict[str, Any]) -> tuple[str, ...]:
    """Return the algorithms that Pulsar's own brokers accept by default."""
    return ("HS256",) if token.get("secret_file") else ("RS256",)


# The message about a missing key shows the examples.
Name = Annotated[str, PlainValidator(units.name), Field(examples=["main"])]
Text = Annotated[str, PlainValidator(units.text)]
Flag = Annotated[bool, PlainValidator(units.flag), WithJsonSchema({"type": "boolean"})]
File = Annotated[Path, _located("locate"), Field(examples=["secrets/key"])]
FileOrFolder = Annotated[Path, _located("locate_folder"), Field(examples=["rules"])]
Bind = Annotated[Address, PlainValidator(units.bind), Field(examples=["127.0.0.1:6650"])]
Broker = Annotated[Address, PlainValidator(units.broker)]
HostPattern = Annotated[str, PlainValidator(units.host_pattern)]
# A text with commas, or a list: an environment variable can hold only the former.
_ENTRIES = BeforeValidator(units.entries)
Networks = Annotated[tuple[Annotated[Network, PlainValidator(units.network)], ...], _ENTRIES]
Port = Annotated[int, PlainValidator(units.port)]
Algorithm = Annotated[str, PlainValidator(_algorithm)]
Version = Annotated[int, PlainValidator(_version), Field(examples=[1])]
NOT_EMPTY = AfterValidator(_some)


class Method(Part):
    """How to verify clients that authenticate by one method, which a field of `Identity` names."""

    verified_by: ClassVar[str]
    """The module whose `make_verifier` takes these settings; it is loaded where it is needed."""

    shown_as: ClassVar[tuple[str, ...]] = ()
    """What clients call the method; empty: as its field is called."""


class Issuer(Part):
    """How to verify the JSON Web Tokens of one issuer: by a secret, a public key, or the set of
    keys that it publishes."""

    secret_file: File | None = None
    public_key_file: File | None = None
    # A JSON Web Key Set, from a file or from the issuer.
    jwks_file: File | None = None
    jwks_url: Annotated[str, PlainValidator(units.https)] | None = None
    # The set that the OpenID configuration below `issuer` names.
    discovery: Flag = False
    # Of the server of `jwks_url` or `issuer`. None: the authorities that this machine trusts.
    ca_file: File | None = None
    # Never taken from the token itself, which could choose a check that it passes.
    algorithms: Annotated[tuple[Algorithm, ...], _ENTRIES, AfterValidator(_some)] = Field(
        default_factory=_usual_algorithms
    )
    principal_claim: Text = "sub"
    audience: Text | None = None
    issuer: Text | None = None
    # Machines with synchronized clocks need none; an hour would accept expired tokens.
    clock_skew: Annotated[float, _within(units.seconds, 0, "10m")] = 0.0


KEYS = ("secret_file", "public_key_file", "jwks_file", "jwks_url", "discovery")
"""Settings of an issuer that say where its keys are."""

OF_ISSUERS = tuple(name for name in Issuer.model_fields if name not in KEYS)
"""The other settings of an issuer."""


class Token(Issuer, Method):
    """How to verify the JSON Web Tokens of clients: of one issuer, or of several."""

    verified_by = "gateway.verifiers.tokens"

    # Each verifies the tokens that name it in `iss`.
    issuers: tuple[Issuer, ...] = ()

    def all_issuers(self) -> tuple[Issuer, ...]:
        """Return the issuers, at least one."""
        own = any(getattr(self, name) for name in KEYS)
        return (*((self,) if own else ()), *self.issuers)


NameKind = Literal["spiffe", "uri", "dns", "email", "common_name", "subject"]


class Certificates(Method):
    """How to name clients by the TLS certificate that they show to the listener."""

    verified_by = "gateway.identity.certificates"

    # The first that a certificate has. Others than the SPIFFE ID may occur several times.
    names: Annotated[tuple[NameKind, ...], _ENTRIES, AfterValidator(_some)] = (
        "spiffe",
        "common_name",
    )


class Basic(Method):
    """How to verify names and passwords: by a file of bcrypt or argon2id hashes."""

    verified_by = "gateway.verifiers.passwords"

    htpasswd_file: File


class Scram(Method):
    """How to verify passwords that clients prove without showing them: by a file of keys."""

    verified_by = "gateway.verifiers.scram"

    credentials_file: File


class Signature(Method):
    """How to verify clients' signatures: by a file of their passwords."""

    verified_by = "gateway.verifiers.signatures"

    users_file: File
    # By how much a client's clock may differ. Who has read a signature on its way can repeat it for
    # as long; servers of TubeMQ take 20 seconds too.
    window: Annotated[float, _within(units.seconds, 1, "10m")] = 20.0


class Anonymous(Method):
    """Clients without a credential are let in, all under one name."""

    verified_by = "gateway.identity.anonymous"
    shown_as = ("", "none")

    principal: Text = "anonymous"


GROUP = re.compile(r"\{(\w+)\}")
"""What stands for a group of a match: `{1}`, or `{name}`."""


class PrincipalMapping(Part):
    """What becomes of names that match: `{1}` in `principal` is what the first group matched."""

    match: Annotated[str, PlainValidator(units.pattern), Field(examples=["(.*)@a.com"])]
    principal: Text

    @model_validator(mode="after")
    def _groups_exist(self) -> Self:
        match = compiled(self.match)
        numbers = {str(number) for number in range(match.groups + 1)}
        known = numbers | set(match.groupindex)
        unknown = [name for name in GROUP.findall(self.principal) if name not in known]
        if unknown:
            raise ValueError(f"names the group {unknown[0]}, which match does not have")
        return self


class Identity(Part):
    """Who authenticates clients: the broker (pass-through), or the gateway."""

    # The default suits a sidecar: nothing changes for clients and brokers.
    mode: Literal["pass-through", "verify", "verify-and-forward"] = "pass-through"
    token: Token | None = None
    tls: Certificates | None = None
    basic: Basic | None = None
    scram: Scram | None = None
    signature: Signature | None = None
    anonymous: Anonymous | None = None
    # None: names stay as they are. Otherwise the first that fits counts, and who fits none is
    # refused.
    principals: tuple[PrincipalMapping, ...] = ()
    # Gateways before this one, by the names in their tokens. They may state a client's principal.
    trusted_proxies: Annotated[tuple[Text, ...], _ENTRIES] = ()

    def methods(self) -> dict[str, Method]:
        """Return the methods that the gateway verifies, by name; none if the broker does."""
        if self.mode == "pass-through":
            return {}
        return {name: value for name, value in self if isinstance(value, Method)}


METHODS = tuple(
    name
    for name, field in Identity.model_fields.items()
    if any(isinstance(it, type) and issubclass(it, Method) for it in get_args(field.annotation))
)
"""The methods that the gateway can verify: fields of `Identity`."""


class Certificate(Part):
    """A certificate, with the chain of its authorities behind it, and its key; PEM files."""

    certificate_file: File
    key_file: File


class ListenerTls(Part):
    """How a listener speaks TLS. Clients of it connect by a URL with TLS."""

    # The first is for clients that name no server, or one that no certificate is for.
    certificates: Annotated[
        tuple[Certificate, ...],
        AfterValidator(_some),
        Field(examples=["[{certificate_file: tls.crt, key_file: tls.key}]"]),
    ]
    # Clients that are ten years old speak 1.2; older versions are broken (RFC 8996).
    minimum: Literal["1.2", "1.3"] = "1.2"
    client_certificates: Literal["none", "optional", "required"] = "none"
    # Who signs the certificates of clients. Never the machine's: these sign for everybody.
    client_ca_file: File | None = None
    crl_files: Annotated[tuple[File, ...], _ENTRIES] = ()


class ClusterTls(Part):
    """How the gateway speaks TLS to brokers, with those whose URL says so."""

    # None: the certificate authorities that this machine trusts.
    ca_file: File | None = None
    # Shown to brokers that ask for one.
    certificate: Certificate | None = None
    # Without it any broker that a trusted authority signed for could stand in for another.
    verify_host: Flag = True


class EachAddress(Part):
    """What one address may take of a listener; of IPv6, one /64. None: no bound, as all clients
    may come from one address, that of a balancer."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    # New connections for each second, two seconds of them at once.
    connects: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None


class EachPrincipal(Part):
    """What one principal may take of a listener. None: no bound."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None


class TrustedProxies(Part):
    """Proxies that say who their clients are, by a header of the PROXY protocol."""

    # Required of them, and read from nobody else: an address that anybody may state is worthless.
    from_: Annotated[
        Networks, AfterValidator(_some), Field(alias="from", examples=["[10.1.2.3, 10.1.2.4]"])
    ]


class ClientHeader(Part):
    """What brokers are told about clients, by a header of the PROXY protocol."""

    # Version 1 can say no more than addresses.
    version: Annotated[int, PlainValidator(_header_version), Field(examples=[2])]
    # As the gateway verified it.
    principal: Flag = False
    # None: as Pulsar's brokers want it, which look for it inside TLS; gateways look before it.
    inside_tls: Flag | None = None


class NodePorts(Part):
    """A port of the listener for each broker."""

    # By which clients reach the listener.
    host: Annotated[str, PlainValidator(units.host), Field(examples=["gateway.example"])]
    # Where clients begin. None: the port of `bind`.
    port: Port | None = None
    # The brokers' ids. Declare those of brokers that may be added too: the gateway binds all ports
    # when it starts. Append new ids at the end: the order of ids is the order of ports.
    ids: Annotated[tuple[int, ...], PlainValidator(units.ids), Field(examples=["0-2"])]
    # Of the first id. The others follow.
    first_port: Annotated[Port, Field(examples=[9093])]

    @model_validator(mode="after")
    def _ports_exist(self) -> Self:
        if self.first_port + len(self.ids) - 1 > LAST_PORT:
            raise ValueError("has more ids than ports; a lower first_port")
        return self

    @property
    def ports(self) -> tuple[int, ...]:
        """Return the ports of brokers, in the order of their ids."""
        return tuple(range(self.first_port, self.first_port + len(self.ids)))


class NodeNames(Part):
    """A TLS server name for each broker. All must lead clients to the listener."""

    # Where clients begin.
    host: Annotated[str, PlainValidator(units.host), Field(examples=["gateway.example"])]
    template: Annotated[
        str,
        PlainValidator(units.host_template),
        Field(examples=["broker-{n}.gateway.example"]),
    ]
    # None: the port of `bind`.
    port: Port | None = None


class Advertise(Part):
    """How clients reach each broker through the listener, for protocols whose brokers have ids: by
    one of the two."""

    ports: NodePorts | None = None
    names: NodeNames | None = None


class Listener(Part):
    """One address where clients connect."""

    name: Name
    protocol: Annotated[str, PlainValidator(units.protocol)] = protocols.DEFAULT
    # Several where clients come by more than one address or port.
    bind: Annotated[
        tuple[Address, ...], PlainValidator(units.binds), Field(examples=["127.0.0.1:6650"])
    ]
    cluster: Name
    # Needed by protocols whose brokers have ids, and by no other.
    advertise: Advertise | None = None
    # None: the address of a connection is its client's.
    proxy_protocol: TrustedProxies | None = None
    # None: clients speak without TLS.
    tls: ListenerTls | None = None
    identity: Identity = Identity()
    each_address: EachAddress = EachAddress()
    each_principal: EachPrincipal = EachPrincipal()
    # What clients may do that no rule decides. An edge lists what is allowed.
    access: Literal["open", "closed", "shadow", "opa"] = "open"
    # With `pass`, newer clients and brokers keep working; an edge masks unknown features.
    unknown: Literal["pass", "mask"] = "pass"
    # Brokers and consumers verify anyway; here it shows on which side messages are damaged.
    checksums: Literal["pass", "verify"] = "pass"
    # What clients of Kafka say of themselves to brokers that ask for it (KIP-714).
    client_metrics: Literal["pass", "hide"] = "pass"
    # After about as long clients are moved, so that gateways that were added get their share.
    # None: connections last as long as clients want.
    connection_age: Annotated[float, _within(units.seconds, "10s", "720h")] | None = None
    trace: Networks = ()

    @property
    def binds(self) -> tuple[Address, ...]:
        """Return all addresses to listen on: of `bind`, and with the ports of brokers."""
        ports = None if self.advertise is None else self.advertise.ports
        hosts = dict.fromkeys(it.host for it in self.bind)
        more = [Address(host, port) for port in (ports.ports if ports else ()) for host in hosts]
        return (*self.bind, *more)


class OAuth2(Part):
    """A token that an issuer gives the gateway for its client credentials, and renews in time."""

    # One of both: the token endpoint, or the issuer whose configuration names it.
    token_url: Annotated[str, PlainValidator(units.https)] | None = None
    issuer: Annotated[str, PlainValidator(units.https)] | None = None
    client_id: Text
    client_secret_file: File
    scope: Text | None = None
    audience: Text | None = None
    # Of the issuer's server. None: the authorities that this machine trusts.
    ca_file: File | None = None


class Password(Part):
    """The gateway's name and password."""

    username: Text
    password_file: File
    # Of Kafka alone, whose brokers may want the password itself. Anybody on the way can read it.
    without_tls: Flag = False


class EachPassword(Part):
    """Names and passwords by which brokers know each client."""

    passwords_file: File
    # As of `basic`.
    without_tls: Flag = False


class Credential(Part):
    """The gateway's own credential towards brokers, used in the verify modes.

    Without it the gateway does not authenticate itself, which only brokers without authentication
    accept.
    """

    token_file: File | None = None
    oauth2: OAuth2 | None = None
    basic: Password | None = None
    # By the certificate of the cluster's `tls`, which names the gateway to brokers.
    tls: Flag = False
    # For brokers that cannot be told who the client is: those of Kafka.
    each_principal: EachPassword | None = None


CREDENTIALS = ("token_file", "oauth2", "basic", "tls", "each_principal")
"""Settings that say what the gateway shows to brokers."""


class Targets(Part):
    """The brokers that clients may be led to: listed ports of listed hosts or networks.

    The address is checked when it is dialled. `hosts` may contain `*` for any characters.
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
    """One key for sealed names."""

    file: File


class Sealed(Part):
    """Brokers behind sealed names. The first key seals, all keys open.

    Without keys the process generates one, which works for a single process until it ends. Replicas
    and restarts need a key in a file.
    """

    keys: tuple[SealingKey, ...] = ()


class Template(Part):
    """Brokers behind readable names. `{n}` is the broker's number in both."""

    advertise: Annotated[
        str, PlainValidator(units.host_template), Field(examples=["broker-{n}.example"])
    ]
    broker: Annotated[
        str, PlainValidator(units.broker_template), Field(examples=["broker-{n}.internal:6650"])
    ]


class Names(Part):
    """How brokers are named towards clients: by one of the two."""

    sealed: Sealed | None = None
    template: Template | None = None


class Migration(Part):
    """Another cluster, to which topics of this cluster may migrate."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        Field(examples=[protocols.example("blue.internal")]),
    ]
    gateway: Annotated[Broker, Field(examples=[protocols.example("blue-gateway.example")])]


class Cluster(Part):
    """Brokers that know each other."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        AfterValidator(_different),
        Field(examples=[protocols.example("127.0.0.1:16650")]),
    ]
    # Names that `gateways` advertise are handed back to them, and never dialled.
    brokers_are: Literal["brokers", "gateways"] = "brokers"
    # None: brokers see the gateway's address alone.
    proxy_protocol: ClientHeader | None = None
    # None: TLS with its defaults if a broker's URL says so.
    tls: ClusterTls | None = None
    credential: Credential | None = None
    # None: the hosts and ports of `brokers`, and nothing else.
    targets: Targets | None = None
    names: Names = Names(sealed=Sealed())
    # Known targets of migrations; clients are not told about others.
    migrations: tuple[Migration, ...] = ()

    @property
    def header_is_inside_tls(self) -> bool:
        """Return whether a PROXY header to a broker with TLS comes behind the handshake."""
        header = self.proxy_protocol
        if header is None or header.inside_tls is None:
            return self.brokers_are == "brokers"
        return header.inside_tls

    @property
    def has_tls(self) -> bool:
        """Return whether the gateway speaks TLS to brokers."""
        return self.tls is not None or any(broker.tls for broker in self.brokers)


class Admin(Part):
    """Health and metrics over HTTP. They contain broker addresses, so keep the listener private."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8080"])]
    # Probes, scrapers and people need a few dozen; idle ones cost 8 KB each. Above the bound the
    # connection that has been idle longest is closed.
    connections: Annotated[int, _within(units.whole, 64, 65_536)] = 2048
    # Enough for two Prometheus replicas. A scrape takes milliseconds of the data plane's time and
    # 40 bytes of memory for each topic; with workers it holds the lines of all of them.
    scrapes: Annotated[int, _within(units.whole, 1, 32)] = 2


class Metrics(Part):
    """What metrics have figures of their own."""

    # Per cluster; others are counted together by tenant. Each takes 1 KB here and, in each scrape
    # of /metrics/topics, some 2 KB.
    topics: Annotated[int, _within(units.whole, 100, 1_000_000)] = 100_000
    # A topic without clients for so long loses its own figures, and counts as `__other__`. None: it
    # keeps them while there is room for `topics`.
    idle: Annotated[float, _within(units.seconds, "1m", "720h")] | None = None
    # folded: the partitions of a topic are one row.
    partitions: Literal["each", "folded"] = "each"


class ConsoleTls(Part):
    """How the console speaks TLS. With `client_ca_file` clients need a certificate of it."""

    certificate_file: File
    key_file: File
    client_ca_file: File | None = None


class Console(Part):
    """A page and an API for operators, who can also end the gateway there."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8090"])]
    # Needed where other machines reach it, unless they show certificates.
    token_file: File | None = None
    tls: ConsoleTls | None = None
    # Browsers open up to six each.
    connections: Annotated[int, _within(units.whole, 4, 1024)] = 64

    @property
    def is_public(self) -> bool:
        """Return whether other machines can reach it."""
        return not units.is_loopback(self.bind.host)

    @model_validator(mode="after")
    def _is_guarded(self) -> Self:
        shows_certificates = self.tls is not None and self.tls.client_ca_file is not None
        if self.is_public and self.token_file is None and not shows_certificates:
            raise ValueError(
                "is open to other machines; a token_file, or tls with client_ca_file, or a bind to "
                "127.0.0.1"
            )
        return self


class Deadlines(Part):
    """Timeouts, in seconds."""

    # Pulsar clients give up a connection attempt after 10 s.
    handshake: Annotated[float, _within(units.seconds, "100ms", "5m")] = 10.0
    # Half of the clients' timeout, so that a second broker can still be tried.
    dial: Annotated[float, _within(units.seconds, "10ms", "1m")] = 5.0
    # Clients and brokers ping each other every 30 s, so four pings in a row are missing.
    idle: Annotated[float, _within(units.seconds, "1s", "1h")] = 120.0
    # For one side while the other one sends. Go clients, the most patient ones, wait as long.
    silent: Annotated[float, _within(units.seconds, "1s", "1h")] = 90.0
    # For data that a peer does not read. Clients and brokers give each other 60 s to answer.
    stalled: Annotated[float, _within(units.seconds, "1s", "1h")] = 60.0
    # For a frame that must be held whole, from its first byte. Brokers close a connection that
    # answers no ping for 30 to 60 s, and an answer behind a slower frame would come as late.
    frame: Annotated[float, _within(units.seconds, "1s", "10m")] = 60.0
    # For a frame queued for a producer above its limit. Clients time out after 30 s and resend.
    held: Annotated[float, _within(units.seconds, "1s", "10m")] = 20.0
    # For draining. Moving a client takes milliseconds, and waits 4 s for a broker that does not
    # answer. Well below the 30 s after which Kubernetes kills.
    grace: Annotated[float, _within(units.seconds, 0, "10m")] = 20.0
    # For a client to show a newer credential once its own has expired. Brokers give a minute.
    expired: Annotated[float, _within(units.seconds, 0, "10m")] = 10.0


class ResourceLimits(Part):
    """Bounds of memory. Sizes are bytes."""

    # Each takes two descriptors, and up to 5 KB when idle: 50 MB in all.
    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] = 10_000
    # Those that are not authenticated, over all listeners of a process. Above it, the oldest that
    # waits for its client gives way. At 2,000 new ones a second each still has half a second.
    unauthenticated: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1_000
    # Before authentication. Tokens are below 16 KiB; Kerberos tickets reach 64.
    handshake_frame: Annotated[int, _within(units.size, "1KiB", "5MiB")] = 64 * KIB
    # Brokers allow 5 MiB of payload; metadata come on top.
    collected_frame: Annotated[int, _within(units.size, "64KiB", "64MiB")] = 6 * MIB
    # One command: of a client, without the message after it; of a broker, if it is decoded. Schemas
    # are the largest: real ones have some kilobytes, and brokers keep them in memory.
    command: Annotated[int, _within(units.size, "16KiB", "16MiB")] = MIB
    # Fields at all levels of a decoded command above 64 KiB. Counting 5,000 takes 2 ms; real
    # commands have some dozens, a schema with properties some hundred.
    fields: Annotated[int, _within(units.whole, 100, 100_000)] = 5_000
    # Characters of the name of a topic, subscription, producer or consumer. Brokers use topics in
    # paths of some hundred; patterns that Java clients look up as topics are longer.
    name: Annotated[int, _within(units.whole, 64, 65_536)] = 2_048
    # Characters of a broker's error text; longer texts are cut. Brokers' own texts have hundreds,
    # and two names fit beside them; no client decides by stack traces. Clients can provoke long
    # texts, and searching 4,096 characters for addresses takes up to 2 ms.
    text: Annotated[int, _within(units.whole, 256, 65_536)] = 4_096
    # Data that waits for allowance. One producer may have half of it, enough for the thousand
    # messages of 32 KB that a client has in flight; a producer above its limit stops nobody else.
    # None: a quarter of `buffered`, but at most half of `waiting`.
    held: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    # Incomplete frames that must be held whole. Counted separately, so that nothing else waits for
    # them. None: an eighth of `buffered`, but at least one frame.
    collected: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    # The same before connections are open, for frames above 4 KiB. None: a sixteenth.
    handshakes: Annotated[int, _within(units.size, "1KiB", "16GiB")] | None = None
    # State that sessions keep for as long as a client wants: its first frame, producers and
    # consumers with their names, unanswered lookups, delayed frames. A producer takes 1.3 KB: the
    # half that one address may have is enough for 200,000. None: twice as much as `buffered`.
    remembered: Annotated[int, _within(units.size, "64KiB", "64GiB")] | None = None
    # All bytes that wait for slow peers, decisions or allowance. Reading stops above it.
    buffered: Annotated[int, _within(units.size, "1MiB", "64GiB")] = 256 * MIB

    @property
    def all_collected(self) -> int:
        """Return the bytes for all frames that must be held whole and are still incomplete."""
        return self.collected or max(self.collected_frame, self.buffered // 8)

    @property
    def all_handshakes(self) -> int:
        """Return the bytes for all large frames before connections are open."""
        return self.handshakes or max(self.handshake_frame, self.buffered // 16)

    @property
    def all_remembered(self) -> int:
        """Return the bytes that all sessions keep for as long as clients want."""
        return self.remembered or 2 * self.buffered

    @property
    def deciding(self) -> int:
        """Return the bytes that deciding one frame takes: copies of the frame and of its command,
        the decoded command, and its new encoding.

        One frame is decided at a time, and all of that is freed before the next. `fields` bounds
        what decoding adds to a command's size.
        """
        return max(2 * self.collected_frame, self.collected_frame + 4 * self.command)

    @property
    def waiting(self) -> int:
        """Return the bytes of `buffered` left for data waiting for slow peers or allowance."""
        return self.buffered - self.all_collected - self.all_handshakes - self.deciding

    @property
    def all_held(self) -> int:
        """Return the bytes of `waiting` for data that waits for allowance."""
        return self.held or min(self.buffered // 4, self.waiting // 2)

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if 4 * self.collected_frame > self.buffered:
            raise ValueError(
                "leave too little memory for the rest; make buffered at least four times "
                "collected_frame"
            )
        if self.all_collected < self.collected_frame:
            raise ValueError(
                "allow more for one frame than for all; raise collected to collected_frame"
            )
        if self.all_handshakes < self.handshake_frame:
            raise ValueError(
                "allow more for one frame than for all; raise handshakes to handshake_frame"
            )
        if self.waiting < self.buffered // 8:
            raise ValueError(
                "leave too little memory for the rest; lower collected and handshakes, or "
                "raise buffered"
            )
        if self.all_held > self.waiting * 3 // 4:
            raise ValueError("leave too little memory for the rest; lower held, or raise buffered")
        return self


class DataPlane(Part):
    """Settings of the reactor."""

    # Measured throughput: 64 KiB 0.84, 256 KiB 1.3, 512 KiB 1.9 times HAProxy; more gains little.
    buffer: Annotated[int, _within(units.size, "64KiB", "4MiB")] = 512 * KIB
    # The longest that other tasks of the process wait for the reactor.
    turn: Annotated[float, _within(units.seconds, "0.1ms", "100ms")] = 0.002
    # The kernel tunes its buffers to the round-trip time; a fixed size slows long-distance peers.
    socket_buffer: Annotated[int, _within(units.size, "4KiB", "64MiB")] | None = None


class Store(Part):
    """A Redis or Valkey through which replicas share limits."""

    url: Annotated[
        StoreAddress, PlainValidator(store.address), Field(examples=["redis://127.0.0.1:6379"])
    ]
    # Without user name and password anybody who reaches the store can change limits.
    username: Text | None = None
    password_file: File | None = None
    # None: the certificate authorities that this machine trusts.
    ca_file: File | None = None
    # Other gateways may use the same store, with different limits of the same names.
    prefix: Annotated[str, PlainValidator(store.prefix)] = "gateway:"
    # A nearby store answers in less than 1 ms. A reservation lasts 100 ms: after half of that,
    # continuing locally is better.
    timeout: Annotated[float, _within(units.seconds, "1ms", "5s")] = 0.05


class Log(Part):
    """Logging to standard error."""

    # `auto`: console on a terminal, json elsewhere.
    format: Literal["json", "console", "auto"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    # Lines of one event in 10 s. The ordinary events of a busy gateway, 100 a second, are all
    # written; a flood costs 0.3 MB in 10 s.
    burst: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1000
    # Characters. Names and errors of real clients and brokers are below 300; peers choose some of
    # them.
    longest_text: Annotated[int, _within(units.whole, 64, 65_536)] = 1024
    # Bytes that wait to be written: ten seconds of a folded flood, at some 250 bytes a line.
    queue: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 4 * MIB
    queue_lines: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    # `pseudonymous`: another name for each principal, the same as long as the process runs.
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"


class Audit(Part):
    """A line for each connection that ended and each right that was denied."""

    file: Annotated[Path, _located("locate_new")] | None = None
    # Used if no file is named.
    stream: Literal["stdout", "stderr"] = "stdout"


class UsageTopic(Part):
    """Topics that get the records of closed files too; see docs/usage.md."""

    # Whose brokers, TLS and credential are used.
    cluster: Name
    records: Annotated[Text, Field(examples=["persistent://ops/usage/records"])]
    # None: events stay in files.
    events: Text | None = None


class Usage(Part):
    """Records of who used what, in files; see docs/usage.md."""

    # The gateway makes this folder if it is missing. Several replicas may use the same one.
    folder: Annotated[Path, _located("locate_new_folder"), Field(examples=["usage"])]
    # The name of this gateway in files and records; each replica needs its own. None: the host's.
    gateway: Name | None = None
    # Of one record. Bills need minutes, recommendations of limits seconds.
    interval: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    # A file is closed, and so can be read, after so long or at this size.
    close_after: Annotated[float, _within(units.seconds, "1s", "24h")] = 60.0
    close_size: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 64 << 20
    # Of closed files of each kind; the oldest are dropped. A busy gateway writes 100 MB a day.
    disk: Annotated[int, _within(units.size, "1MiB", "1024GiB")] = 1 << 30
    # Of records that wait for a slow disk, some 100,000.
    waiting: Annotated[int, _within(units.size, "1MiB", "1GiB")] = 64 << 20
    events: Flag = True
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"
    # With pseudonymous: replicas with the same key give a principal the same name.
    pseudonym_key_file: File | None = None
    clients: Literal["network", "address", "masked"] = "network"
    # Whether records of what was used name Kafka's client ids: each makes records of its own.
    client_ids: Flag = False
    # None: records stay in files.
    topic: UsageTopic | None = None

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if (self.principals == "pseudonymous") != (self.pseudonym_key_file is not None):
            raise ValueError(
                "has pseudonyms or their key alone; both principals: pseudonymous and "
                "pseudonym_key_file, or neither"
            )
        return self


class Otlp(Part):
    """Spans and log lines for an OpenTelemetry collector, by OTLP over HTTP."""

    # /v1/traces and /v1/logs are appended.
    url: Annotated[str, PlainValidator(units.http), Field(examples=["http://127.0.0.1:4318"])]
    # Of the server at that URL. None: the authorities that this machine trusts.
    ca_file: File | None = None
    # A bearer token, read for each request.
    token_file: File | None = None
    # Of connects, lookups and chases, those that have spans.
    share: Annotated[float, _within(units.fraction, 0.0, 1.0)] = 1.0
    # Whether log lines are sent too, beside being written.
    logs: Flag = False
    # Spans that wait for the collector, and as many lines; some 1 KB each.
    queue: Annotated[int, _within(units.whole, 100, 100_000)] = 2048
    # Of one request; the process waits so long for the collector when it ends.
    deadline: Annotated[float, _within(units.seconds, "100ms", "30s")] = 3.0

    @model_validator(mode="after")
    def _keeps_token(self) -> Self:
        if self.token_file is not None and not units.is_secure(self.url):
            raise ValueError(
                "would show its token on the network; a url with https, or of this machine"
            )
        return self


class PolicyAgent(Part):
    """Open Policy Agent, which decides what no rule does on listeners with `access: opa`."""

    # Of the rule that decides, in its Data API.
    url: Annotated[
        str,
        PlainValidator(units.https),
        Field(examples=["http://127.0.0.1:8181/v1/data/gateway/allow"]),
    ]
    # Of its server. None: the authorities that this machine trusts.
    ca_file: File | None = None
    # A bearer token, read for each question.
    token_file: File | None = None
    # Of one answer. Clients wait 10 s or more for what they open.
    deadline: Annotated[float, _within(units.seconds, "10ms", "5s")] = 1.0
    # How long an answer is known: a reconnecting client asks the same questions again.
    lasting: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    # Answers that are known, of some 500 bytes each.
    known: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    # Questions under way; one principal may have a quarter of them.
    at_once: Annotated[int, _within(units.whole, 1, 1000)] = 16
    # What takes the place of its answer while it gives none.
    while_away: Literal["deny", "allow"] = "deny"


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
        Field(examples=[f"{{main: {{brokers: {protocols.example('127.0.0.1:16650')}}}}}"]),
    ]
    admin: Admin | None = None
    metrics: Metrics = Metrics()
    # None: no console.
    console: Console | None = None
    # Processes. More of them need memory and a parent; in Kubernetes, scale the number of pods.
    workers: Annotated[int | Literal["auto"], PlainValidator(_workers)] = 1
    deadlines: Deadlines = Deadlines()
    limits: ResourceLimits = ResourceLimits()
    data_plane: DataPlane = DataPlane()
    log: Log = Log()
    # None: nothing is written.
    audit: Audit | None = None
    # None: no records.
    usage: Usage | None = None
    # None: nothing is sent.
    otlp: Otlp | None = None
    # Without a store each replica has its own limits.
    store: Store | None = None
    # None: rules and listeners decide alone.
    opa: PolicyAgent | None = None
    # Without rules nothing is limited.
    rules: Annotated[tuple[FileOrFolder, ...], _ENTRIES] = ()

    def protocol_of(self, cluster: str) -> str:
        """Return the protocol of a cluster, which all its listeners share."""
        found = (it.protocol for it in self.listeners if it.cluster == cluster)
        return next(found, protocols.DEFAULT)
