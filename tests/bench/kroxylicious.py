"""Kroxylicious, a proxy of Kafka in Java, from jars that Maven fetches into the cache of the
real-broker tests. It listens on all addresses of the machine while it runs, and cannot be told one.
"""

import os
from pathlib import Path

from tests.bench.figures import KROXYLICIOUS
from tests.bench.proxies import HOST, Recipe
from tests.bench.rounds import say
from tests.bench.rows import Door
from tests.real.brokers.jars import digest, filled_once, jars_of, java, run_tool, tool
from tests.real.brokers.ports import free_ports

VERSION = "0.12.0"
POM = Path(__file__).with_name("kroxylicious.pom.xml")
STARTER = Path(__file__).with_name("Kroxylicious.java")

JVM = (
    "-Xms256m",
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:+UseSerialGC",  # it has one core
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
)

# No filters: what a request or a response holds is decoded only where it names brokers.
_CONFIGURATION = """\
virtualClusters:
  - name: bench
    targetCluster: {{bootstrapServers: "{broker}"}}
    gateways:
      - name: bench
        portIdentifiesNode:
          bootstrapAddress: "{host}:{port}"
          nodeStartPort: {broker_port}
          nodeIdRanges: [{{name: all, start: 0, end: 0}}]
"""


def recipe(folder: Path, broker: str) -> Recipe:
    """Return the recipe: one virtual cluster, clients at its bootstrap port. Raises
    MissingToolError, FetchError."""
    command = java()
    jars = jars_of(POM, f"kroxylicious-{VERSION}", "", "30 MB", say)
    port, broker_port = free_ports(HOST, 2)
    file = folder / "kroxylicious.yaml"
    file.write_text(
        _CONFIGURATION.format(host=HOST, port=port, broker=broker, broker_port=broker_port)
    )
    path = os.pathsep.join([str(_classes(jars)), f"{jars}{os.sep}*"])
    return Recipe(
        KROXYLICIOUS,
        (command, *JVM, "-cp", path, STARTER.stem, str(file)),
        port,
        folder / "kroxylicious.log",
        patience=90.0,
        settle=8.0,
        serves=frozenset({Door.KAFKA}),
        renumbers=True,
    )


def _classes(jars: Path) -> Path:
    """Return the directory with the compiled starter."""

    def fill(into: Path) -> None:
        command = [tool("javac"), "-proc:none", "-d", str(into), "-cp", f"{jars}{os.sep}*"]
        run_tool("javac", [*command, str(STARTER)])

    recipe = STARTER.read_bytes() + jars.name.encode()
    return filled_once(f"kroxylicious-starter-{digest(recipe)}", fill)
