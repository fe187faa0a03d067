"""The shape of the configuration file: frozen values, their defaults and the reasons for them.

Each value here is read by itself; `checks` has the checks that span several fields. Durations are
seconds, sizes are bytes. An `Address` to listen on with host "" means all addresses. Files are
located by a function in the validation context, `{"locate": ...}`, so that nothing here opens a
file; without it a path stays as written.

What stands below a setting is also what docs/configuration.md says of it: `make metrics` after a
change. A page that it names becomes a link there.
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
    """How to verify the JSON Web Tokens of one issuer: exactly one of the first five settings."""

    secret_file: File | None = None
    """The shared secret: at least 32 raw bytes, or `data:;base64,...`."""
    public_key_file: File | None = None
    """PEM or DER: RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519."""
    jwks_file: File | None = None
    """A JSON Web Key Set, read again every 10 s."""
    jwks_url: Annotated[str, PlainValidator(units.https)] | None = None
    """The key set that the issuer publishes (docs/configuration.md#keys-of-issuers)."""
    discovery: Flag = False
    """The key set that the OpenID configuration below `issuer` names."""
    ca_file: File | None = None
    """Authorities (PEM) for the server of `jwks_url` or `issuer`, in place of the machine's."""
    algorithms: Annotated[tuple[Algorithm, ...], _ENTRIES, AfterValidator(_some)] = Field(
        default_factory=_usual_algorithms
    )
    """Accepted signatures, whatever a token says. With a secret `HS256` (the default then),
    `HS384`, `HS512`; with public keys `RS`, `PS` or `ES` with `256`, `384` or `512`, `EdDSA`,
    `Ed25519`."""
    principal_claim: Text = "sub"
    """The claim that names the client; of a list its first entry. Names beyond 2,048 characters or
    with control characters are refused."""
    audience: Text | None = None
    """What `aud` must be, or hold."""
    issuer: Text | None = None
    """What `iss` must be."""
    clock_skew: Annotated[float, _within(units.seconds, 0, "10m")] = 0.0
    """Grace for `exp` and `nbf`. Synchronized clocks need none."""


KEYS = ("secret_file", "public_key_file", "jwks_file", "jwks_url", "discovery")
"""Settings of an issuer that say where its keys are."""

OF_ISSUERS = tuple(name for name in Issuer.model_fields if name not in KEYS)
"""The other settings of an issuer."""


class Token(Issuer, Method):
    """How to verify JSON Web Tokens: exactly one of the first five settings, as a public key must
    never serve as a secret; or `issuers`, or both."""

    verified_by = "gateway.verifiers.tokens"

    issuers: tuple[Issuer, ...] = ()
    """Further issuers. A token is verified by the one that its `iss` names, else by the one without
    `issuer`."""

    def all_issuers(self) -> tuple[Issuer, ...]:
        """Return the issuers, at least one."""
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
    """The client's name is the first of these that its certificate has. `subject`: the whole one,
    in the form of RFC 4514."""


class Basic(Method):
    """Names and passwords."""

    verified_by = "gateway.verifiers.passwords"

    htpasswd_file: File
    """Lines of `name:hash`: bcrypt of cost 10 or more, or argon2id. Read again when it changes."""


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
    """Lines of `name:password`: only passwords themselves verify signatures, so keep the file to
    the gateway's user. Read again when it changes."""
    window: Annotated[float, _within(units.seconds, 1, "10m")] = 20.0
    """By how much a client's clock may differ: so long can a signature be replayed. TubeMQ's
    servers take 20 s too."""


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
    """What a whole name has to match."""
    principal: Text
    """What becomes of it: `{1}` or `{name}` is a group of `match`, `{0}` the whole name."""

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
    does, by the methods below, and tells the broker the principal. `verify-and-forward`: the broker
    gets the client's token too."""
    token: Token | None = None
    """JSON Web Tokens: docs/configuration.md#tokens-of-clients."""
    tls: Certificates | None = None
    """TLS certificates: docs/configuration.md#certificates-of-clients."""
    basic: Basic | None = None
    """Names and passwords: docs/configuration.md#passwords-of-clients. Of Kafka (PLAIN) only with
    `tls` of the listener."""
    scram: Scram | None = None
    """Passwords that clients prove without showing them
    (docs/configuration.md#passwords-that-are-not-shown). Only Kafka."""
    signature: Signature | None = None
    """Signatures by passwords (docs/protocols/tubemq.md). Only TubeMQ."""
    anonymous: Anonymous | None = None
    """Clients without a credential are admitted under one name."""
    principals: tuple[PrincipalMapping, ...] = ()
    """Other names for principals: docs/configuration.md#names-of-principals. The first match
    counts; a name without a match is refused."""
    trusted_proxies: Annotated[tuple[Text, ...], _ENTRIES] = ()
    """Principals of gateways that may speak for their clients:
    docs/configuration.md#a-gateway-before-another. Only Pulsar, verifying, without `anonymous`."""

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
    """A certificate and its key."""

    certificate_file: File
    """PEM: the certificate, and behind it those of intermediate authorities."""
    key_file: File
    """PEM: its private key, without a password."""


class ListenerTls(Part):
    """TLS with clients."""

    certificates: Annotated[
        tuple[Certificate, ...],
        AfterValidator(_some),
        Field(examples=["[{certificate_file: tls.crt, key_file: tls.key}]"]),
    ]
    """A client gets the one for the server name (SNI) that it sends, else the first."""
    minimum: Literal["1.2", "1.3"] = "1.2"
    """The oldest version. Clients of ten years ago speak 1.2; older versions are broken (RFC
    8996)."""
    client_certificates: Literal["none", "optional", "required"] = "none"
    """Whether clients must show a certificate; `optional` admits those without."""
    client_ca_file: File | None = None
    """Authorities (PEM) that sign clients' certificates, required with these. The machine's never
    count: they sign for everybody."""
    crl_files: Annotated[tuple[File, ...], _ENTRIES] = ()
    """Revoked certificates (PEM), a list of each authority. Without a list, or with an outdated
    one, all its clients are refused."""


class ClusterTls(Part):
    """TLS to brokers."""

    ca_file: File | None = None
    """Authorities (PEM) for brokers, in place of the machine's."""
    certificate: Certificate | None = None
    """Shown to brokers that ask for one."""
    verify_host: Flag = True
    """Whether a certificate must name the host that is dialled. Otherwise any certificate of a
    trusted authority will do."""


class EachAddress(Part):
    """What one address may take of a listener; of IPv6, one /64. Unbounded by default, as a
    balancer may be the address of all clients."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """Authenticated connections; others share `limits.unauthenticated`, where an address displaces
    its own."""
    connects: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """New connections a second, two seconds of them at once. More are closed before TLS
    (`too_many_connects`)."""


class EachPrincipal(Part):
    """What one principal may take of a listener."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] | None = None
    """Connections; one more gets TooManyRequests and a close. A client opens one to each broker,
    and one for lookups."""


class TrustedProxies(Part):
    """Proxies that say who their clients are."""

    from_: Annotated[
        Networks, AfterValidator(_some), Field(alias="from", examples=["[10.1.2.3, 10.1.2.4]"])
    ]
    """Connections from there must begin with a PROXY header, version 1 or 2; others must not."""


class ClientHeader(Part):
    """What brokers are told about clients."""

    version: Annotated[int, PlainValidator(_header_version), Field(examples=[2])]
    """Version 1 can say no more than addresses."""
    principal: Flag = False
    """Whether the header has the verified principal, as type 0xE0."""
    inside_tls: Flag | None = None
    """Whether the header comes inside TLS, as Pulsar's brokers want it, or before, as balancers do.
    Default: inside for brokers, before for gateways."""


class NodePorts(Part):
    """A port for each broker."""

    host: Annotated[str, PlainValidator(units.host), Field(examples=["gateway.example"])]
    """What clients are told as the host of each broker."""
    port: Port | None = None
    """Where clients begin, and are led for brokers that have no port. Default: the first of `bind`;
    a balancer may have another."""
    ids: Annotated[tuple[int, ...], PlainValidator(units.ids), Field(examples=["0-2"])]
    """The brokers: `node.id`, of TubeMQ `brokerId`. Ports are bound at the start: list future
    brokers too, new ids last, as ports follow their order."""
    first_port: Annotated[Port, Field(examples=[9093])]
    """The port of the first id; the others follow. Each is bound on all hosts of `bind`."""

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
    """Where clients begin: their bootstrap server."""
    template: Annotated[
        str,
        PlainValidator(units.host_template),
        Field(examples=["broker-{n}.gateway.example"]),
    ]
    """The name of each broker, by its id."""
    port: Port | None = None
    """The port that clients are told. Default: the first port of `bind`."""


class Advertise(Part):
    """How clients reach each broker: one of the two."""

    ports: NodePorts | None = None
    """A port for each broker."""
    names: NodeNames | None = None
    """A TLS server name for each broker, on one port. Needs `tls`, a certificate for all names, and
    DNS that leads them here. Not for TubeMQ."""


class Listener(Part):
    """Where clients connect."""

    name: Name
    """Shown in metrics and logs; unique."""
    protocol: Annotated[str, PlainValidator(units.protocol)] = protocols.DEFAULT
    """What clients speak; brokers of the cluster speak the same."""
    bind: Annotated[
        tuple[Address, ...], PlainValidator(units.binds), Field(examples=["127.0.0.1:6650"])
    ]
    """Where to listen. No two binds of the file may overlap."""
    cluster: Name
    """The one of `clusters` that clients reach."""
    advertise: Advertise | None = None
    """How clients reach each broker, required for Kafka (docs/protocols/kafka.md#addresses) and
    TubeMQ; not for Pulsar."""
    proxy_protocol: TrustedProxies | None = None
    """Proxies that say who their clients are:
    docs/configuration.md#behind-and-before-a-load-balancer. Otherwise a connection's address is its
    client's."""
    tls: ListenerTls | None = None
    """TLS with clients, and nothing else: docs/configuration.md#tls."""
    identity: Identity = Identity()
    """Who authenticates clients, and how."""
    each_address: EachAddress = EachAddress()
    """What one address may take."""
    each_principal: EachPrincipal = EachPrincipal()
    """What one principal may take of a listener."""
    access: Literal["open", "closed", "shadow", "opa"] = "open"
    """What clients may do where no rule decides (docs/rules.md#who-may-do-what). `open`:
    everything; `closed`: nothing; `shadow`: everything, but what `closed` would deny is counted and
    logged; `opa`: what the policy agent allows. For Pulsar, `closed` and `opa` need `unknown:
    mask`."""
    unknown: Literal["pass", "mask"] = "pass"
    """Commands that this version does not know. `pass`: newer clients and brokers work. `mask`: a
    client's ends its connection, a broker's is dropped, decoded commands lose unknown fields. Only
    Pulsar; others never pass any."""
    checksums: Literal["pass", "verify"] = "pass"
    """`verify` checks the CRC32C of messages and counts failures by topic
    (`gateway_topic_checksum_failures_total`). Damaged ones of producers are refused, which then
    repeat them; to consumers, which verify too, they pass. Messages of producers are held until
    complete (docs/performance.md). Only Pulsar."""
    client_metrics: Literal["pass", "hide"] = "pass"
    """`hide`: clients cannot send brokers metrics of their own (KIP-714). Only Kafka."""
    connection_age: Annotated[float, _within(units.seconds, "10s", "720h")] | None = None
    """At about this age, a tenth more or less, clients are moved to another gateway, so that added
    ones get their share. Pulsar needs `names.sealed.keys`."""
    trace: Networks = ()
    """Clients whose frames are logged, without payloads and secrets."""

    @property
    def binds(self) -> tuple[Address, ...]:
        """Return all addresses to listen on: of `bind`, and with the ports of brokers."""
        ports = None if self.advertise is None else self.advertise.ports
        hosts = dict.fromkeys(it.host for it in self.bind)
        more = [Address(host, port) for port in (ports.ports if ports else ()) for host in hosts]
        return (*self.bind, *more)


class OAuth2(Part):
    """A token by client credentials."""

    token_url: Annotated[str, PlainValidator(units.https)] | None = None
    """The token endpoint; either this or `issuer`."""
    issuer: Annotated[str, PlainValidator(units.https)] | None = None
    """The issuer, whose OpenID configuration names the token endpoint."""
    client_id: Text
    """The gateway's id at the issuer."""
    client_secret_file: File
    """Its secret, read again for each request."""
    scope: Text | None = None
    """Asked for, if set."""
    audience: Text | None = None
    """Asked for, if set."""
    ca_file: File | None = None
    """Authorities (PEM) for the issuer's server, in place of the machine's."""


class Password(Part):
    """The gateway's name and password."""

    username: Text
    """The gateway's name."""
    password_file: File
    """Its password, read again when it changes."""
    without_tls: Flag = False
    """Whether Kafka's brokers without SCRAM get the password itself (PLAIN) without TLS, where
    others can read it."""


class EachPassword(Part):
    """A name and a password for each client."""

    passwords_file: File
    """YAML by principal: `alice: {username: alice-at-kafka, password: secret}`; `"*"`: all others,
    who are refused without it. Read again when it changes, for new connections."""
    without_tls: Flag = False
    """As of `basic`."""


class Credential(Part):
    """What the gateway shows to brokers in the verifying modes: exactly one of these."""

    token_file: File | None = None
    """One token, 16 KiB at most: docs/configuration.md#our-own-token."""
    oauth2: OAuth2 | None = None
    """A token by client credentials (RFC 6749), renewed after 70 % of its life. Without one
    `/readyz` fails."""
    basic: Password | None = None
    """The gateway's name and password."""
    tls: Flag = False
    """Brokers know the gateway by the `certificate` of the cluster's `tls`."""
    each_principal: EachPassword | None = None
    """A name and a password for each client. Only Kafka, whose brokers cannot be told who a client
    is."""


CREDENTIALS = ("token_file", "oauth2", "basic", "tls", "each_principal")
"""Settings that say what the gateway shows to brokers."""


class Targets(Part):
    """Which other brokers may be reached."""

    hosts: Annotated[tuple[HostPattern, ...], _ENTRIES] = ()
    """Hosts that may be dialled; `*` stands for dots too."""
    networks: Networks = ()
    """Networks that may be dialled, whatever their hosts' names. `hosts`, `networks` or both."""
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
    """The first seals, all open. Without keys the process makes one for its lifetime; several
    gateways need the same."""


class Template(Part):
    """Readable names, for numbered brokers."""

    advertise: Annotated[
        str, PlainValidator(units.host_template), Field(examples=["broker-{n}.example"])
    ]
    """What clients see. No client resolves it."""
    broker: Annotated[
        str, PlainValidator(units.broker_template), Field(examples=["broker-{n}.internal:6650"])
    ]
    """The address that the broker itself advertises."""


class Names(Part):
    """One of the two."""

    sealed: Sealed | None = None
    """Names that only gateways with the same keys make and read."""
    template: Template | None = None
    """Readable names, for numbered brokers."""


class Migration(Part):
    """A cluster to which topics may migrate (blue-green), which brokers name to clients as their
    new service URL."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        Field(examples=[protocols.example("blue.internal")]),
    ]
    """The other cluster, by the URLs that brokers use for it."""
    gateway: Annotated[Broker, Field(examples=[protocols.example("blue-gateway.example")])]
    """The gateway in front of it, which clients are told instead. They are told of no other
    clusters (`migration_without_gateway` in the log)."""


class Cluster(Part):
    """Brokers that know each other."""

    brokers: Annotated[
        tuple[Broker, ...],
        BeforeValidator(units.brokers),
        AfterValidator(_some),
        AfterValidator(_different),
        Field(examples=[protocols.example("127.0.0.1:16650")]),
    ]
    """Brokers for new connections, in turn, by all addresses of a name; of TubeMQ the masters."""
    brokers_are: Literal["brokers", "gateways"] = "brokers"
    """`gateways`: these are gateways, which know where brokers are:
    docs/configuration.md#a-gateway-before-another. Only Pulsar."""
    proxy_protocol: ClientHeader | None = None
    """What brokers are told about clients: docs/configuration.md#behind-and-before-a-load-balancer.
    Otherwise they see the gateway's address."""
    tls: ClusterTls | None = None
    """TLS to brokers whose URL says so (docs/configuration.md#brokers-with-tls); without this
    mapping, by its defaults."""
    credential: Credential | None = None
    """What the gateway shows to brokers in the verifying modes. Only brokers without authentication
    need none."""
    targets: Targets | None = None
    """Which other brokers may be reached (docs/configuration.md#which-brokers-may-be-reached);
    without it none."""
    names: Names = Names(sealed=Sealed())
    """By which names clients know brokers: docs/configuration.md#names-and-seal-keys. Only
    Pulsar."""
    migrations: tuple[Migration, ...] = ()
    """Other clusters to which topics may migrate. Only Pulsar."""

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
    """Health and metrics over HTTP. They show broker addresses and topics to anybody."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8080"])]
    """Address of `/metrics`, `/livez`, `/readyz` and `/startupz`, without authentication. Keep it
    private."""
    connections: Annotated[int, _within(units.whole, 64, 65_536)] = 2048
    """Connections of 8 to 25 KB; one more ends the one that has waited longest for its client. At
    most the descriptors that clients leave, or 64."""
    scrapes: Annotated[int, _within(units.whole, 1, 32)] = 2
    """Responses of `/metrics` at a time, for two scrapers; of those that wait the latest is next.
    Each costs the data plane milliseconds, and ends after 5 s."""


class Metrics(Part):
    """Which topics have metrics of their own."""

    topics: Annotated[int, _within(units.whole, 100, 1_000_000)] = 100_000
    """Topics of a cluster with figures of their own; others count together by tenant, as
    `__other__`. Each takes 1 KB, and 2 KB of a scrape of `/metrics/topics`."""
    idle: Annotated[float, _within(units.seconds, "1m", "720h")] | None = None
    """After so long without clients a topic counts as `__other__`; it comes back from zero.
    Otherwise topics stay, up to `topics`."""
    partitions: Literal["each", "folded"] = "each"
    """`folded`: the partitions of a topic are one row."""


class ConsoleTls(Part):
    """TLS for browsers and tools."""

    certificate_file: File
    """PEM: the certificate with its chain, read at the start alone."""
    key_file: File
    """PEM: its private key."""
    client_ca_file: File | None = None
    """Authorities (PEM) that sign the certificates which browsers and tools must then show."""


class Console(Part):
    """A page and an API for operators, who can also close connections and end the gateway
    (docs/console.md). Needs `pip install 'broker-gateway[console]'`."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:8090"])]
    """Where it listens."""
    token_file: File | None = None
    """One line that requests show (`Authorization: Bearer`). Required where other machines reach
    the console, unless they show certificates."""
    tls: ConsoleTls | None = None
    """TLS for browsers and tools; a token that crosses a network needs it."""
    connections: Annotated[int, _within(units.whole, 4, 1024)] = 64
    """Browsers open up to six. Others wait."""

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
    """How long the gateway waits."""

    handshake: Annotated[float, _within(units.seconds, "100ms", "5m")] = 10.0
    """From accepting a connection until a broker has accepted its client, without `dial`. Clients
    give up after 10 s."""
    dial: Annotated[float, _within(units.seconds, "10ms", "1m")] = 5.0
    """One connection to a broker: its name's lookup, and addresses of 3 s each. Half of a client's
    patience, so that another can be tried."""
    idle: Annotated[float, _within(units.seconds, "1s", "1h")] = 120.0
    """Ends a connection without a byte in either direction. Clients and brokers ping every 30 s.
    Only Pulsar: Kafka, without pings, has 620 s, and TubeMQ 700 s."""
    silent: Annotated[float, _within(units.seconds, "1s", "1h")] = 90.0
    """Ends a connection of which one side sends nothing, while the other does. Go's clients, the
    most patient, wait as long. Only Pulsar."""
    stalled: Annotated[float, _within(units.seconds, "1s", "1h")] = 60.0
    """To read what could not be sent at once, one chunk at most. Clients and brokers give each
    other a minute."""
    frame: Annotated[float, _within(units.seconds, "1s", "10m")] = 60.0
    """From first to last byte of a frame that must be held whole, while the gateway reads. Brokers
    wait 30 to 60 s for the response to a ping, which may be behind it. 1 MB needs 140 kbit/s."""
    held: Annotated[float, _within(units.seconds, "1s", "10m")] = 20.0
    """How long a message waits for its limit (docs/rules.md#above-a-limit). Clients give up after
    30 s, and what they gave up would still use the limit."""
    grace: Annotated[float, _within(units.seconds, 0, "10m")] = 20.0
    """To move clients away after SIGTERM, all within half of it; those left are closed. Kubernetes
    kills after 30 s."""
    expired: Annotated[float, _within(units.seconds, 0, "10m")] = 10.0
    """How long a connection outlives the credential that the gateway verified. Clients that can are
    asked for a newer one 30 s earlier, or after half of its life. Brokers give a minute."""


