"""Makes the parts of each package from the configuration; `app` connects them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from ssl import TLSVersion
from typing import TYPE_CHECKING

import structlog
import trio

from gateway import __version__, protocols
from gateway.brokers.endpoints import Endpoints, NameEndpoints, PortEndpoints
from gateway.brokers.names import ChainedNames, Names, SealedNames, TemplateNames
from gateway.config.expressions import compiled
from gateway.errors import ConfigurationError
from gateway.identity import names
from gateway.identity.credential import (
    NoCredential,
    OwnCertificate,
    OwnCredential,
    PasswordFile,
    TokenFile,
)
from gateway.identity.each_principal import EachPrincipal
from gateway.listening.arrivals import Arrivals
from gateway.listening.proxied import Introduction, TrustedProxies
from gateway.plane.state import PlaneSettings
from gateway.system import machine
from gateway.telemetry.figures import ReloadFigures
from gateway.telemetry.witness import described
from gateway.verifiers import Needs, explained, fresh_secret
from gateway.wire.plugin import FrameBounds

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gateway.config import model
    from gateway.console.serving import ConsoleSettings
    from gateway.control.services import Verifier
    from gateway.control.shaper import Shaper
    from gateway.fleet.store import Store
    from gateway.fleet.supplier import Supplier
    from gateway.otlp.export import Export
    from gateway.plane.reactor import Reactor
    from gateway.policy.access import Access, Refused
    from gateway.reload.reloader import Reloader
    from gateway.remote.oauth import ClientCredentials
    from gateway.remote.opa import PolicyAgent
    from gateway.telemetry.audit import Audit
    from gateway.telemetry.witness import Witness
    from gateway.tls.files import KeyPair
    from gateway.tls.renewal import Renewal
    from gateway.tls.sides import ClientSide, ServerSide, Side
    from gateway.tls.stream import Shared
    from gateway.usage.recorder import Recording
    from gateway.usage.shipment import Brief
    from gateway.usage.shipping import Shipping


PARENT_TIMEOUT = 1.0
"""Seconds in which the workers' parent must answer; on a busy machine it may wait for CPU. The
parent has no other work: without an answer it has died, and its workers with it."""

_VERSIONS = {"1.2": TLSVersion.TLSv1_2, "1.3": TLSVersion.TLSv1_3}

SMALLEST_PSEUDONYM_KEY = 16
"""Bytes of a key for pseudonyms. A shorter key can be guessed, and the principals with it."""

SHORTEST_TOKEN, LONGEST_TOKEN = 16, 4096
"""Bytes of the console's token. A client that guesses it can end the gateway."""

LEAST_ADMIN_CONNECTIONS = 64
"""Admin connections for probes, scrapers and people even if clients may use up all descriptors."""


@dataclass(frozen=True, slots=True)
class RateLimiting:
    """The parts that limit and authorize, in a gateway with rules or a policy agent. `sharing`:
    None unless limits are shared with other processes."""

    shaper: Shaper
    access: Access
    reloader: Reloader
    figures: ReloadFigures
    sharing: Sharing | None


