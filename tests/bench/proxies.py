"""The compared proxies: how each is configured, started and stopped."""

import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType

from tests.bench.load import BenchError
from tests.bench.machine import ANY, Cores, Interpreter, family, memory
from tests.bench.rows import Door
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail
from tests.support.looking import reading_feed

HOST = "127.0.0.1"
CHECKOUT = Path(__file__).resolve().parents[2]

HAPROXY_BUFFER = 16384
"""Bytes; HAProxy's own default, which nearly everybody uses."""

LOOK = 0.001
"""Seconds between two checks if a proxy listens. Before it listens, a check costs it nothing."""


@dataclass(frozen=True)
class Recipe:
    """How to run one proxy.

    `hello`: the clients' `proxy_to_broker_url` in CONNECT. `patience`: seconds until it must
    listen. `settle`: seconds of load before it is measured; a JVM compiles while it runs. `serves`:
    what it takes at `port`. `doors`: other ports, with TLS, for Kafka or TubeMQ. `console`: its
    address, where somebody reads the feed. `renumbers`: it gives Kafka's requests ids of its own.
    """

    name: str
    command: tuple[str, ...]
    port: int
    log: Path
    hello: str = "-"
    environment: dict[str, str] = field(default_factory=dict)
    metrics: str | None = None
    patience: float = 20.0
    settle: float = 0.3
    serves: frozenset[Door] = frozenset({Door.PLAIN})
    doors: dict[Door, int] = field(default_factory=dict)
    console: str | None = None
    renumbers: bool = False

    def has(self, door: Door) -> bool:
        """Return whether this proxy can be measured at a door."""
        return door in self.serves or door in self.doors


class Proxy:
    """One running proxy on its core, or on ANY. `seconds_to_listen`: from its start."""

    def __init__(self, recipe: Recipe, core: int) -> None:
        self.recipe = recipe
        pinned = () if core == ANY else ("taskset", "-c", str(core))
        command = [*pinned, *recipe.command]
        began = time.monotonic()
        self._process = spawn(command, recipe.log, os.environ | recipe.environment)
        try:
            self._wait(began + recipe.patience)
        except BaseException:
            end(self._process, 0, signal.SIGKILL)
            raise
        self.seconds_to_listen = time.monotonic() - began

    def target(self, door: Door = Door.PLAIN) -> str:
        """Return the address of one of its doors."""
        return f"{HOST}:{self.recipe.doors.get(door, self.recipe.port)}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pids(self) -> list[int]:
        """Return its process and those that it has started."""
        return family(self.pid)

    def stop(self) -> None:
        """Stop the proxy, and wait for its end."""
        end(self._process, 10.0)

    def memory(self) -> dict[str, int]:
        """Return the bytes by the names of smaps_rollup."""
        return memory(self.pid)

    def messages(self) -> int | None:
        """Return the number of messages that the proxy has counted; None if it does not count."""
        if self.recipe.metrics is None:
            return None
        with urllib.request.urlopen(self.recipe.metrics, timeout=10) as response:
            lines = response.read().decode().splitlines()
        return sum(
            int(float(line.rpartition(" ")[2]))
            for line in lines
            # Older versions have the figures of topics here.
            if line.startswith(("gateway_tenant_messages_total", "gateway_topic_messages_total"))
        )

    def _wait(self, deadline: float) -> None:
        while not self._listens():
            if self._process.poll() is not None:
                raise BenchError(f"{self.recipe.name} ended at once:\n{tail(self.recipe.log)}")
            if time.monotonic() > deadline:
                raise BenchError(f"{self.recipe.name} does not listen:\n{tail(self.recipe.log)}")
            time.sleep(LOOK)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.recipe.port)) == 0


@contextmanager
def running(recipe: Recipe, cores: Cores) -> Iterator[Proxy]:
    """Yield a running proxy. Whoever reads the feed of its console runs on the core of the load."""
    proxy = Proxy(recipe, cores.proxy)
    try:
        with nullcontext() if recipe.console is None else reading_feed(recipe.console):
            yield proxy
    finally:
        proxy.stop()


# -- certificates ----------------------------------------------------------------------------

_KEYS = {Door.ECDSA: ("ec", "ec_paramgen_curve:P-256"), Door.RSA: ("rsa", "rsa_keygen_bits:2048")}

Shown = Mapping[Door, Path]
"""A file with a certificate and its key, by door."""


