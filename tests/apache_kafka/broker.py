"""A real Kafka of one node, which is its own controller (KRaft)."""

from __future__ import annotations

import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

from tests.real.brokers.jars import Say, jars_of, java, run_tool
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.94"
"""No other process uses this address: a client that reads it has it from this broker."""

VERSION = "4.3.1"
PATIENCE_S = 60.0
READY = "Kafka Server started"

SMALL = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
num.partitions=3
group.initial.rebalance.delay.ms=0
num.network.threads=1
num.io.threads=2
background.threads=1
log.cleaner.dedupe.buffer.size=2097152
"""


class Kafka:
    """A context in which a broker serves. `port`: at `HOST`; `controller`: its port as one. `more`:
    further settings, and `users`: what formats its storage with users of SCRAM."""

    def __init__(self, folder: Path, say: Say, more: str = "", users: Sequence[str] = ()) -> None:
        """Raises MissingToolError without Java or, the first time, Maven; FetchError."""
        jars = jars_of(HERE / "broker.pom.xml", f"kafka-{VERSION}", "", "44 MB", say)
        self.port, self.controller = free_ports(HOST, 2)
        self._log = folder / "kafka.log"
        settings = folder / "server.properties"
        ports = {"port": self.port, "controller": self.controller}
        settings.write_text(SETTINGS.format(host=HOST, folder=folder, **ports) + more)
        self._java = [java(), *SMALL, *LOGGED, "-cp", f"{jars}/*"]
        self._settings = str(settings)
        cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        format = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", self._settings]
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

    def start(self) -> None:
        """Return when it serves."""
        self._process = spawn([*self._java, "kafka.Kafka", self._settings], self._log)
        until = time.monotonic() + PATIENCE_S
        while READY not in self._log.read_text(errors="replace"):
            assert self._process.poll() is None, tail(self._log)
            assert time.monotonic() < until, tail(self._log)
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once: nothing has to be kept."""
        self._process.kill()
        end(self._process, PATIENCE_S)