class ResourceLimits(Part):
    """Bounds of memory, by process."""

    connections: Annotated[int, _within(units.whole, 1, 1_000_000)] = 10_000
    """Client connections of one listener, of two descriptors and, idle, up to 5 KB each; one more
    gets an error and a close."""
    unauthenticated: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1_000
    """Connections of all listeners before authentication. One more ends the oldest that waits for
    its client: at 2,000 new ones a second after half a second."""
    handshake_frame: Annotated[int, _within(units.size, "1KiB", "5MiB")] = 64 * KIB
    """The largest frame before a connection is open. Tokens are below 16 KiB; Kerberos tickets
    reach 64."""
    collected_frame: Annotated[int, _within(units.size, "64KiB", "64MiB")] = 6 * MIB
    """The largest frame that must be held whole; brokers that allow larger messages raise it up to
    `collected`. Messages are held above a limit and with `checksums: verify` alone. At most a
    quarter of `buffered`."""
    command: Annotated[int, _within(units.size, "16KiB", "16MiB")] = MIB
    """The largest command of a client, without its message, and of a broker if the gateway reads
    it. The largest real ones hold schemas of kilobytes."""
    fields: Annotated[int, _within(units.whole, 100, 100_000)] = 5_000
    """Fields, at all levels, of a command beyond 64 KiB. Counting 5,000 takes 2 ms; real commands
    have dozens."""
    name: Annotated[int, _within(units.whole, 64, 65_536)] = 2_048
    """Characters of the name of a topic, subscription, producer or consumer. Brokers' paths allow
    hundreds; topic patterns of Java clients are longer."""
    text: Annotated[int, _within(units.whole, 256, 65_536)] = 4_096
    """Characters of a broker's error text; longer ones end in `... (cut)`. Brokers' own have
    hundreds; searching 4,096 for addresses takes 2 ms."""
    held: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    """Messages that wait for their limit (docs/rules.md#above-a-limit). Default: a quarter of
    `buffered`, at most half of its rest; settable to three quarters of that. A producer gets no
    more than it leaves free: alone half, 1,000 messages of 32 KB."""
    collected: Annotated[int, _within(units.size, "64KiB", "16GiB")] | None = None
    """Incomplete frames that must be held whole. Default: an eighth of `buffered`, at least
    `collected_frame`. Where messages are limited or verified, clients are promised none larger:
    raise it for them."""
    handshakes: Annotated[int, _within(units.size, "1KiB", "16GiB")] | None = None
    """The same before connections are open, of frames beyond 4 KiB. Default: a sixteenth of
    `buffered`, at least `handshake_frame`."""
    remembered: Annotated[int, _within(units.size, "64KiB", "64GiB")] | None = None
    """What connections keep as long as clients want: docs/configuration.md#what-connections-keep.
    Default: twice `buffered`, of which one address may have half, enough for 200,000 producers."""
    buffered: Annotated[int, _within(units.size, "1MiB", "64GiB")] = 256 * MIB
    """All bytes that wait for slow peers, decisions or limits:
    docs/configuration.md#how-the-memory-is-divided."""

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
    """How bytes are moved."""

    buffer: Annotated[int, _within(units.size, "64KiB", "4MiB")] = 512 * KIB
    """The most that one read takes, in one buffer for the process. Larger ones make large messages
    hardly cheaper."""
    turn: Annotated[float, _within(units.seconds, "0.1ms", "100ms")] = 0.002
    """How long moving bytes may delay new connections and the admin listener."""
    socket_buffer: Annotated[int, _within(units.size, "4KiB", "64MiB")] | None = None
    """A fixed size of the kernel's buffers slows distant peers. Otherwise the kernel tunes them, up
    to 8 MB for peers that do not read."""


