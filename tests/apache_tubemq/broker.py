"""A real TubeMQ: masters, of which one is active, and two brokers that share each topic."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.apache_tubemq.admin import TOKEN, Admin, AdminError
from tests.apache_tubemq.jars import LOGGING, classpath
from tests.real.brokers.jars import Say, java
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

MASTER_HOSTS = ("127.0.0.96", "127.0.0.93", "127.0.0.92")
"""Of up to three masters: the active one needs another one's vote, so that two cannot lose one."""

BROKER_HOSTS = {1: "127.0.0.97", 2: "127.0.0.98"}
"""By id. A master takes one broker of an address.

No other process uses these addresses: a client that reads one of them has it from this TubeMQ."""

EVERYWHERE = "0.0.0.0"
"""Where a port must be free: whatever a master or broker is told, it listens on all addresses. The
first that finds port 9081 free also takes that, which no setting changes; others log that they do
without."""

PATIENCE_S = 300.0
STOP_S = 60.0
"""A broker takes 5 to 7 s to leave, and longer on a busy machine. Killed before, it would lose what
it has not written."""

SMALL = (
    "-Xms32m",
    "-Xmx256m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)
MASTER = "QuickMaster"
BROKER = "org.apache.inlong.tubemq.server.tools.BrokerStartup"

MASTER_SETTINGS = """\
[meta_bdb]
repGroupName=tests
repNodeName={name}
repNodePort={store}
repHelperHost={first}
metaDataPath={folder}/{name}-metadata
[master]
hostName={host}
port={port}
webPort={web}
webResourcePath={folder}/web
confModAuthToken={token}
firstBalanceDelayAfterStartMs=500
consumerBalancePeriodMs=1000
stepChgWaitPeriodMs=300
onlineOnlyReadToRWPeriodMs=300
offlineOnlyReadToRWPeriodMs=300
"""
"""The last section is the master's, so what a test adds is of it, or of sections that follow."""

BROKER_SETTINGS = """\
[broker]
brokerId={id}
hostName={host}
port={port}
webPort={web}
masterAddressList={master}
primaryPath={folder}/broker-{id}
heartbeatPeriodMs=500
maxSegmentSize=67108864
maxIndexSegmentSize=22020096
transferSize=524288
"""

PAGES = {
    "velocity.properties": "resource.loaders = file\n"
    "resource.loader.file.path = {folder}/web/templates\n",
    "templates/layout/default.vm": "$!screen_placeholder",
    "templates/screen/webapi.vm": "$!sb",
}
"""What the API by HTTP needs below `webResourcePath`: pages that say what it says, and no more."""

DEFAULTS = {
    "deletePolicy": "delete,168h",
    "numPartitions": 1,
    "unflushThreshold": 1000,
    "unflushInterval": 10000,
    "acceptPublish": "true",
    "acceptSubscribe": "true",
}
"""What a broker does with topics that say nothing else."""


class Place(NamedTuple):
    """The ports of a master: for clients and brokers, of its API, and for other masters."""

    port: int
    web: int
    store: int


class Process:
    """A master or a broker, as a Java process that may be started again. `log`: takes all that it
    says."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it, and return at once."""
        assert self._process is None, "runs already"
        self._process = spawn(self._command, self.log)

    def await_ready(self, is_ready: Callable[[], bool]) -> None:
        """Return when it is ready. Raises AssertionError if it has ended, or is late."""
        until = time.monotonic() + PATIENCE_S
        while not is_ready():
            assert self._process is not None
            assert self._process.poll() is None, tail(self.log)
            assert time.monotonic() < until, tail(self.log)
            time.sleep(0.05)

    def stop(self, how: signal.Signals) -> None:
        """End it, or do nothing if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_S, how)


class TubeMQ:
    """Masters and two brokers, of which each has some partitions of each topic.

    `topics`: their names. `partitions`: of a topic at each broker. `more_master`, `more_broker`:
    further settings, lines that replace others of the same name. `masters`: how many. `classpath`:
    what clients run with, see `clients.py`."""

    def __init__(
        self,
        folder: Path,
        say: Say,
        topics: Sequence[str] = ("demo",),
        more_master: str = "",
        more_broker: str = "",
        partitions: int = 2,
        masters: int = 1,
    ) -> None:
        """Raises MissingToolError without Java or, the first time, Maven; FetchError."""
        self.classpath = classpath(say)
        self._folder, self._topics, self._partitions = folder, topics, partitions
        hosts = MASTER_HOSTS[:masters]
        ports = iter(free_ports(EVERYWHERE, 3 * masters + 2 * len(BROKER_HOSTS)))
        self._ports = {id: next(ports) for id in BROKER_HOSTS}
        self._webs = {id: next(ports) for id in BROKER_HOSTS}
        self._places = {host: Place(next(ports), next(ports), next(ports)) for host in hosts}
        self._admins = {host: Admin(f"{host}:{it.web}") for host, it in self._places.items()}
        self._write_pages()
        self._masters = {
            host: self._process_of(
                f"master-{host}", MASTER, self._master_settings(host) + more_master
            )
            for host in hosts
        }
        self._brokers = {
            id: self._process_of(f"broker-{id}", BROKER, self._broker_settings(id) + more_broker)
            for id in BROKER_HOSTS
        }
        self._is_configured = False

    # -- for tests ---------------------------------------------------------------------------

    @property
    def master(self) -> str:
        """Return where clients begin: `host:port` of each master."""
        return ",".join(f"{host}:{it.port}" for host, it in self._places.items())

    @property
    def active(self) -> str:
        """Return the host of the active master. Raises AssertionError if there is none."""
        found = [host for host in self._admins if self._is_active(host)]
        assert found, "no master is active"
        return found[0]

    @property
    def admin(self) -> Admin:
        """Return what asks the active master."""
        return self._admins[self.active]

    @property
    def service_url(self) -> str:
        """See `Upstream`."""
        return f"tubemq://{self.master}"

    @property
    def brokers(self) -> Mapping[int, tuple[str, int]]:
        """Return the host and port of each broker, by its id."""
        return {id: (host, self._ports[id]) for id, host in BROKER_HOSTS.items()}

    @property
    def traces(self) -> tuple[str, ...]:
        """See `Upstream`."""
        ports = (*(it.port for it in self._places.values()), *self._ports.values())
        return (*self._masters, *BROKER_HOSTS.values(), *(f":{port}" for port in ports))

    def start(self) -> None:
        """Return when all partitions are served, or raise AssertionError with nothing running."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all at once: nothing has to be kept."""
        for process in (*self._brokers.values(), *self._masters.values()):
            process.stop(signal.SIGKILL)

    def kill_master(self) -> None:
        """End the active master; return when another one is active, and all brokers serve."""
        gone = self.active
        self._masters[gone].stop(signal.SIGKILL)
        others = [host for host in self._masters if host != gone]
        self._masters[others[0]].await_ready(lambda: any(map(self._is_active, others)))
        for id, process in self._brokers.items():
            process.await_ready(partial(self._is_serving, id))

    def stop_broker(self, id: int, how: signal.Signals = signal.SIGTERM) -> None:
        """End a broker. Asked by SIGTERM, it takes its leave of the master first, some seconds
        long; killed, it loses messages that it has not written, and the master notices when its
        heartbeats have been missing for `brokerHeartbeatTimeoutMs`."""
        self._brokers[id].stop(how)

    def start_broker(self, id: int) -> None:
        """Start a stopped broker, and return when it serves its partitions."""
        before = self._registrations(id)
        self._brokers[id].launch()
        self._await_serving(id, before)

    # -- starting ----------------------------------------------------------------------------

    def _start(self) -> None:
        for host, process in self._masters.items():
            process.launch()
            if host == MASTER_HOSTS[0]:  # the others ask it to let them in
                process.await_ready(lambda: self._is_active(MASTER_HOSTS[0]))
        if not self._is_configured:
            self._configure()
            self._is_configured = True
        before = {id: self._registrations(id) for id in self._brokers}
        for process in self._brokers.values():
            process.launch()
        for id in self._brokers:
            self._await_serving(id, before[id])

    def _is_active(self, host: str) -> bool:
        try:
            self._admins[host].query("admin_query_broker_run_status")
        except (OSError, AdminError, ValueError):  # it does not listen, or another one is
            return False
        return True

    def _configure(self) -> None:
        """Tell the master its brokers and topics, which it remembers."""
        for id, host in BROKER_HOSTS.items():
            where = {"brokerIp": host, "brokerPort": self._ports[id]}
            where["brokerWebPort"] = self._webs[id]
            fields = DEFAULTS | where | {"brokerId": id, "createUser": "tests"}
            self.admin.change("admin_add_broker_configure", **fields)
        ids = ",".join(map(str, BROKER_HOSTS))
        for topic in self._topics:
            fields = {"topicName": topic, "brokerId": ids, "numPartitions": self._partitions}
            self.admin.change("admin_add_new_topic_record", createUser="tests", **fields)
        self.admin.change("admin_online_broker_configure", brokerId=ids, modifyUser="tests")

    def _await_serving(self, id: int, before: int) -> None:
        """Return when a broker has come, and serves its partitions. `before`: how often it had come
        earlier, since the master has not yet noticed that a killed one is gone."""
        self._brokers[id].await_ready(
            lambda: self._registrations(id) > before and self._is_serving(id)
        )

    def _registrations(self, id: int) -> int:
        """Return how often a broker has come, as the master says."""
        logs = [it.log for it in self._masters.values() if it.log.exists()]
        return sum(it.read_text(errors="replace").count(f"[Broker Register] {id}:") for it in logs)

    def _is_serving(self, id: int) -> bool:
        """Return whether a broker serves its partitions of all topics."""
        admin = self.admin
        if not admin.is_running(id):
            return False
        serving = admin.serving(id)
        return all(serving.get(topic) == self._partitions for topic in self._topics)

    # -- settings ----------------------------------------------------------------------------

    def _process_of(self, name: str, runs: str, settings: str) -> Process:
        file = self._folder / f"{name}.ini"
        file.write_text(settings)
        command = [java(), *SMALL, LOGGING, "-cp", self.classpath, runs, "-f", str(file)]
        return Process(command, self._folder / f"{name}.log")

    def _master_settings(self, host: str) -> str:
        place, first = self._places[host], MASTER_HOSTS[0]
        return MASTER_SETTINGS.format(
            name=f"master-{host}",
            host=host,
            port=place.port,
            web=place.web,
            store=place.store,
            first=f"{first}:{self._places[first].store}",
            folder=self._folder,
            token=TOKEN,
        )

    def _broker_settings(self, id: int) -> str:
        return BROKER_SETTINGS.format(
            id=id,
            host=BROKER_HOSTS[id],
            port=self._ports[id],
            web=self._webs[id],
            master=self.master,
            folder=self._folder,
        )

    def _write_pages(self) -> None:
        for name, text in PAGES.items():
            file = self._folder / "web" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(folder=self._folder))