def certificates(folder: Path) -> Shown:
    """Make certificates that sign themselves. Raises MissingToolError."""
    program = shutil.which("openssl")
    if program is None:
        raise MissingToolError("openssl")
    made = {}
    for door, (kind, parameter) in _KEYS.items():
        made[door] = folder / f"{kind}.pem"
        command = [program, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        command += ["-newkey", kind, "-pkeyopt", parameter]
        command += ["-keyout", str(made[door]), "-out", str(folder / "certificate")]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        with made[door].open("ab") as file:
            file.write((folder / "certificate").read_bytes())
    return made


RELAYED = frozenset({Door.PLAIN, Door.KAFKA, Door.TUBEMQ})
"""What a proxy serves at its one port if it relays bytes, whatever they mean."""

# -- HAProxy ---------------------------------------------------------------------------------

_HAPROXY = """\
global
    nbthread {threads}
    maxconn {connections}
{process}defaults
    mode tcp
{proxies}    timeout connect 5s
    timeout client 10m
    timeout server 10m
listen bench
    bind {bind}
    server broker {broker}
"""


# The broker is dialled once the client has sent something, as by the gateway. Without the last rule
# it would be dialled for clients that close before.
_HAPROXY_TLS = """\
listen {name}
    bind {bind} ssl crt {file}
    tcp-request inspect-delay 1m
    tcp-request content accept if {{ req.len gt 0 }}
    tcp-request content reject
    server broker {broker}
"""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What HAProxy does otherwise than by default. `process`, `proxies`: lines of its sections
    `global` and `defaults`."""

    threads: int = 1
    process: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()


def haproxy(
    folder: Path,
    broker: str,
    connections: int,
    shown: Shown = MappingProxyType({}),
    name: str = "HAProxy",
    tuning: Tuning = Tuning(),
) -> Recipe:
    """Return HAProxy's recipe: TCP mode, one thread, defaults otherwise. Raises
    MissingToolError."""
    program = installed("haproxy")
    if program is None:
        raise MissingToolError("HAProxy", "is not installed (Debian's package is haproxy)")
    (port,) = free_ports(HOST, 1)
    file = folder / f"{name}.cfg"
    text = _HAPROXY.format(
        bind=f"{HOST}:{port}",
        broker=broker,
        connections=connections,
        threads=tuning.threads,
        process=_lines(tuning.process),
        proxies=_lines(tuning.proxies),
    )
    doors = dict(zip(shown, free_ports(HOST, len(shown)), strict=True))
    for door, pem in shown.items():
        bind = f"{HOST}:{doors[door]}"
        text += _HAPROXY_TLS.format(name=door.name, bind=bind, file=pem, broker=broker)
    file.write_text(text)
    log = folder / f"{name}.log"
    command = (program, "-db", "-f", str(file))
    return Recipe(name, command, port, log, serves=RELAYED, doors=doors)


def installed(program: str) -> str | None:
    """Return the path of a program of Debian's that users may not have in theirs."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def _lines(settings: tuple[str, ...]) -> str:
    return "".join(f"    {line}\n" for line in settings)


def haproxy_version(recipe: Recipe) -> str:
    """Return the version as Debian writes it, without the address of its site."""
    said = subprocess.run(
        [recipe.command[0], "-v"], check=True, capture_output=True, text=True, timeout=10
    )
    return " ".join(said.stdout.split()[2:3])


# -- the gateway -----------------------------------------------------------------------------

_GATEWAY = """\
version: 1
listeners:
  - {{name: bench, bind: "{bind}", cluster: bench{more}}}
{doors}clusters:
  bench: {{brokers: "pulsar://{broker}"}}
{clusters}limits: {{connections: {connections}, unauthenticated: {connections}}}
log: {{format: json}}
"""


_KAFKA = """\
  - name: kafka
    protocol: kafka
    bind: "{bind}"
    advertise: {{ports: {{host: {host}, ids: 1, first_port: {port}}}}}
    cluster: kafka
"""

_KAFKA_CLUSTER = """\
  kafka: {{brokers: "kafka://{broker}"}}
"""

_TUBEMQ = """\
  - name: tubemq
    protocol: tubemq
    bind: "{bind}"
    advertise: {{ports: {{host: {host}, ids: 1-1, first_port: {port}}}}}
    cluster: tubemq
"""

# The load generator is the master too, which says where the broker is.
_TUBEMQ_CLUSTER = """\
  tubemq: {{brokers: "tubemq://{broker}"}}
"""


_GATEWAY_TLS = """\
  - name: {name}
    bind: "{bind}"
    cluster: bench
    tls: {{certificates: [{{certificate_file: "{file}", key_file: "{file}"}}]}}
"""


_ADMIN = 'admin: {{bind: "{admin}"}}\n'

_EVERYTHING = """\
console: {{bind: "{console}"}}
usage: {{folder: "{folder}/usage"}}
audit: {{file: "{folder}/audit.jsonl"}}
"""


class Observed(Enum):
    """What a gateway tells of its clients. COUNTS: metrics, for its admin listener. NOTHING: it
    counts, and nobody can read that. EVERYTHING: metrics, those of principals among them; usage
    records and events, an audit, and a console whose feed somebody reads."""

    COUNTS = auto()
    NOTHING = auto()
    EVERYTHING = auto()


_NAMED = ", identity: {mode: verify, anonymous: {principal: load}}"
"""The load generator shows no credential, and clients without a principal have no metrics of their
own. EVERYTHING and NOTHING differ in nothing else than what they tell, so both have it."""

_RULES = """\
version: 1
rules:
  - {id: load, match: {namespace: public/default, topic: "lo*"}, allow: [produce, consume]}
  - {id: secret, match: {topic: "secret*"}, deny: lookup}
"""


def gateway(
    folder: Path,
    broker: str,
    connections: int,
    interpreter: Interpreter,
    shown: Shown = MappingProxyType({}),
    checkout: Path = CHECKOUT,
    name: str = "gateway",
    *,
    guarded: bool = False,
    observed: Observed = Observed.COUNTS,
) -> Recipe:
    """Return the gateway's recipe as a sidecar: pass-through, counting, with its admin listener.
    `guarded`: clients may do what rules allow. Otherwise `observed` than by COUNTS, it verifies
    clients, and lets all in."""
    folder = folder / name
    folder.mkdir()
    port, admin, console, kafka, kafka_one, tubemq, tubemq_one = free_ports(HOST, 7)
    speaks_all = observed is Observed.COUNTS and not guarded
    speaks_kafka = speaks_all and _knows(checkout, "kafka")
    speaks_tubemq = speaks_all and _knows(checkout, "tubemq")
    has_admin, has_console = observed is not Observed.NOTHING, observed is Observed.EVERYTHING
    more = ", access: closed, unknown: mask" if guarded else ""
    file = folder / "gateway.yaml"
    doors = dict(zip(shown, free_ports(HOST, len(shown)), strict=True))
    file.write_text(
        _GATEWAY.format(
            bind=f"{HOST}:{port}",
            more=more if observed is Observed.COUNTS else more + _NAMED,
            clusters=_KAFKA_CLUSTER.format(broker=broker) * speaks_kafka
            + _TUBEMQ_CLUSTER.format(broker=broker) * speaks_tubemq,
            doors="".join(
                _GATEWAY_TLS.format(name=door.name, bind=f"{HOST}:{doors[door]}", file=pem)
                for door, pem in shown.items()
            )
            + _KAFKA.format(bind=f"{HOST}:{kafka}", host=HOST, port=kafka_one) * speaks_kafka
            + _TUBEMQ.format(bind=f"{HOST}:{tubemq}", host=HOST, port=tubemq_one) * speaks_tubemq,
            broker=broker,
            connections=connections,
        )
        + _ADMIN.format(admin=f"{HOST}:{admin}") * has_admin
        + _EVERYTHING.format(console=f"{HOST}:{console}", folder=folder) * has_console
    )
    if guarded:
        (folder / "rules.yaml").write_text(_RULES)
        with file.open("a") as settings:
            settings.write("rules: rules.yaml\n")
    return Recipe(
        name,
        (interpreter.path, "-m", "gateway", "run", str(file)),
        port,
        folder / "gateway.log",
        environment={
            "PYTHONPATH": _python_path(folder, interpreter, checkout),
            "PYTHONDONTWRITEBYTECODE": "",  # set, it would have each start compile the modules
        },
        metrics=f"http://{HOST}:{admin}/metrics" if has_admin else None,
        doors=doors
        | ({Door.KAFKA: kafka} if speaks_kafka else {})
        | ({Door.TUBEMQ: tubemq_one} if speaks_tubemq else {}),
        console=f"{HOST}:{console}" if has_console else None,
    )


def _knows(checkout: Path, protocol: str) -> bool:
    """Return whether the gateway of a checkout serves a protocol, which older ones may not."""
    return (checkout / "gateway" / "wire" / protocol / "plugin.py").exists()


def _python_path(folder: Path, interpreter: Interpreter, checkout: Path) -> str:
    """Return the path of a checkout, and of this interpreter's packages if they fit the other one.

    The path omits rich, which only a tool of the tests needs and which structlog loads if present.
    """
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "rich.py").write_text('raise ImportError("not in production")\n')
    packages = [sysconfig.get_path("purelib")] if interpreter.has_our_packages else []
    return os.pathsep.join([str(hidden), str(checkout), *packages])