class Store(Part):
    """A Redis (from 6) or Valkey by which replicas share limits
    (docs/rules.md#shared-by-several-processes): one server, or the address of the one that takes
    writes; no Redis Cluster. Needs `pip install 'broker-gateway[valkey]'`, and a user
    (docs/configuration.md#the-user-of-the-store)."""

    url: Annotated[
        StoreAddress, PlainValidator(store.address), Field(examples=["redis://127.0.0.1:6379"])
    ]
    """Where the store is; whoever reaches it without a password can change limits."""
    username: Text | None = None
    """The user, if not `default`."""
    password_file: File | None = None
    """The password, 4 KiB at most. Read again for each connection."""
    ca_file: File | None = None
    """Authorities (PEM) for the store, whose certificate must name the host of `url`, in place of
    the machine's."""
    prefix: Annotated[str, PlainValidator(store.prefix)] = "gateway:"
    """Begins all keys: 64 letters, digits, and `.` `_` `:` `/` `-` at most. Gateways with the same
    prefix share limits."""
    timeout: Annotated[float, _within(units.seconds, "1ms", "5s")] = 0.05
    """The time of one call. A near store takes less than 1 ms; after half of a reservation's 100 ms
    a gateway does better alone."""


class Log(Part):
    """What goes to standard error."""

    format: Literal["json", "console", "auto"] = "auto"
    """`auto`: `console` on a terminal, else `json`."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is written. Traces are `info`."""
    burst: Annotated[int, _within(units.whole, 1, 1_000_000)] = 1000
    """`info` lines of one event in 10 s before it is folded. 100 connections a second are ordinary;
    a flood takes 0.3 MB."""
    longest_text: Annotated[int, _within(units.whole, 64, 65_536)] = 1024
    """Characters of one text, 16 times as many of a traceback; longer ones are cut and say their
    length. Real names and errors have less than 300."""
    queue: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 4 * MIB
    """Lines that wait for the log's reader, some 15,000 in bytes; more are dropped and counted."""
    queue_lines: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    """The same in lines: ten seconds of a folded flood."""
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"
    """Clients' names in log and audit; `pseudonymous`: another for each, the same while the process
    runs. They stay in `detail` (brokers' words), traces, and `first` of `limits_lost`."""


