"""A Pulsar cluster as a test fixture: ZooKeeper, one bookie, two brokers, each in its own JVM.

The brokers listen on two loopback addresses that no other process uses, on the same two ports: a
client that reads one of these has it from this cluster. The load manager decides how clients reach
a topic's owner:

`MODULAR`: lookups of unassigned topics are redirected, to the leader and then to the chosen broker.
An unloaded topic is closed without naming its next broker. `EXTENSIBLE`: any broker names the
owner, and tells clients of an unloaded topic the new one.
"""

import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from .admin import Admin, AdminError, topic_path
from .jars import java
from .ports import free_ports, is_free
from .processes import end, spawn, tail
from .standalone import JVM_OPTIONS, Settings, StartError

HOSTS = ("127.0.0.78", "127.0.0.79")
INNER_HOST = "127.0.0.1"  # of ZooKeeper and the bookie, unknown to clients
CLUSTER = "c1"
# All of them start in 11 to 13 s on two idle cores; this bounds each process on a busy machine.
READY_SECONDS = 300
# A broker hands its topics over before it stops.
STOP_SECONDS = 15
# Bundles of a new namespace: enough for both brokers to have some.
BUNDLES = 16
TEMPORARY_REDIRECT = 307

ZOOKEEPER: Settings = {
    "tickTime": 2000,
    "clientPortAddress": INNER_HOST,
    "admin.enableServer": "false",
    "maxClientCnxns": 0,
    "forceSync": "no",
}
BOOKIE: Settings = {
    "clusterName": CLUSTER,
    "bindAddress": INNER_HOST,
    "advertisedAddress": INNER_HOST,
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "nettyMaxFrameSizeBytes": 5 * 1024 * 1024 + 10 * 1024,
    "journalSyncData": "false",
    "dbStorage_writeCacheMaxSizeMb": 16,
    "dbStorage_readAheadCacheMaxSizeMb": 16,
    "httpServerEnabled": "false",
    # Without these two settings the bookie listens on every address of the machine.
    "listeningInterface": "lo",
    "allowLoopback": "true",
}
BROKER: Settings = {
    "clusterName": CLUSTER,
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    "managedLedgerCacheSizeMB": 16,
    "loadBalancerEnabled": "true",
    # Only tests move topics.
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadBalancerAutoUnloadSplitBundlesEnabled": "false",
    # A broker gets its share of bundles on a busy machine, too. (Above this part of its host's
    # processor or memory, which is 85 by default, it gets none.)
    "loadBalancerBrokerOverloadedThresholdPercentage": 1000,
    "defaultNumberOfNamespaceBundles": BUNDLES,
    "webSocketServiceEnabled": "false",
    "functionsWorkerEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "brokerShutdownTimeoutMs": 5000,
    "bookkeeperNumberOfChannelsPerBookie": 2,
    "bookkeeperUseV2WireProtocol": "true",
    "numIOThreads": 2,
    "numHttpServerThreads": 8,
    "numOrderedExecutorThreads": 2,
    # How long other processes wait for a killed broker.
    "metadataStoreSessionTimeoutMillis": 6000,
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": 5000,
}


class LoadManager(StrEnum):
    """The component that decides which broker has a topic."""

    MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
    EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