@dataclass(frozen=True, slots=True)
class Sharing:
    """The parts by which a gateway shares limits with other processes."""

    store: Store
    supplier: Supplier

    async def run(self) -> None:
        """Reserve parts of the shared limits at the store, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.store.run)
            nursery.start_soon(self.supplier.run)


@dataclass(frozen=True, slots=True)
class Inherited:
    """The parts that a worker gets from its parent process.

    `sockets`: listening sockets, by listener. `seals`: secrets that seal broker names, by cluster,
    used if no keys are configured; all workers have the same secrets, so that each worker can open
    the names that another worker sealed. `worker`: the worker's number, from 1 to `workers`.
    `secret`: see `Needs`.
    """

    sockets: Mapping[str, Sequence[socket.socket]]
    seals: Mapping[str, bytes]
    worker: int
    workers: int
    secret: bytes = field(default_factory=fresh_secret, repr=False)


def admin_connections(setting: int, clients: int) -> int:
    """Return how many admin connections are allowed: `setting`, or the file descriptors that
    `clients` client connections leave if these are fewer; but at least
    `LEAST_ADMIN_CONNECTIONS`."""
    descriptors = machine.descriptors()
    if descriptors is None:
        return setting
    left = descriptors - machine.descriptors_for(clients)
    return max(LEAST_ADMIN_CONNECTIONS, min(setting, left))


def plane_settings(configuration: model.Configuration) -> PlaneSettings:
    return PlaneSettings(
        buffer=configuration.data_plane.buffer,
        turn=configuration.data_plane.turn,
        idle=configuration.deadlines.idle,
        silent=configuration.deadlines.silent,
        stalled=configuration.deadlines.stalled,
        frame=configuration.deadlines.frame,
        memory=configuration.limits.waiting,
        held=configuration.limits.all_held,
        collected=configuration.limits.all_collected,
        opening=configuration.limits.all_handshakes,
        held_for=configuration.deadlines.held,
        expired=configuration.deadlines.expired,
    )


def frame_bounds(limits: model.ResourceLimits) -> FrameBounds:
    """Return the bounds of the frames of one connection, from the configured limits."""
    return FrameBounds(
        collected=limits.collected_frame,
        all_collected=limits.all_collected,
        command=limits.command,
        fields=limits.fields,
        names=limits.name,
        text=limits.text,
    )


def make_rate_limiting(
    configuration: model.Configuration,
    reactor: Reactor,
    store: Store | None,
    needs: Needs,
    witness: Witness | None = None,
) -> RateLimiting | None:
    """Return the parts that limit and authorize; None if neither rules nor a policy agent are
    configured. The packages of these parts are imported only if they are needed.

    `store`: where limits are shared if no store is configured. A configured store takes precedence:
    workers then share limits with the workers of other gateways too. `witness`: gets each denial.
    Raises `ConfigurationError`.
    """
    paths = configuration.rules
    if not paths and configuration.opa is None:
        return None
    from gateway.control.shaper import Shaper
    from gateway.policy.access import Access
    from gateway.policy.matching import RuleSet
    from gateway.policy.supply import Supply
    from gateway.reload.files import signs
    from gateway.reload.reloader import Reloader
    from gateway.rules import files

    seen = frozenset(signs(paths))  # before reading, so that any later change is noticed
    rules = files.rules_of(files.load(paths))
    compiled = RuleSet.compile(rules, time.time())
    timeout = PARENT_TIMEOUT
    if configuration.store is not None:
        from gateway.fleet.stores import store_of

        store, timeout = store_of(configuration.store), configuration.store.timeout
    supply = Supply() if store is not None else None
    defaults = {listener.name: listener.access for listener in configuration.listeners}
    agent = None
    if configuration.opa is not None:
        agent = make_agent(configuration.opa, needs.log)
        needs.agent = agent.figures
    access = Access(compiled, defaults, partial(_tell_denied, witness), agent)
    shaper = Shaper(compiled, reactor, supply, access)
    figures = ReloadFigures(time.time(), expired=len(compiled.expired))
    reloader = Reloader(paths, compiled, shaper.adopt, figures, seen)
    sharing = None
    if store is not None and supply is not None:
        from gateway.fleet.supplier import Supplier

        sharing = Sharing(store, Supplier(store, supply, shaper.supplied, timeout))
    return RateLimiting(shaper, access, reloader, figures, sharing)


def make_agent(settings: model.PolicyAgent, log: Callable[..., object]) -> PolicyAgent:
    """Return the client of the policy agent. Raises `ConfigurationError`."""
    try:
        from gateway.remote import opa
    except ModuleNotFoundError as missing:
        raise explained(missing) from None

    agent_settings = opa.Settings(
        settings.url,
        settings.deadline,
        settings.lasting,
        settings.known,
        settings.at_once,
        settings.while_away == "allow",
        settings.ca_file,
        settings.token_file,
    )
    return opa.PolicyAgent(agent_settings, log)


def make_audit(
    configuration: model.Configuration, inherited: Inherited | None = None
) -> Audit | None:
    """Return the writer of the audit log; None if no audit is configured. Raises
    `ConfigurationError`."""
    settings, bounds = configuration.audit, configuration.log
    if settings is None:
        return None
    from gateway.telemetry.audit import Audit, writer
    from gateway.telemetry.log import Style

    try:
        write = writer(settings.file, settings.stream)
    except OSError as error:
        raise ConfigurationError(
            f"The audit file {settings.file} cannot be written: {error.strerror}"
        ) from None
    always = {} if inherited is None else {"worker": inherited.worker}
    style = Style("json", "info", bounds.burst, bounds.longest_text, bounds.principals, always)
    return Audit(style, write, bounds.queue_lines, bounds.queue)


def make_recording(
    configuration: model.Configuration, inherited: Inherited | None = None
) -> Recording | None:
    """Return the writer of usage records; None if no usage records are configured. Raises
    `ConfigurationError`."""
    settings = configuration.usage
    if settings is None:
        return None
    try:
        from gateway.usage import recorder
        from gateway.usage.files import Closing
        from gateway.usage.meter import Naming, network_of
    except ModuleNotFoundError as missing:
        raise explained(missing) from None

    try:
        settings.folder.mkdir(exist_ok=True)
        settings.folder.joinpath("usage").mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"The folder of usage records {settings.folder} cannot be used: {error.strerror}"
        ) from None
    name = settings.gateway or machine.host_name()
    processes = machine.processes(configuration.workers)
    recording_settings = recorder.Settings(
        settings.folder,
        name if inherited is None else f"{name}-w{inherited.worker}",
        settings.interval,
        Closing(settings.close_after, settings.close_size, settings.disk // processes),
        settings.events,
        settings.waiting // processes,
        frozenset(_topics_of(settings)),
    )
    principals: Callable[[str], str] | None = None
    if settings.principals == "masked":
        principals = _masked
    elif settings.pseudonym_key_file is not None:
        from gateway.identity.keys import read_key_file

        what = f"The pseudonym key file {settings.pseudonym_key_file}"
        key = read_key_file(settings.pseudonym_key_file, what)
        if len(key) < SMALLEST_PSEUDONYM_KEY:
            raise ConfigurationError(f"{what} must hold {SMALLEST_PSEUDONYM_KEY} bytes or more")
        principals = recorder.pseudonyms(key)
    clients: Callable[[str], str] | None = network_of
    if settings.clients != "network":
        clients = str if settings.clients == "address" else None
    naming = Naming(principals, clients, client_ids=settings.client_ids)
    return recorder.Recording(recording_settings, naming)


def _topics_of(usage: model.Usage) -> dict[str, str]:
    """Return the topics that get records, by kind of records."""
    topic = usage.topic
    if topic is None:
        return {}
    topics = {"usage": topic.records}
    return topics if topic.events is None else topics | {"events": topic.events}


def make_shipping(
    configuration: model.Configuration, credential: Callable[[str], OwnCredential]
) -> Shipping | None:
    """Return the sender of usage records to topics; None if no topic is configured. `credential`:
    returns the gateway's credential for a cluster, by the cluster's name. Raises
    `ConfigurationError`.

    This process only checks that the client library is installed: it must not import the library
    (see `usage.client`).
    """
    brief = make_brief(configuration)
    if brief is None:
        return None
    if find_spec("pulsar") is None:
        raise explained(ModuleNotFoundError(name="pulsar"))
    from gateway.usage.shipping import Shipping

    assert configuration.usage is not None
    assert configuration.usage.topic is not None
    return Shipping(brief, credential(configuration.usage.topic.cluster).current)


def make_brief(configuration: model.Configuration) -> Brief | None:
    """Return the settings for the process that sends usage records: which records go to which
    topics, and how to reach the brokers of these topics; None if no topic is configured."""
    usage = configuration.usage
    if usage is None or usage.topic is None:
        return None
    from gateway.usage.shipment import Brief

    name = usage.topic.cluster
    cluster = configuration.clusters[name]
    tls = cluster.tls
    pair = None if tls is None else tls.certificate
    return Brief(
        folder=str(usage.folder.absolute()),
        gateway=usage.gateway or machine.host_name(),
        topics=_topics_of(usage),
        url=protocols.url_of(configuration.protocol_of(name), cluster.brokers),
        ca_file=_absolute(None if tls is None else tls.ca_file),
        certificate_file=_absolute(None if pair is None else pair.certificate_file),
        key_file=_absolute(None if pair is None else pair.key_file),
        verify_host=tls is None or tls.verify_host,
    )


def _absolute(path: Path | None) -> str:
    return "" if path is None else str(path.absolute())


def make_export(configuration: model.Configuration, worker: int | None = None) -> Export | None:
    """Return the sender of spans and log lines to an OpenTelemetry collector; None if no collector
    is configured. `worker`: the number of this worker; None: there are no workers. Raises
    `ConfigurationError`."""
    settings = configuration.otlp
    if settings is None:
        return None
    try:
        from gateway.otlp import export
    except ModuleNotFoundError as missing:
        raise explained(missing) from None
    from gateway.telemetry.log import Veiled

    if settings.ca_file is not None:
        import ssl

        try:
            ssl.create_default_context(cafile=settings.ca_file)
        except (OSError, ssl.SSLError):
            raise ConfigurationError(
                f"The file {settings.ca_file} of the collector's authorities holds no certificate "
                "in PEM form, or cannot be read"
            ) from None
    name, principals = machine.host_name(), configuration.log.principals
    return export.Export(
        export.Settings(
            url=settings.url,
            instance=name if worker is None else f"{name}-w{worker}",
            version=__version__,
            share=settings.share,
            lines=settings.logs,
            queue=settings.queue,
            deadline=settings.deadline,
            ca_file=settings.ca_file,
            token_file=settings.token_file,
            principal=str if principals == "plain" else Veiled(principals).name,
            longest=configuration.log.longest_text,
        )
    )


def console_settings(console: model.Console, shared: Shared) -> ConsoleSettings:
    """Return the settings of the console's server, with the token that its API requires, if it
    requires one. Raises `ConfigurationError`.

    The console's packages are imported only if a console is configured, because that takes 20 MB
    and 0.2 s.
    """
    try:
        from gateway.console.serving import ConsoleSettings
    except ModuleNotFoundError as missing:
        raise explained(missing) from None

    token = None
    if console.token_file is not None:
        what = f"The console's token file {console.token_file}"
        try:
            token = console.token_file.read_bytes()[: LONGEST_TOKEN + 1].strip()
        except OSError as error:
            raise ConfigurationError(f"{what} cannot be read: {error.strerror}") from None
        if not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN or b"\n" in token:
            raise ConfigurationError(
                f"{what} must hold one line of {SHORTEST_TOKEN} to {LONGEST_TOKEN} bytes"
            )
    tls = None
    if console.tls is not None:
        tls = _console_side(console.tls, shared)
    arrivals = make_arrivals(console)
    return ConsoleSettings(
        console.bind, console.connections, token, console.is_public, tls, arrivals
    )


def make_arrivals(settings: model.Admin | model.Console) -> Arrivals | None:
    """Return what lets connections in; None if any may come."""
    proxies, connects = settings.proxy_protocol, settings.each_address.connects
    if proxies is None and connects is None:
        return None
    return Arrivals(TrustedProxies(() if proxies is None else proxies.from_), connects)


def _masked(_: str) -> str:
    return "(masked)"


def _tell_denied(witness: Witness | None, denied: Refused) -> None:
    subject = denied.subject
    if witness is not None:
        witness.denied(subject, denied.right, denied.rule or None, shadow=denied.shadow)
    structlog.get_logger().info(
        "access_denied",
        listener=subject.listener,
        connection=subject.connection,
        client=subject.host,
        principal=subject.principal,
        right=denied.right.value,
        **described(subject),
        rule=denied.rule or None,
        **({"shadow": True} if denied.shadow else {}),
    )


def make_names(name: str, cluster: model.Cluster, secret: bytes | None = None) -> Names:
    """Return the object that translates between a cluster's brokers and the names that clients get
    for them. `secret`: seals these names if no keys are configured; None: a new random secret.
    Raises `ConfigurationError`."""
    names = cluster.names
    if names.template is not None:
        return TemplateNames(names.template.advertise, names.template.broker)
    from gateway.brokers.seal import SealKey  # which loads cryptography

    keys = names.sealed.keys if names.sealed is not None else ()
    sealing = [SealKey.from_file(key.file) for key in keys]
    sealing = sealing or [SealKey(secret) if secret else SealKey.random()]
    if cluster.brokers_are == "gateways":
        # Both gateways may have the same key, but their names must differ.
        return ChainedNames(SealedNames(f"{name} of gateways", sealing))
    return SealedNames(name, sealing)


def make_endpoints(listener: model.Listener) -> Endpoints | None:
    """Return the object that gives each broker an address of its own on a listener; None if brokers
    have no ids in the listener's protocol."""
    advertise = listener.advertise
    if advertise is None:
        return None
    if advertise.names is not None:
        names = advertise.names
        return NameEndpoints(names.template, names.host, names.port or listener.bind[0].port)
    ports = advertise.ports
    assert ports is not None  # as the configuration was checked
    port = ports.port or listener.bind[0].port
    return PortEndpoints(ports.host, port, ports.ids, ports.first_port)