class Audit(Part):
    """A JSON line for each connection that ended and each right that was denied: time, listener,
    address, principal, method, reason, never a credential. Lines are folded as in the log; what a
    slow disk or reader does not take is dropped and counted (`gateway_audit_lines_dropped_total`).
    Rotate the file by `copytruncate`: it stays open."""

    file: Annotated[Path, _located("locate_new")] | None = None
    """Where lines are appended."""
    stream: Literal["stdout", "stderr"] = "stdout"
    """Where they go without a file."""


class UsageTopic(Part):
    """A topic that gets the records too (docs/usage.md#into-a-pulsar-topic). Needs `pip install
    'broker-gateway[topic]'`."""

    cluster: Name
    """The one of `clusters` whose `brokers`, `tls` and `credential` are used. It may be without
    listeners."""
    records: Annotated[Text, Field(examples=["persistent://ops/usage/records"])]
    """A persistent topic by its whole name, partitioned or not."""
    events: Text | None = None
    """Another one for events. Without it they stay in files."""


class Usage(Part):
    """Records of who used what, in files (docs/usage.md). Needs `pip install
    'broker-gateway[usage]'`."""

    folder: Annotated[Path, _located("locate_new_folder"), Field(examples=["usage"])]
    """Made if its parent is there. Replicas may share it."""
    gateway: Name | None = None
    """This gateway's name in records and files, another for each replica. Default: the host's (the
    pod's)."""
    interval: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    """The time of one record. Bills need minutes, recommended limits seconds."""
    close_after: Annotated[float, _within(units.seconds, "1s", "24h")] = 60.0
    """The age at which a file is closed, and so can be read."""
    close_size: Annotated[int, _within(units.size, "64KiB", "1GiB")] = 64 << 20
    """The same in compressed bytes."""
    disk: Annotated[int, _within(units.size, "1MiB", "1024GiB")] = 1 << 30
    """Closed files kept of each kind; the oldest are removed and counted. 1,000 keys in use take
    0.5 GB a day, a record 40 to 80 bytes."""
    waiting: Annotated[int, _within(units.size, "1MiB", "1GiB")] = 64 << 20
    """Records that wait for a slow disk, some 100,000; more are dropped and counted."""
    events: Flag = True
    """Whether connects, ends, failed authentications and denials are written too."""
    principals: Literal["plain", "masked", "pseudonymous"] = "plain"
    """Names of clients in records."""
    pseudonym_key_file: File | None = None
    """16 bytes or more, with `pseudonymous`. Gateways with the same key give a client the same
    name."""
    clients: Literal["network", "address", "masked"] = "network"
    """Where clients are: their /24 or /48 network, their address, or nothing."""
    client_ids: Flag = False
    """Whether records have Kafka's client ids, as events always do. Each makes records of its own:
    many where each process has another."""
    topic: UsageTopic | None = None
    """A topic that gets the records too."""

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
    """Where the collector takes OTLP over HTTP; `/v1/traces` and `/v1/logs` are appended."""
    ca_file: File | None = None
    """Authorities (PEM) for the collector, in place of the machine's."""
    token_file: File | None = None
    """A bearer token, read for each request. Only with `https`, or on this machine."""
    share: Annotated[float, _within(units.fraction, 0.0, 1.0)] = 1.0
    """The part of operations that have spans. 0.1 is enough for statistics; to find why a client
    cannot connect takes 1."""
    logs: Flag = False
    """Whether log lines are sent too, `otlp_failed` excepted."""
    queue: Annotated[int, _within(units.whole, 100, 100_000)] = 2048
    """Spans that wait for the collector, and as many lines, of 1 KB each; the oldest are dropped
    and counted."""
    deadline: Annotated[float, _within(units.seconds, "100ms", "30s")] = 3.0
    """The time of one request; a process that ends waits as long."""

    @model_validator(mode="after")
    def _keeps_token(self) -> Self:
        if self.token_file is not None and not units.is_secure(self.url):
            raise ValueError(
                "would show its token on the network; a url with https, or of this machine"
            )
        return self


