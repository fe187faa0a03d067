"""The shape of the configuration file: frozen values, their defaults and the reasons for them.

Each value here is read by itself; `checks` has the checks that span several fields. Durations are
seconds, sizes are bytes. An `Address` to listen on with host "" means all addresses. Files are
located by a function in the validation context, `{"locate": ...}`, so that nothing here opens a
file; without it a path stays as written.

The docstring below a setting is also its meaning in docs/configuration.md: run `make metrics` after
a change. A page that a docstring names becomes a link there.
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
    """How to verify the JSON Web Tokens of one issuer. Set exactly one of the first five
    settings."""

    secret_file: File | None = None
    """The shared secret: at least 32 raw bytes, or `data:;base64,...`."""
    public_key_file: File | None = None
    """PEM or DER: RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519."""
    jwks_file: File | None = None
    """A JSON Web Key Set, read again every 10 s."""
    jwks_url: Annotated[str, PlainValidator(units.https)] | None = None
    """The key set that the issuer publishes (docs/configuration.md#keys-of-issuers)."""
    discovery: Flag = False
    """Whether to use the key set that the OpenID configuration below the URL `issuer` names."""
    ca_file: File | None = None
    """Authorities (PEM) for the server of `jwks_url` or `issuer`, in place of the machine's."""
    algorithms: Annotated[tuple[Algorithm, ...], _ENTRIES, AfterValidator(_some)] = Field(
        default_factory=_usual_algorithms
    )
    """Accepted signature algorithms, whatever a token names. With a secret: `HS256` (the default
    then), `HS384`, `HS512`. With public keys: `RS`, `PS` or `ES` with `256`, `384` or `512`;
    `EdDSA`, `Ed25519`."""
    principal_claim: Text = "sub"
    """The claim that has the client's name; of a list, the first entry counts. Names beyond 2,048
    characters or with control characters are refused."""
    audience: Text | None = None
    """What the token's `aud` must be, or contain."""
    issuer: Text | None = None
    """What the token's `iss` must be."""
    clock_skew: Annotated[float, _within(units.seconds, 0, "10m")] = 0.0
    """Grace after `exp` and before `nbf`. Synchronized clocks need none."""


KEYS = ("secret_file", "public_key_file", "jwks_file", "jwks_url", "discovery")
"""Settings of an issuer that say where its keys are."""

OF_ISSUERS = tuple(name for name in Issuer.model_fields if name not in KEYS)
"""The settings of an issuer that are not in `KEYS`."""


class Token(Issuer, Method):
    """How to verify JSON Web Tokens. Set exactly one of the first five settings, because a public
    key must never serve as a secret; or set `issuers`, or both."""

    verified_by = "gateway.verifiers.tokens"

    issuers: tuple[Issuer, ...] = ()
    """Further issuers. A token is verified by the entry whose `issuer` is the token's `iss`, or
    else by the entry without `issuer`."""

    def all_issuers(self) -> tuple[Issuer, ...]:
        """Return `self`, if it has keys, and `issuers`."""
        own = any(getattr(self, name) for name in KEYS)
        return (*((self,) if own else ()), *self.issuers)


NameKind = Literal["spiffe", "uri", "dns", "email", "common_name", "subject"]


class Certificates(Method):
    """TLS certificates."""

    verified_by = "gateway.identity.certificates"

    names: Annotated[tuple[NameKind, ...], _ENTRIES, AfterValidator(_some)] = (
        "spiffe",
        "common_name",
    )
    """The client's name is the first of these names that its certificate has. `subject`: the whole
    subject, in the form of RFC 4514."""


class Basic(Method):
    """Names and passwords."""

    verified_by = "gateway.verifiers.passwords"

    htpasswd_file: File
    """Lines of `name:hash`; hashes are bcrypt of cost 10 or more, or argon2id. Read again when it
    changes."""


class Scram(Method):
    """Passwords that clients prove without showing them."""

    verified_by = "gateway.verifiers.scram"

    credentials_file: File
    """Lines of `name:mechanism:iterations:salt:stored key:server key`. Read again when it
    changes."""


class Signature(Method):
    """Signatures by passwords."""

    verified_by = "gateway.verifiers.signatures"

    users_file: File
    """Lines of `name:password`. Only passwords themselves verify signatures, so let only the
    gateway's user read the file. Read again when it changes."""
    window: Annotated[float, _within(units.seconds, 1, "10m")] = 20.0
    """By how much a client's clock may differ from the gateway's. A captured signature can be
    replayed for as long. TubeMQ's servers take 20 s too."""


class Anonymous(Method):
    """Clients without a credential are admitted under one name."""

    verified_by = "gateway.identity.anonymous"
    shown_as = ("", "none")

    principal: Text = "anonymous"
    """The name of all clients without a credential."""


GROUP = re.compile(r"\{(\w+)\}")
"""What stands for a group of a match: `{1}`, or `{name}`."""


class PrincipalMapping(Part):
    """Other names for principals."""

    match: Annotated[str, PlainValidator(units.pattern), Field(examples=["(.*)@a.com"])]
    """The expression that a whole name must match."""
    principal: Text
    """The principal in place of the name: `{1}` or `{name}` is a group of `match`, `{0}` the whole
    name."""

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
    """Who authenticates clients, and how."""

    mode: Literal["pass-through", "verify", "verify-and-forward"] = "pass-through"
    """`pass-through`: the broker authenticates clients, as without a gateway. `verify`: the gateway
    authenticates clients, by the methods below, and tells the broker the principal.
    `verify-and-forward`: the gateway also sends the broker the client's token."""
    token: Token | None = None
    """JSON Web Tokens: docs/configuration.md#tokens-of-clients."""
    tls: Certificates | None = None
    """TLS certificates: docs/configuration.md#certificates-of-clients."""
    basic: Basic | None = None
    """Names and passwords: docs/configuration.md#passwords-of-clients. For Kafka (PLAIN) the
    listener needs `tls`."""
    scram: Scram | None = None
    """Passwords that clients prove without showing them
    (docs/configuration.md#passwords-that-are-not-shown). Only Kafka."""
    signature: Signature | None = None
    """Signatures by passwords (docs/protocols/tubemq.md). Only TubeMQ."""
    anonymous: Anonymous | None = None
    """Clients without a credential are admitted under one name."""
    principals: tuple[PrincipalMapping, ...] = ()
    """Other names for principals: docs/configuration.md#names-of-principals. The first matching
    entry counts; a name without a match is refused."""
    trusted_proxies: Annotated[tuple[Text, ...], _ENTRIES] = ()
    """Principals of gateways that may speak for their clients:
    docs/configuration.md#a-gateway-before-another. Only Pulsar, in a verifying mode, without
    `anonymous`."""

    def methods(self) -> dict[str, Method]:
        """Return the methods by which the gateway verifies clients, by name; empty if only the
        broker verifies them."""
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
    """A certificate and its key."""

    certificate_file: File
    """PEM: the certificate, followed by those of intermediate authorities."""
    key_file: File
    """PEM: its private key, without a password."""


class ListenerTls(Part):
    """TLS with clients."""

    certificates: Annotated[
        tuple[Certificate, ...],
        AfterValidator(_some),
        Field(examples=["[{certificate_file: tls.crt, key_file: tls.key}]"]),
    ]
    """A client gets the certificate for the server name (SNI) that it sends, else the first one."""
    minimum: Literal["1.2", "1.3"] = "1.2"
    """The oldest TLS version. Clients of ten years ago speak 1.2."""
    client_certificates: Literal["none", "optional", "required"] = "none"
    """Whether clients must show a certificate. `optional` admits clients without one."""
    client_ca_file: File | None = None
    """Authorities (PEM) that sign clients' certificates, required with `optional` and `required`.
    The machine's authorities never count: they sign for everybody."""
    crl_files: Annotated[tuple[File, ...], _ENTRIES] = ()
    """Lists of revoked certificates (PEM), one of each authority. If lists are given, clients of an
    authority whose list is missing or outdated are refused."""


class ClusterTls(Part):
    """TLS to brokers."""

    ca_file: File | None = None
    """Authorities (PEM) for brokers, in place of the machine's."""
    certificate: Certificate | None = None
    """The gateway's certificate for brokers that ask for one."""
    verify_host: Flag = True
    """Whether a broker's certificate must name the host that is dialled. Otherwise any certificate
    of a trusted authority will do."""


class Connects(Part):
    """How often one client address (of IPv6: one /64) may connect. Unbounded by default, as all
    clients may come from a balancer's address."""

    connects: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """Most new connections of an address per second; after a pause, as many as two seconds allow
    may come at once. Further ones are closed before TLS (`too_many_connects`)."""


class EachAddress(Connects):
    """What one client address (of IPv6: one /64) may take of a listener. Unbounded by default, as
    all clients may come from a balancer's address."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """Most authenticated connections of an address; connections before authentication count for
    `limits.unauthenticated`."""


class EachPrincipal(Part):
    """What one principal may take of a listener."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """Most connections of a principal; one more gets TooManyRequests and is closed. A client opens
    one to each broker, and one for lookups."""


class TrustedProxies(Part):
    """Proxies that say who their clients are."""

    from_: Annotated[
        Networks, AfterValidator(_some), Field(alias="from", examples=["[10.1.2.3, 10.1.2.4]"])
    ]
    """Connections from these networks must begin with a PROXY header, version 1 or 2; other
    connections must not."""


class ClientHeader(Part):
    """What brokers are told about clients."""

    version: Annotated[int, PlainValidator(_header_version), Field(examples=[2])]
    """The header's version."""
    principal: Flag = False
    """Whether the header has the verified principal, as type 0xE0."""
    inside_tls: Flag | None = None
    """Whether the header comes inside TLS, as Pulsar's brokers want it, or before TLS, as balancers
    want it. Default: inside TLS for brokers, before TLS for gateways."""


class NodePorts(Part):
    """A port for each broker."""

    host: Annotated[str, PlainValidator(units.host), Field(examples=["gateway.example"])]
    """The host that clients are told for each broker."""
    port: Port | None = None
    """The bootstrap port of clients, which they are also told for brokers that have no port.
    Default: the first port of `bind`; a balancer may have another."""
    ids: Annotated[tuple[int, ...], PlainValidator(units.ids), Field(examples=["0-2"])]
    """The brokers' ids: `node.id` of Kafka, `brokerId` of TubeMQ. Their ports are bound at the
    start, in this order: list future brokers too, and put new ids last."""
    first_port: Annotated[Port, Field(examples=[9093])]
    """The port of the first id; each further id has the next port. Each port is bound on all hosts
    of `bind`."""

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
    """A TLS server name for each broker."""

    host: Annotated[str, PlainValidator(units.host), Field(examples=["gateway.example"])]
    """The bootstrap host of clients."""
    template: Annotated[
        str,
        PlainValidator(units.host_template),
        Field(examples=["broker-{n}.gateway.example"]),
    ]
    """The name of each broker, with its id in place of `{n}`."""
    port: Port | None = None
    """The port that clients are told for each broker. Default: the first port of `bind`."""


class Advertise(Part):
    """How clients reach each broker. Set one of the two."""

    ports: NodePorts | None = None
    """A port for each broker."""
    names: NodeNames | None = None
    """A TLS server name for each broker, on one port. Needs `tls`, a certificate for all names, and
    DNS that resolves them to the gateway. Not for TubeMQ."""


class Listener(Part):
    """Where clients connect."""

    name: Name
    """The listener's name in metrics and logs; unique."""
    protocol: Annotated[str, PlainValidator(units.protocol)] = protocols.DEFAULT
    """What clients and the cluster's brokers speak."""
    bind: Annotated[
        tuple[Address, ...], PlainValidator(units.binds), Field(examples=["127.0.0.1:6650"])
    ]
    """Where to listen. No two binds of the file may overlap."""
    cluster: Name
    """The one of `clusters` that clients reach."""
    advertise: Advertise | None = None
    """How clients reach each broker; required for Kafka (docs/protocols/kafka.md#addresses) and
    TubeMQ, not for Pulsar."""
    proxy_protocol: TrustedProxies | None = None
    """Proxies that say who their clients are:
    docs/configuration.md#behind-and-before-a-load-balancer. Otherwise a client's address is that of
    its connection."""
    tls: ListenerTls | None = None
    """TLS with clients: docs/configuration.md#tls."""
    identity: Identity = Identity()
    """Who authenticates clients, and how."""
    each_address: EachAddress = EachAddress()
    """What one client address (of IPv6: one /64) may take of a listener. Unbounded by default, as
    all clients may come from a balancer's address."""
    each_principal: EachPrincipal = EachPrincipal()
    """What one principal may take of a listener."""
    access: Literal["open", "closed", "shadow", "opa"] = "open"
    """What clients may do where no rule decides (docs/rules.md#who-may-do-what). `open`:
    everything; `closed`: nothing; `shadow`: everything, but what `closed` would deny is counted and
    logged; `opa`: what the policy agent allows. For Pulsar, `closed` and `opa` need `unknown:
    mask`."""
    unknown: Literal["pass", "mask"] = "pass"
    """Commands that this version does not know. `pass`: they are forwarded, so newer clients and
    brokers work. `mask`: a client's unknown command ends its connection, a broker's is dropped, and
    decoded commands lose unknown fields. Only Pulsar."""
    checksums: Literal["pass", "verify"] = "pass"
    """`verify` checks the CRC32C of messages, and counts failures by topic
    (`gateway_topic_checksum_failures_total`). A producer's damaged message is refused; to
    consumers, which verify too, damaged messages are forwarded. Producers' messages are held until
    complete (docs/performance.md). Only Pulsar."""
    client_metrics: Literal["pass", "hide"] = "pass"
    """`hide`: clients cannot send brokers metrics of their own (KIP-714). Only Kafka."""
    connection_age: Annotated[float, _within(units.seconds, "10s", "720h")] | None = None
    """At about this age, a tenth more or less, connections are moved to another gateway, so that
    added gateways get their share. Pulsar needs `names.sealed.keys`."""
    trace: Networks = ()
    """Networks of clients whose frames are logged, without payloads and secrets."""

    @property
    def binds(self) -> tuple[Address, ...]:
        """Return all addresses to listen on: those of `bind`, and their hosts with each broker's
        port."""
        ports = None if self.advertise is None else self.advertise.ports
        hosts = dict.fromkeys(it.host for it in self.bind)
        more = [Address(host, port) for port in (ports.ports if ports else ()) for host in hosts]
        return (*self.bind, *more)


class OAuth2(Part):
    """A token by client credentials."""

    token_url: Annotated[str, PlainValidator(units.https)] | None = None
    """The token endpoint. Set this or `issuer`."""
    issuer: Annotated[str, PlainValidator(units.https)] | None = None
    """The issuer, whose OpenID configuration names the token endpoint."""
    client_id: Text
    """The gateway's id at the issuer."""
    client_secret_file: File
    """The gateway's secret at the issuer, read again for each request."""
    scope: Text | None = None
    """The scope to request."""
    audience: Text | None = None
    """The audience to request."""
    ca_file: File | None = None
    """Authorities (PEM) for the issuer's server, in place of the machine's."""


class Password(Part):
    """The gateway's name and password."""

    username: Text
    """The gateway's name."""
    password_file: File
    """The gateway's password, read again when the file changes."""
    without_tls: Flag = False
    """Whether Kafka's brokers without SCRAM get the password itself (PLAIN) over connections
    without TLS, where others can read it."""


class EachPassword(Part):
    """A name and a password for each client."""

    passwords_file: File
    """YAML by principal: `alice: {username: alice-at-kafka, password: secret}`. Entry `"*"` is for
    all other principals, who are refused without it. Read again when it changes, for new
    connections."""
    without_tls: Flag = False
    """As `without_tls` of `basic`."""


class Credential(Part):
    """What the gateway shows to brokers in the verifying modes. Set exactly one of these."""

    token_file: File | None = None
    """One token, 16 KiB at most: docs/configuration.md#our-own-token."""
    oauth2: OAuth2 | None = None
    """A token by client credentials (RFC 6749), renewed after 70 % of its life. Without a token
    `/readyz` fails."""
    basic: Password | None = None
    """The gateway's name and password."""
    tls: Flag = False
    """Brokers know the gateway by the `certificate` of the cluster's `tls`."""
    each_principal: EachPassword | None = None
    """A name and a password for each client. Only Kafka."""


CREDENTIALS = ("token_file", "oauth2", "basic", "tls", "each_principal")
"""Settings that say what the gateway shows to brokers."""


class Targets(Part):
    """Which other brokers may be reached."""

    hosts: Annotated[tuple[HostPattern, ...], _ENTRIES] = ()
    """Hosts that may be dialled; `*` stands for dots too."""
    networks: Networks = ()
    """Networks that may be dialled, whatever the hosts' names. Set `hosts`, `networks` or both."""
    ports: Annotated[tuple[Port, ...], _ENTRIES, AfterValidator(_some), Field(examples=["[6650]"])]
    """Ports that may be dialled."""

    @model_validator(mode="after")
    def _reach_something(self) -> Self:
        if not self.hosts and not self.networks:
            raise ValueError("allow nothing; at least one of hosts or networks")
        return self


class SealingKey(Part):
    """One key for sealed names."""

    file: File
    """32 to 4096 random bytes."""


class Sealed(Part):
    """Names that only gateways with the same keys make and read."""

    keys: tuple[SealingKey, ...] = ()
    """The first key seals names, and all keys open them. Without keys the process makes one for its
    lifetime; several gateways need the same keys."""


class Template(Part):
    """Readable names, for numbered brokers."""

    advertise: Annotated[
        str, PlainValidator(units.host_template), Field(examples=["broker-{n}.example"])
    ]
    """The broker's name for clients. No client resolves it."""
    broker: Annotated[
        str, PlainValidator(units.broker_template), Field(examples=["broker-{n}.internal:6650"])
    ]
    """The address that the broker itself advertises."""


class Names(Part):
    """By which names clients know brokers. Set one of the two."""

    sealed: Sealed | None = None
    """Names that only gateways with the same keys make and read."""
    template: Template | None = None
    """Readable names, for numbered brokers."""


class Migration(Part):
    """A cluster to which topics may migrate (blue-green). Brokers tell clients its URL as their new
    service URL."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        Field(examples=[protocols.example("blue.internal")]),
    ]
    """The URLs of that cluster, as brokers name them."""
    gateway: Annotated[Broker, Field(examples=[protocols.example("blue-gateway.example")])]
    """The gateway in front of that cluster, whose URL clients are told instead. Clients are not
    told of migrations to other clusters (`migration_without_gateway` in the log)."""


class Cluster(Part):
    """Brokers that know each other."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        AfterValidator(_different),
        Field(examples=[protocols.example("127.0.0.1:16650")]),
    ]
    """Brokers (of TubeMQ: masters). New connections go in turn to all addresses of their hosts."""
    brokers_are: Literal["brokers", "gateways"] = "brokers"
    """`gateways`: `brokers` lists gateways, which know where brokers are:
    docs/configuration.md#a-gateway-before-another. Only Pulsar."""
    proxy_protocol: ClientHeader | None = None
    """What brokers are told about clients: docs/configuration.md#behind-and-before-a-load-balancer.
    Otherwise brokers see the gateway's address."""
    tls: ClusterTls | None = None
    """TLS to brokers whose URL says so (docs/configuration.md#brokers-with-tls). Without this
    mapping the defaults of its settings hold."""
    credential: Credential | None = None
    """What the gateway shows to brokers in the verifying modes. Only brokers without authentication
    need none."""
    targets: Targets | None = None
    """Which other brokers may be reached (docs/configuration.md#which-brokers-may-be-reached); by
    default none."""
    names: Names = Names(sealed=Sealed())
    """By which names clients know brokers: docs/configuration.md#names-and-seal-keys. Only
    Pulsar."""
    migrations: tuple[Migration, ...] = ()
    """Other clusters to which topics may migrate. Only Pulsar."""

    @property
    def header_is_inside_tls(self) -> bool:
        """Return whether a PROXY header to a broker with TLS is sent after the handshake."""
        header = self.proxy_protocol
        if header is None or header.inside_tls is None:
            return self.brokers_are == "brokers"
        return header.inside_tls

    @property
    def has_tls(self) -> bool:
        """Return whether the gateway speaks TLS to brokers."""
        return self.tls is not None or any(broker.tls for broker in self.brokers)