def make_server_side(listener: model.Listener, shared: Shared) -> ServerSide | None:
    """Return the maker of TLS streams for a listener's clients; None if the listener has no TLS.
    Raises `ConfigurationError`.

    The code that reads certificates is imported only if there are some, because that takes 20 ms.
    """
    tls = listener.tls
    if tls is None:
        return None
    from gateway.tls.sides import ClientCertificates, ServerSettings, ServerSide

    settings = ServerSettings(
        pairs=[_key_pair(certificate) for certificate in tls.certificates],
        minimum=_VERSIONS[tls.minimum],
        client_certificates=ClientCertificates(tls.client_certificates),
        authorities=() if tls.client_ca_file is None else (tls.client_ca_file,),
        revocations=tls.crl_files,
    )
    return ServerSide(settings, shared)


def _console_side(tls: model.ConsoleTls, shared: Shared) -> ServerSide:
    from gateway.tls.files import KeyPair
    from gateway.tls.sides import ClientCertificates, ServerSettings, ServerSide

    authority = tls.client_ca_file
    settings = ServerSettings(
        [KeyPair(tls.certificate_file, tls.key_file)],
        client_certificates=ClientCertificates("none" if authority is None else "required"),
        authorities=() if authority is None else (authority,),
        application="http/1.1",
    )
    return ServerSide(settings, shared)