class PolicyAgent(Part):
    """Open Policy Agent authorizes what no rule decides on listeners with `access: opa`
    (docs/rules.md#decisions-by-open-policy-agent): when something is opened or looked up, never for
    a frame. The rest of the connection goes on meanwhile."""

    url: Annotated[
        str,
        PlainValidator(units.https),
        Field(examples=["http://127.0.0.1:8181/v1/data/gateway/allow"]),
    ]
    """The rule that decides, in its Data API: `http://127.0.0.1:8181/v1/data/gateway/allow`."""
    ca_file: File | None = None
    """Authorities (PEM) for its server, in place of the machine's."""
    token_file: File | None = None
    """A bearer token, read for each question."""
    deadline: Annotated[float, _within(units.seconds, "10ms", "5s")] = 1.0
    """The time of one decision. Clients wait 10 s or more."""
    lasting: Annotated[float, _within(units.seconds, "1s", "1h")] = 10.0
    """How long a decision is known, as reconnecting clients need the same; a changed policy is
    noticed so late."""
    known: Annotated[int, _within(units.whole, 100, 1_000_000)] = 10_000
    """Decisions that are known, of 500 bytes each; the oldest gives way."""
    at_once: Annotated[int, _within(units.whole, 1, 1000)] = 16
    """Questions under way; one principal may have a quarter."""
    while_away: Literal["deny", "allow"] = "deny"
    """The decision while the agent gives none (true or false, with status 200, in time). It is
    asked again after a second."""


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
    """Health and metrics over HTTP."""
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
    """Bounds of memory, by process."""
    data_plane: DataPlane = DataPlane()
    """How bytes are moved."""
    log: Log = Log()
    """What goes to standard error."""
    audit: Audit | None = None
    """Where ends of connections and denials are written."""
    usage: Usage | None = None
    """Records of who used what."""
    otlp: Otlp | None = None
    """Spans and log lines for a collector."""
    store: Store | None = None
    """Where replicas share limits; without it each has its own."""
    opa: PolicyAgent | None = None
    """Open Policy Agent, which authorizes what no rule decides."""
    rules: Annotated[tuple[FileOrFolder, ...], _ENTRIES] = ()
    """Limits and rights (docs/rules.md), read again when they change."""

    def protocol_of(self, cluster: str) -> str:
        """Return the protocol of a cluster, which all its listeners share."""
        found = (it.protocol for it in self.listeners if it.cluster == cluster)
        return next(found, protocols.DEFAULT)