class Admin(Part):
    """Health and metrics over HTTP, which show broker addresses and topics to anybody."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8080"])]
    """Address of `/metrics`, `/livez`, `/readyz` and `/startupz`, without authentication. Keep it
    private."""
    connections: Annotated[int, _within(units.whole, 64, 65_536)] = 2048
    """Most connections, of 8 to 25 KB each; one more ends the connection that has waited longest
    for its client. If clients of listeners leave fewer descriptors, fewer connections, but at least
    64."""
    scrapes: Annotated[int, _within(units.whole, 1, 32)] = 2
    """Most responses of `/metrics` that are made at a time: one for each scraper. The latest
    waiting request is next. Each response costs the data plane milliseconds, and is cut off after
    5 s."""
    proxy_protocol: TrustedProxies | None = None
    """Proxies that say who their clients are, as for listeners."""
    each_address: Connects = Connects()
    """How often one client address may connect, as for listeners. Probes and scrapers connect
    too."""


class Metrics(Part):
    """Which topics have metrics of their own."""

    topics: Annotated[int, _within(units.whole, 100, 1_000_000)] = 100_000
    """Most topics of a cluster with figures of their own; further topics count together by tenant,
    as `__other__`. Each topic takes 1 KB, and 2 KB of a scrape of `/metrics/topics`."""
    idle: Annotated[float, _within(units.seconds, "1m", "720h")] | None = None
    """A topic without clients for so long counts as `__other__`; when clients come back, its own
    figures begin at zero. Without `idle` topics keep their figures, up to `topics`."""
    partitions: Literal["each", "folded"] = "each"
    """`folded`: all partitions of a topic are one row."""


class ConsoleTls(Part):
    """TLS for browsers and tools."""

    certificate_file: File
    """PEM: the certificate with its chain, read only at the start."""
    key_file: File
    """PEM: its private key."""
    client_ca_file: File | None = None
    """Authorities (PEM) that sign the certificates which browsers and tools must then show."""


class Console(Part):
    """A page and an API for operators, who can also close connections and end the gateway
    (docs/console.md). Needs `pip install 'broker-gateway[console]'`."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8090"])]
    """Where the console listens."""
    token_file: File | None = None
    """One line: the token that requests must show (`Authorization: Bearer`). Required where other
    machines reach the console, unless they must show certificates."""
    tls: ConsoleTls | None = None
    """TLS for browsers and tools, needed where a token crosses a network."""
    connections: Annotated[int, _within(units.whole, 4, 1024)] = 64
    """Most connections of operators at a time; one more gets status 503. A browser opens up to six.
    Connections that have not shown a token or a certificate count for `limits.unauthenticated`."""
    proxy_protocol: TrustedProxies | None = None
    """Proxies that say who their clients are, as for listeners."""
    each_address: Connects = Connects()
    """How often one client address may connect, as for listeners."""

    @property
    def is_public(self) -> bool:
        """Return whether other machines can reach the console."""
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
    """How long the gateway waits."""

    handshake: Annotated[float, _within(units.seconds, "100ms", "5m")] = 10.0
    """The time from accepting a connection until a broker has accepted its client; a dial to a
    broker is ended by `dial` alone. Clients give up after 10 s."""
    dial: Annotated[float, _within(units.seconds, "10ms", "1m")] = 5.0
    """The time for one connection to a broker: the lookup of its name, and up to 3 s for each
    address. Default: half of a client's patience, so that another broker can be tried."""
    idle: Annotated[float, _within(units.seconds, "1s", "1h")] = 120.0
    """A connection without a byte in either direction is ended after this time. Clients and brokers
    ping every 30 s. Only Pulsar: Kafka, which has no pings, has 620 s, and TubeMQ 700 s."""
    silent: Annotated[float, _within(units.seconds, "1s", "1h")] = 90.0
    """A connection is ended if one side sends nothing for this time, while the other side sends.
    Go's clients, the most patient, wait as long. Only Pulsar."""
    stalled: Annotated[float, _within(units.seconds, "1s", "1h")] = 60.0
    """The time in which a client or broker must read the bytes that wait to be sent to it, one
    chunk at most. Clients and brokers give each other a minute."""
    frame: Annotated[float, _within(units.seconds, "1s", "10m")] = 60.0
    """The time from the first to the last byte of a frame that must be held whole, while the
    gateway reads it. Brokers wait 30 to 60 s for the response to a ping, which may come behind the
    frame."""
    held: Annotated[float, _within(units.seconds, "1s", "10m")] = 20.0
    """How long a message waits for its limit (docs/rules.md#above-a-limit). Clients give up after
    30 s; a message that they gave up would still use the limit."""
    grace: Annotated[float, _within(units.seconds, 0, "10m")] = 20.0
    """The time after SIGTERM to move clients to other gateways. All clients begin to move within
    half of it; connections left at its end are closed. Kubernetes kills after 30 s."""
    expired: Annotated[float, _within(units.seconds, 0, "10m")] = 10.0
    """How long a connection stays open after the credential that the gateway verified has expired.
    Clients that can renew a credential are asked for a newer one 30 s before the expiry, or at half
    of its life if that is later. Brokers wait a minute for it."""