class Jvm:
    """One Java process, which logs to `name`.log in `directory`. `arguments`: JVM options, the
    class, and its arguments."""

    def __init__(self, jars: Path, directory: Path, name: str, arguments: Sequence[str]) -> None:
        self.log = directory / f"{name}.log"
        self._name = name
        self._command = [java(), *JVM_OPTIONS, "-cp", f"{jars}{os.sep}*", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self) -> None:
        """Start the process; `await_ready` waits for it."""
        assert not self.is_running
        self._process = spawn(self._command, self.log)

    def await_ready(self, is_ready: Callable[[], bool]) -> None:
        """Raises StartError if the process ended, or is not ready in time."""
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready():
            if self._process.poll() is not None:
                self._fail(f"ended with {self._process.returncode}")
            if time.monotonic() > deadline:
                self._fail(f"was not ready after {READY_SECONDS} s")
            time.sleep(0.1)

    def await_success(self) -> None:
        """Wait for a process that does one thing and ends."""
        assert self._process is not None
        try:
            code = self._process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self._fail(f"did not end within {READY_SECONDS} s")
        if code != 0:
            self._fail(f"ended with {code}")

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Stop the process that this object started; do nothing if it is down."""
        process, self._process = self._process, None
        if process is not None:
            end(process, patience)

    def tell(self, what: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(what)

    def _fail(self, how: str) -> None:
        raise StartError(f"{self._name} {how}:\n{tail(self.log)}")


class Broker:
    """One broker of a cluster, which may be stopped and started again."""

    def __init__(self, jvm: Jvm, host: str, port: int, web_port: int) -> None:
        self.jvm = jvm
        self.host = host
        self.admin = Admin(f"http://{host}:{web_port}")
        self.id = f"{host}:{web_port}"
        self.service_url = f"pulsar://{host}:{port}"
        # These also reveal the other broker: a client of one must not see the other either.
        self.traces = (*HOSTS, f":{port}", f":{web_port}")

    def start(self) -> None:
        """Return when the broker serves; raise StartError otherwise. Do nothing if it runs."""
        if not self.jvm.is_running:
            self.jvm.spawn()
            self.jvm.await_ready(self.admin.is_healthy)

    def stop(self) -> None:
        self.jvm.stop()

    def kill(self) -> None:
        """Kill the broker, which neither hands anything over nor closes connections."""
        self.jvm.tell(signal.SIGKILL)
        self.jvm.stop()

    def freeze(self) -> None:
        """Suspend the broker until `thaw`: connections stay open, and new ones get no answer."""
        self.jvm.tell(signal.SIGSTOP)

    def thaw(self) -> None:
        self.jvm.tell(signal.SIGCONT)

    def connections(self) -> int:
        """Return the number of connections accepted since the start."""
        lines = self.admin.request("GET", "metrics/").splitlines()
        name = "pulsar_connection_created_total_count"
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))


class Cluster:
    """The whole cluster. `directory` holds everything that it writes."""

    def __init__(self, jars: Path, directory: Path, load_manager: LoadManager) -> None:
        self._jars = jars
        self._directory = directory
        self._load_manager = load_manager
        (self._zookeeper_port,) = free_ports(INNER_HOST, 1)
        self.port, self.web_port = _shared_ports(2)
        self.brokers = [self._broker(host) for host in HOSTS]
        self._zookeeper = self._jvm("zookeeper", self._zookeeper_arguments())
        self._bookie = self._jvm("bookie", self._bookie_arguments())
        self._setup = self._jvm("setup", self._setup_arguments())

    # -- for tests ---------------------------------------------------------------------------

    @property
    def service_url(self) -> str:
        return "pulsar://" + ",".join(f"{host}:{self.port}" for host in HOSTS)

    @property
    def traces(self) -> tuple[str, ...]:
        """Return texts that reveal a broker."""
        return self.brokers[0].traces

    @property
    def admin(self) -> Admin:
        return self.brokers[0].admin

    @property
    def zookeeper(self) -> str:
        """Return its address, `host:port`."""
        return f"{INNER_HOST}:{self._zookeeper_port}"

    def fresh_namespace(self, bundles: int = BUNDLES) -> str:
        """Return a new namespace with unassigned topics. Topics of one bundle are always
        together."""
        namespace = f"public/{uuid.uuid4().hex[:12]}"
        body = {"bundles": {"numBundles": bundles}}
        self.admin.request("PUT", f"admin/v2/namespaces/{namespace}", body)
        return namespace

    def owner(self, topic: str, says: Broker | None = None) -> Broker:
        """Return the broker that serves a topic; an unassigned topic is assigned first. `says`: the
        broker to ask."""
        admin = says.admin if says else self.admin
        answer = admin.request("GET", f"lookup/v2/topic/{topic_path(topic)}")
        return next(broker for broker in self.brokers if broker.service_url == answer["brokerUrl"])

    def leader(self) -> Broker:
        """Return the broker that chooses owners."""
        answer = self.admin.request("GET", "admin/v2/brokers/leaderBroker")
        return next(broker for broker in self.brokers if broker.id == answer["brokerId"])

    def other(self, broker: Broker) -> Broker:
        return next(each for each in self.brokers if each is not broker)

    def move(self, topic: str, to: Broker) -> None:
        """Give another broker the bundle of a topic."""
        bundle = self.admin.request("GET", f"lookup/v2/topic/{topic_path(topic)}/bundle")
        what, query = f"{_namespace(topic)}/{bundle}", f"?destinationBroker={to.id}"
        if self._load_manager is LoadManager.EXTENSIBLE:
            self._unload(what, query)
        elif not _unloaded(self.leader(), what, query):
            # The leader has noted the new owner; the current owner does the unloading.
            self._unload(what)

    def place(self, topic: str, at: Broker) -> None:
        """Let a broker serve the bundle of a topic, wherever the load manager would have it."""
        if self.owner(topic) is not at:
            self.move(topic, at)
            assert self.owner(topic) is at

    def unload(self, namespace: str) -> None:
        """Close all topics of a namespace where they are; clients look them up again."""
        self._unload(namespace)

    def _unload(self, what: str, query: str = "") -> None:
        """Ask one broker after the other: brokers without the topics answer by a redirect."""
        assert any(_unloaded(broker, what, query) for broker in self.brokers), (
            f"no broker has {what}"
        )

    # -- starting and stopping ---------------------------------------------------------------

    def start(self) -> None:
        """Return when both brokers serve. Raises StartError, after which no process is left
        running."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._write_configurations()
        self._zookeeper.spawn()
        self._zookeeper.await_ready(lambda: self._zookeeper_says("ruok") == "imok")
        self._bookie.spawn()
        self._bookie.await_ready(lambda: "/ledgers/available/127" in self._zookeeper_says("dump"))
        self._setup.spawn()
        self._setup.await_success()
        for broker in self.brokers:
            broker.jvm.spawn()
        for broker in self.brokers:
            broker.jvm.await_ready(broker.admin.is_healthy)

    def stop(self) -> None:
        """Kill everything: its data is thrown away, so nothing needs to be handed over."""
        inner = (self._setup, self._bookie, self._zookeeper)
        for jvm in (*(broker.jvm for broker in self.brokers), *inner):
            jvm.stop(patience=0)

    def _zookeeper_says(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter words; empty while it does not
        listen."""
        try:
            with socket.create_connection((INNER_HOST, self._zookeeper_port), 2) as asked:
                asked.sendall(word.encode())
                return asked.makefile().read()
        except OSError:
            return ""

    # -- commands and configurations ---------------------------------------------------------

    @property
    def _metadata(self) -> str:
        return f"zk:{self.zookeeper}"

    def _jvm(self, name: str, arguments: Sequence[str]) -> Jvm:
        return Jvm(self._jars, self._directory, name, arguments)

    def _configuration(self, name: str) -> Path:
        return self._directory / f"{name}.conf"

    def _broker(self, host: str) -> Broker:
        arguments = ["org.apache.pulsar.PulsarBrokerStarter"]
        arguments += ["--broker-conf", str(self._configuration(host))]
        return Broker(self._jvm(f"broker-{host}", arguments), host, self.port, self.web_port)

    def _zookeeper_arguments(self) -> list[str]:
        words = "-Dzookeeper.4lw.commands.whitelist=ruok,dump"
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return ["-Xmx64m", words, main, str(self._configuration("zookeeper"))]

    def _bookie_arguments(self) -> list[str]:
        arguments = ["-Xmx256m", "org.apache.pulsar.PulsarStandaloneStarter", "--no-broker"]
        arguments += ["--no-functions-worker", "--no-stream-storage"]
        arguments += ["--config", str(self._configuration("bookie"))]
        arguments += ["--metadata-url", self._metadata, "--advertised-address", INNER_HOST]
        return [*arguments, "--bookkeeper-dir", str(self._directory / "bookie")]

    def _setup_arguments(self) -> list[str]:
        webs = ",".join(f"{host}:{self.web_port}" for host in HOSTS)
        arguments = ["org.apache.pulsar.PulsarClusterMetadataSetup", "--cluster", CLUSTER]
        arguments += ["--metadata-store", self._metadata]
        arguments += ["--configuration-metadata-store", self._metadata]
        arguments += ["--web-service-url", f"http://{webs}"]
        return [*arguments, "--broker-service-url", self.service_url]

    def _write_configurations(self) -> None:
        data: Settings = {
            "dataDir": str(self._directory / "zookeeper"),
            "clientPort": self._zookeeper_port,
        }
        self._write("zookeeper", ZOOKEEPER | data)
        self._write("bookie", BOOKIE)
        common: Settings = {
            "metadataStoreUrl": self._metadata,
            "configurationMetadataStoreUrl": self._metadata,
            "brokerServicePort": self.port,
            "webServicePort": self.web_port,
            "loadManagerClassName": self._load_manager.value,
        }
        for host in HOSTS:
            own: Settings = {"bindAddress": host, "advertisedAddress": host}
            self._write(host, BROKER | common | own)

    def _write(self, name: str, settings: Settings) -> None:
        lines = [f"{key}={value}" for key, value in settings.items()]
        self._configuration(name).write_text("\n".join(lines) + "\n")


def _unloaded(broker: Broker, what: str, query: str) -> bool:
    """Return True if the broker has closed these topics; False if it names another broker."""
    try:
        broker.admin.request("PUT", f"admin/v2/namespaces/{what}/unload{query}")
    except AdminError as error:
        if error.status != TEMPORARY_REDIRECT:
            raise
        return False
    return True


def _shared_ports(count: int) -> list[int]:
    """Return ports that are free on both brokers' addresses."""
    while True:
        found = free_ports(HOSTS[0], count)
        if all(is_free(host, port) for host in HOSTS for port in found):
            return found


def _namespace(topic: str) -> str:
    return topic.rpartition("://")[2].rpartition("/")[0]