def make_client_side(cluster: model.Cluster, shared: Shared) -> ClientSide | None:
    """Return the maker of TLS streams to a cluster's brokers; None if the cluster has no TLS.
    Raises `ConfigurationError`."""
    if not cluster.has_tls:
        return None
    from gateway.config.model import ClusterTls
    from gateway.tls.sides import ClientSettings, ClientSide

    tls = cluster.tls or ClusterTls()
    settings = ClientSettings(
        authorities=() if tls.ca_file is None else (tls.ca_file,),
        pair=None if tls.certificate is None else _key_pair(tls.certificate),
        verify_host=tls.verify_host,
    )
    return ClientSide(settings, shared)


def make_introduction(listener: model.Listener, cluster: model.Cluster) -> Introduction | None:
    """Return the maker of the PROXY headers that tell a cluster's brokers about a listener's
    clients; None if brokers get no such headers."""
    settings = cluster.proxy_protocol
    if settings is None:
        return None
    if listener.tls is None:
        return Introduction(principal=settings.principal)
    from gateway.tls.files import common_name_of

    return Introduction(principal=settings.principal, common_name=common_name_of)


def make_renewal(sides: Mapping[str, Side]) -> Renewal | None:
    """Return the `Renewal` that reloads TLS files when they change; None if there is no TLS
    file."""
    if not sides:
        return None
    from gateway.tls.renewal import Renewal

    return Renewal(sides)