class ResourceLimits(Part):
    """Bounds of memory, for each process."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] = 10_000
    """Most client connections of one listener. Each takes two descriptors and, while idle, up to 5
    KB; one more gets an error and is closed."""
    unauthenticated: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1_000
    """Most connections of all listeners before authentication, by the gateway or by the broker. One
    more ends a connection of the address with most of them: the oldest that waits for its client.
    At 2,000 new connections a second each has half a second."""
    handshake_frame: Annotated[int, _within(units.size, "1KiB", "5MiB")] = 64 * KIB
    """The largest frame before a connection is open. Tokens are below 16 KiB; Kerberos tickets
    reach 64 KiB."""
    collected_frame: Annotated[int, _within(units.size, "64KiB", "64MiB")] = 6 * MIB
    """The largest frame that must be held whole; you can set up to a quarter of `buffered`. If
    brokers allow larger messages, the gateway raises it up to `collected`. Messages are held whole
    only above a limit, and larger ones are then left unread instead."""
    command: Annotated[int, _within(units.size, "16KiB", "16MiB")] = MIB
    """The largest command of a client (without its message), and of a broker where the gateway
    decodes the command. The largest real commands hold schemas of kilobytes."""
    fields: Annotated[int, _within(units.whole, 100, 100_000)] = 5_000
    """Most fields, at all levels, of a command beyond 64 KiB. Counting 5,000 fields takes 2 ms;
    real commands have dozens."""
    name: Annotated[int, _within(units.whole, 64, 65_536)] = 2_048
    """Most characters of the name of a topic, subscription, producer or consumer. Brokers' paths
    allow hundreds; topic patterns of Java clients are longer."""
    text: Annotated[int, _within(units.whole, 256, 65_536)] = 4_096
    """Most characters of a broker's error text; longer texts end in `... (cut)`. Brokers' own texts
    have hundreds; searching 4,096 characters for addresses takes 2 ms."""
    held: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    """Most bytes of messages that wait for their limit (docs/rules.md#above-a-limit). Default: a
    quarter of `buffered`, at most half of its last part
    (docs/configuration.md#how-the-memory-is-divided); you can set up to three quarters of that
    part. A producer may use at most as much as it leaves free: alone half, 1,000 messages of 32
    KB."""
    collected: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    """Most bytes of incomplete frames that must be held whole. Default: an eighth of `buffered`, at
    least `collected_frame`."""
    handshakes: Annotated[int, _within(units.size, "1KiB", "16GiB")] | None = None
    """Most bytes of incomplete frames beyond 4 KiB before connections are open. Default: a
    sixteenth of `buffered`, at least `handshake_frame`."""
    remembered: Annotated[int, _within(units.size, "64KiB", "64GiB")] | None = None
    """Most bytes that connections keep as long as clients want:
    docs/configuration.md#what-connections-keep. Default: twice `buffered`. One address may have
    half of it, enough for 200,000 producers."""
    buffered: Annotated[int, _within(units.size, "1MiB", "64GiB")] = 256 * MIB
    """Most bytes that wait for slow peers, decisions or limits:
    docs/configuration.md#how-the-memory-is-divided."""

    @property
    def all_collected(self) -> int:
        """Return how many bytes all incomplete frames that must be held whole may take together."""
        return self.collected or max(self.collected_frame, self.buffered // 8)

    @property
    def all_handshakes(self) -> int:
        """Return how many bytes all large frames of connections that are not open yet may take."""
        return self.handshakes or max(self.handshake_frame, self.buffered // 16)

    @property
    def all_remembered(self) -> int:
        """Return how many bytes all sessions may keep until their clients end them."""
        return self.remembered or 2 * self.buffered

    @property
    def deciding(self) -> int:
        """Return the bytes that deciding one frame takes: copies of the frame and of its command,
        the decoded command, and its new encoding.

        One frame is decided at a time, and its copies are freed before the next one. `fields`
        bounds how much larger a command becomes by decoding.
        """
        return max(2 * self.collected_frame, self.collected_frame + 4 * self.command)

    @property
    def waiting(self) -> int:
        """Return the part of `buffered`, in bytes, for data that waits for slow peers or limits."""
        return self.buffered - self.all_collected - self.all_handshakes - self.deciding

    @property
    def all_held(self) -> int:
        """Return the part of `waiting`, in bytes, for data that waits for limits."""
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
    """How bytes are moved."""

    buffer: Annotated[int, _within(units.size, "64KiB", "4MiB")] = 512 * KIB
    """The most bytes of one read, into one buffer for the process. A larger buffer makes large
    messages hardly cheaper; with `64KiB` streams of 16 KB messages take more than twice the CPU,
    mostly for wake-ups."""
    turn: Annotated[float, _within(units.seconds, "0.1ms", "100ms")] = 0.002
    """How long moving bytes may delay new connections and the admin listener."""
    socket_buffer: Annotated[int, _within(units.size, "4KiB", "64MiB")] | None = None
    """A fixed size of the kernel's socket buffers, which slows distant peers. By default the kernel
    tunes these buffers, up to 8 MB for peers that do not read."""


class Store(Part):
    """A Redis (from 6) or Valkey by which replicas share limits
    (docs/rules.md#shared-by-several-processes): one server, or of several the one that takes
    writes; no Redis Cluster. Needs `pip install 'broker-gateway[valkey]'`, and a user
    (docs/configuration.md#the-user-of-the-store)."""

    url: Annotated[
        StoreAddress, PlainValidator(store.address), Field(examples=["redis://127.0.0.1:6379"])
    ]
    """The store's address. Whoever reaches the store without a password can change limits."""
    username: Text | None = None
    """The gateway's user, if not `default`."""
    password_file: File | None = None
    """The user's password, 4 KiB at most. Read again for each connection."""
    ca_file: File | None = None
    """Authorities (PEM) for the store, in place of the machine's. The store's certificate must name
    the host of `url`."""
    prefix: Annotated[str, PlainValidator(store.prefix)] = "gateway:"
    """The beginning of all keys: at most 64 letters, digits, and `.` `_` `:` `/` `-`. Gateways with
    the same prefix share limits."""
    timeout: Annotated[float, _within(units.seconds, "1ms", "5s")] = 0.05
    """The longest time of one call. A near store takes less than 1 ms; after half of a
    reservation's 100 ms a gateway does better without the store."""


class Log(Part):
    """What goes to standard error."""

    format: Literal["json", "console", "auto"] = "auto"
    """`auto`: `console` on a terminal, else `json`."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is written. Traces are `info`."""
    burst: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1000
    """Most `info` lines of one event in 10 s; further lines are folded. 100 connections a second
    are ordinary; a flood takes 0.3 MB."""
    longest_text: Annotated[int, _within(units.whole, 64, 65_536)] = 1024
    """Most characters of one text; a traceback may have 16 times as many. Longer texts are cut and
    say their length. Real names and errors have less than 300."""
    queue: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 4 * MIB
    """Most bytes of lines that wait for the log's reader. Further lines are
    dropped and counted."""
    queue_lines: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    """Most lines that wait for the log's reader: ten seconds of a folded flood."""
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"
    """Clients' names in log and audit. `masked`: `(masked)` for all. `pseudonymous`: another name
    for each, the same while the process runs. Real names still show in `detail` (brokers' words),
    traces, and `first` of `limits_lost`."""


class Audit(Part):
    """A JSON line for each connection that ended and each right that was denied: time, listener,
    address, principal, method, reason, topic or subscription, never a credential. Repeated lines
    are folded as in the log; lines that a slow disk or reader does not take are dropped and counted
    (`gateway_audit_lines_dropped_total`). Rotate the file by `copytruncate`, as the gateway keeps
    it open."""

    file: Annotated[Path, _located("locate_new")] | None = None
    """Where lines are appended."""
    stream: Literal["stdout", "stderr"] = "stdout"
    """Where lines are written without a `file`."""


class UsageTopic(Part):
    """A topic that gets the records too (docs/usage.md#into-a-pulsar-topic). Needs `pip install
    'broker-gateway[topic]'`."""

    cluster: Name
    """The one of `clusters` whose `brokers`, `tls` and `credential` are used. It needs no
    listener."""
    records: Annotated[Text, Field(examples=["persistent://ops/usage/records"])]
    """The whole name of a persistent topic, partitioned or not."""
    events: Text | None = None
    """The whole name of another topic, for events. Without it events stay in files."""


class Usage(Part):
    """Records of who used what, in files (docs/usage.md). Needs `pip install
    'broker-gateway[usage]'`."""

    folder: Annotated[Path, _located("locate_new_folder"), Field(examples=["usage"])]
    """The folder of the files, which is made if its parent exists."""
    gateway: Name | None = None
    """This gateway's name in records and files; each replica needs another name. Default: that of
    the host (the pod)."""
    interval: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    """The time that one record covers. Bills need minutes, recommended limits seconds."""
    close_after: Annotated[float, _within(units.seconds, "1s", "24h")] = 60.0
    """The age at which a file is closed, and so can be read."""
    close_size: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 64 << 20
    """The compressed bytes at which a file is closed."""
    disk: Annotated[int, _within(units.size, "1MiB", "1024GiB")] = 1 << 30
    """Most bytes of closed files of each kind (records, events); beyond it the oldest files are
    removed and counted. 1,000 keys in use take 0.5 GB a day, a record 40 to 80 bytes."""
    waiting: Annotated[int, _within(units.size, "1MiB", "1GiB")] = 64 << 20
    """Most bytes of records that wait for a slow disk. Further records are
    dropped and counted."""
    events: Flag = True
    """Whether events are written too: connects, ends, failed authentications and denials."""
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"
    """Names of clients in records, with the choices of `log.principals`."""
    pseudonym_key_file: File | None = None
    """The key for `pseudonymous`, 16 bytes or more. Gateways with the same key give a client the
    same name."""
    clients: Literal["network", "address", "masked"] = "network"
    """What records have of a client's address: its /24 or /48 network, the whole address, or
    (`masked`) nothing."""
    client_ids: Flag = False
    """Whether records have Kafka's client ids, as events always do. Each client id makes records of
    its own: many records, if each process has another id."""
    topic: UsageTopic | None = None
    """A topic that gets the records too (docs/usage.md#into-a-pulsar-topic). Needs `pip install
    'broker-gateway[topic]'`."""

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if (self.principals == "pseudonymous") != (self.pseudonym_key_file is not None):
            raise ValueError(
                "has pseudonyms or their key alone; both principals: pseudonymous and "
                "pseudonym_key_file, or neither"
            )
        return self


class Otlp(Part):
    """Spans and log lines for an OpenTelemetry collector (docs/operating.md). Needs `pip install
    'broker-gateway[otlp]'`."""

    url: Annotated[str, PlainValidator(units.http), Field(examples=["http://127.0.0.1:4318"])]
    """Where the collector takes OTLP over HTTP; the gateway appends `/v1/traces` and `/v1/logs`."""
    ca_file: File | None = None
    """Authorities (PEM) for the collector, in place of the machine's."""
    token_file: File | None = None
    """A bearer token, read again for each request. Needs `https`, or a collector on this
    machine."""
    share: Annotated[float, _within(units.fraction, 0.0, 1.0)] = 1.0
    """The share of operations that have spans. 0.1 is enough for statistics; 1 is needed to find
    why a client cannot connect."""
    logs: Flag = False
    """Whether log lines are sent too, `otlp_failed` excepted."""
    queue: Annotated[int, _within(units.whole, 100, 100_000)] = 2048
    """Most spans that wait for the collector, and most log lines, of 1 KB each. The oldest are
    dropped and counted."""
    deadline: Annotated[float, _within(units.seconds, "100ms", "30s")] = 3.0
    """The longest time of one request. A process that ends waits as long for the collector."""

    @model_validator(mode="after")
    def _keeps_token(self) -> Self:
        if self.token_file is not None and not units.is_secure(self.url):
            raise ValueError(
                "would show its token on the network; a url with https, or of this machine"
            )
        return self


class PolicyAgent(Part):
    """Open Policy Agent authorizes what no rule decides on listeners with `access: opa`
    (docs/rules.md#decisions-by-open-policy-agent). The gateway asks it when something is opened or
    looked up, never for a frame. The rest of the connection goes on meanwhile."""

    url: Annotated[
        str,
        PlainValidator(units.https),
        Field(examples=["http://127.0.0.1:8181/v1/data/gateway/allow"]),
    ]
    """The rule that decides, in the agent's Data API:
    `http://127.0.0.1:8181/v1/data/gateway/allow`."""
    ca_file: File | None = None
    """Authorities (PEM) for the agent's server, in place of the machine's."""
    token_file: File | None = None
    """A bearer token, read for each question."""
    deadline: Annotated[float, _within(units.seconds, "10ms", "5s")] = 1.0
    """The longest time of one decision. Clients wait 10 s or more."""
    lasting: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    """How long a decision is cached, as reconnecting clients need the same decision. A changed
    policy takes effect after this time."""
    known: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    """Most cached decisions, of 500 bytes each; the oldest gives way to a new one."""
    at_once: Annotated[int, _within(units.whole, 1, 1000)] = 16
    """Most questions to the agent at a time; one principal may have a quarter of them."""
    while_away: Literal["deny", "allow"] = "deny"
    """The decision while the agent gives none (true or false, with status 200, in time). The agent
    is asked again after a second."""


class Configuration(Part):
    """The whole file."""

    version: Version
    """The version of the file format."""
    listeners: Annotated[
        tuple[Listener, ...],
        AfterValidator(_some),
        Field(examples=["[{name: clients, bind: 127.0.0.1:6650, cluster: main}]"]),
    ]
    """Where clients connect."""
    clusters: Annotated[
        Mapping[Name, Cluster],
        AfterValidator(_some),
        Field(examples=[f"{{main: {{brokers: {protocols.example('127.0.0.1:16650')}}}}}"]),
    ]
    """Brokers that know each other."""
    admin: Admin | None = None
    """Health and metrics over HTTP, which show broker addresses and topics to anybody."""
    metrics: Metrics = Metrics()
    """Which topics have metrics of their own."""
    console: Console | None = None
    """A page and an API for operators."""
    workers: Annotated[int | Literal["auto"], PlainValidator(_workers)] = 1
    """Processes that serve clients (docs/operating.md); `auto`: one for each CPU that affinity and
    control group allow. In Kubernetes scale pods instead."""
    deadlines: Deadlines = Deadlines()
    """How long the gateway waits."""
    limits: ResourceLimits = ResourceLimits()
    """Bounds of memory, for each process."""
    data_plane: DataPlane = DataPlane()
    """How bytes are moved."""
    log: Log = Log()
    """What goes to standard error."""
    audit: Audit | None = None
    """Where ended connections and denied rights are written."""
    usage: Usage | None = None
    """Records of who used what."""
    otlp: Otlp | None = None
    """Spans and log lines for a collector."""
    store: Store | None = None
    """Where replicas share limits; without a store each replica has its own limits."""
    opa: PolicyAgent | None = None
    """Open Policy Agent, which authorizes what no rule decides."""
    rules: Annotated[tuple[FileOrFolder, ...], _ENTRIES] = ()
    """Limits and rights (docs/rules.md), read again when they change."""

    def protocol_of(self, cluster: str) -> str:
        """Return the protocol of a cluster, which all its listeners share."""
        found = (it.protocol for it in self.listeners if it.cluster == cluster)
        return next(found, protocols.DEFAULT)
