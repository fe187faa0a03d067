"""A real Kafka of one node, which is its own controller (KRaft)."""

from __future__ import annotations

import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.brokers.jars import Say, jars_of, java, run_tool
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.94"
"""No other process uses this address: a client that reads it has it from this broker."""

VERSION = "4.3.1"
OLDER = ("3.9", "2.8")
"""Releases of which there are brokers too."""

PATIENCE_S = 300.0
"""Seconds for which a start or an end is waited for: a busy machine takes a minute."""

READY = "Kafka Server started"

SMALL = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)

SETTINGS = """\
process.roles=broker,controller
node.id={id}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor={replicas}
offsets.topic.num.partitions=3
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=3
default.replication.factor={replicas}
min.insync.replicas=1
num.partitions=3
group.initial.rebalance.delay.ms=0
num.network.threads=1
num.io.threads=2
background.threads=1
log.cleaner.dedupe.buffer.size=2097152
replica.lag.time.max.ms=4000
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
controlled.shutdown.enable=true
"""


def kafka_jars(say: Say, older: str = "") -> Path:
    """Return the folder of a broker's jars, fetched once. `older`: the release, if it is not the
    latest. Raises MissingToolError without Java or, the first time, Maven; FetchError."""
    java()
    if older:
        return jars_of(HERE / f"broker-{older}.pom.xml", f"kafka-{older}", "", "40 MB", say)
    return jars_of(HERE / "broker.pom.xml", f"kafka-{VERSION}", "", "44 MB", say)


@dataclass(frozen=True)
class Member:
    """The place of a node in its cluster. `cluster`: its id. `ports`: of all nodes, of brokers and
    of controllers. `id`: from 1."""

    cluster: str
    ports: tuple[tuple[int, int], ...]
    id: int = 1

    @property
    def voters(self) -> str:
        """Return the nodes that choose a controller."""
        listed = enumerate(self.ports, start=1)
        return ",".join(f"{id}@{HOST}:{controller}" for id, (_, controller) in listed)


def members(count: int) -> list[Member]:
    """Return the nodes of a new cluster."""
    cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    found = free_ports(HOST, 2 * count)
    ports = tuple(zip(found[::2], found[1::2], strict=True))
    return [Member(cluster, ports, id) for id in range(1, count + 1)]


class Kafka:
    """A context in which a broker serves. `port`: at `HOST`; `controller`: its port as one. `more`:
    further settings, and `users`: what formats its storage with users of SCRAM. `member`: of a
    cluster of several. `jars`: Kafka's own, with its tools. `older`: see `kafka_jars`. `jvm`:
    further options of the JVM, which prevail."""

    def __init__(
        self,
        folder: Path,
        say: Say,
        more: str = "",
        users: Sequence[str] = (),
        member: Member | None = None,
        older: str = "",
        jvm: Sequence[str] = (),
    ) -> None:
        """Raises MissingToolError without Java or, the first time, Maven; FetchError."""
        jars = kafka_jars(say, older)
        member = member or members(1)[0]
        self.port, self.controller = member.ports[member.id - 1]
        self._log = folder / "kafka.log"
        self._starts = 0
        settings = folder / "server.properties"
        told = SETTINGS.format(
            id=member.id,
            voters=member.voters,
            host=HOST,
            port=self.port,
            controller=self.controller,
            folder=folder,
            replicas=len(member.ports),
        )
        settings.write_text(told + more)
        self._java = [java(), *SMALL, *LOGGED, *jvm, "-cp", f"{jars}/*"]
        self.jars = jars
        self._settings = str(settings)
        cluster = f"--cluster-id={member.cluster}"  # in one word, since an id may begin with "-"
        format = ["kafka.tools.StorageTool", "format", cluster, "-c", self._settings]
        format += [it for user in users for it in ("--add-scram", user)]
        run_tool("StorageTool", [*self._java, *format])

    @property
    def service_url(self) -> str:
        """See `Upstream`."""
        return f"kafka://{HOST}:{self.port}"

    @property
    def traces(self) -> tuple[str, ...]:
        """See `Upstream`."""
        return (HOST, str(self.port))

    def launch(self) -> None:
        """Start it, and return at once."""
        self._starts += 1
        self._process = spawn([*self._java, "kafka.Kafka", self._settings], self._log)

    def await_ready(self) -> None:
        """Return when it serves."""
        until = time.monotonic() + PATIENCE_S
        while self._log.read_text(errors="replace").count(READY) < self._starts:
            assert self._process.poll() is None, tail(self._log)
            assert time.monotonic() < until, tail(self._log)
            time.sleep(0.05)

    def start(self) -> None:
        """Return when it serves."""
        self.launch()
        self.await_ready()

    def stop(self) -> None:
        """End it at once: nothing has to be kept."""
        self._process.kill()
        end(self._process, PATIENCE_S)


class Cluster:
    """Some brokers that are one cluster; see `Kafka`."""

    def __init__(self, folders: Sequence[Path], say: Say) -> None:
        joined = zip(folders, members(len(folders)), strict=True)
        self.nodes = [Kafka(folder, say, member=member) for folder, member in joined]

    @property
    def service_url(self) -> str:
        """See `Upstream`."""
        return "kafka://" + ",".join(f"{HOST}:{it.port}" for it in self.nodes)

    @property
    def traces(self) -> tuple[str, ...]:
        """See `Upstream`."""
        return (HOST, *(str(it.port) for it in self.nodes))

    def start(self) -> None:
        """Return when all serve."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.await_ready()

    def stop(self) -> None:
        """End all at once."""
        for node in self.nodes:
            node.stop()