def _key_pair(certificate: model.Certificate) -> KeyPair:
    from gateway.tls.files import KeyPair

    return KeyPair(certificate.certificate_file, certificate.key_file)


def make_credential(
    settings: model.Credential | None, needs: Needs, log: Callable[..., object]
) -> OwnCredential:
    """Return the credential by which the gateway authenticates to a cluster's brokers. Raises
    `ConfigurationError`."""
    if settings is None:
        return NoCredential()
    if settings.token_file is not None:
        return TokenFile(settings.token_file, log)
    if settings.basic is not None:
        return PasswordFile(settings.basic.username, settings.basic.password_file, log)
    if settings.each_principal is not None:
        return EachPrincipal(settings.each_principal.passwords_file, log)
    if settings.oauth2 is None:
        return OwnCertificate()
    own = make_oauth(settings.oauth2, log)
    needs.tasks.append(own.run)
    return own


def shows_passwords(settings: model.Credential | None) -> bool:
    """Return whether passwords of this credential may be sent to brokers without TLS."""
    shown = None if settings is None else settings.basic or settings.each_principal
    return shown is not None and shown.without_tls


def make_oauth(settings: model.OAuth2, log: Callable[..., object]) -> ClientCredentials:
    """Return a credential whose token is fetched by OAuth 2.0 client credentials. Raises
    `ConfigurationError`.

    The HTTP client is imported only if it is needed, because that takes 60 ms.
    """
    try:
        from gateway.remote.fetching import Fetcher
        from gateway.remote.oauth import ClientCredentials
    except ModuleNotFoundError as missing:
        raise explained(missing) from None

    fetcher = Fetcher(settings.ca_file)
    if settings.token_url is not None:
        ask = partial(fetcher.token, settings.token_url)
    else:
        assert settings.issuer is not None  # as the configuration was checked
        ask = partial(fetcher.issued, settings.issuer)
    return ClientCredentials(
        ask,
        settings.client_id,
        settings.client_secret_file,
        scope=settings.scope,
        audience=settings.audience,
        log=log,
    )


def make_needs(log: Callable[..., object], inherited: Inherited | None = None) -> Needs:
    """Return the objects of this process that verifiers of credentials use, among them the secret
    that all workers share."""
    return Needs(log) if inherited is None else Needs(log, secret=inherited.secret)


def make_verifiers(identity: model.Identity, needs: Needs) -> dict[str, Verifier]:
    """Return the verifiers of clients' credentials, by the authentication method that clients
    state. Raises `ConfigurationError`.

    The packages of verifiers are imported only if they are needed: those for tokens alone take 12
    MB and 40 ms.
    """
    verifiers: dict[str, Verifier] = {}
    for name, settings in identity.methods().items():
        try:
            verifier = import_module(settings.verified_by).make_verifier(settings, needs)
        except ModuleNotFoundError as missing:
            raise explained(missing) from None
        verifiers |= dict.fromkeys(settings.shown_as or (name,), verifier)
    return verifiers


def make_naming(identity: model.Identity) -> Callable[[str], str | None]:
    """Return the function that maps the name of an authenticated client to its principal. The
    function returns None for a name that no mapping rule accepts."""
    rules = [
        names.Mapping(compiled(mapping.match), mapping.principal) for mapping in identity.principals
    ]
    return partial(names.mapped, rules=rules)
