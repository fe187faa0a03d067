"""Apache's own proxy, from jars that Maven fetches into the cache of the real-broker tests."""

import os
from pathlib import Path

from tests.bench.proxies import HOST, Recipe
from tests.bench.rounds import say
from tests.real.brokers.jars import jars_of, java
from tests.real.brokers.ports import free_ports
from tests.real.brokers.standalone import LOG_CONFIGURATION

VERSION = "4.0.8"
POM = Path(__file__).with_name("pulsar-proxy.pom.xml")

JVM = (
    "-Xms256m",
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:+UseSerialGC",  # it has one core
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    "-Dlog4j2.is.webapp=false",
    f"-Dlog4j.configurationFile={LOG_CONFIGURATION}",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dorg.apache.pulsar.shade.io.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.platform=ALL-UNNAMED",
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
)

_CONFIGURATION = """\
clusterName=bench
bindAddress={host}
advertisedAddress={host}
servicePort={port}
webServicePort={web_port}
brokerServiceURL=pulsar://{broker}
brokerWebServiceURL=http://{broker}
brokerProxyAllowedHostNames=*
brokerProxyAllowedIPAddresses=127.0.0.0/8
brokerProxyAllowedTargetPorts={broker_port}
proxyLogLevel={level}
webSocketServiceEnabled=false
numIOThreads=2
httpNumThreads=8
"""


def recipes(folder: Path, broker: str) -> list[Recipe]:
    """Return a recipe for each log level: level 0 relays bytes once a connection is open, level 1
    reads every frame, like the gateway, and level 2 also reads the messages in each. Raises
    MissingToolError, FetchError."""
    command = java()
    jars = jars_of(POM, f"pulsar-proxy-{VERSION}", VERSION, "about 180 MB", say)
    return [_recipe(command, jars, folder, broker, level) for level in (0, 1, 2)]


def _recipe(java: str, jars: Path, folder: Path, broker: str, level: int) -> Recipe:
    port, web_port = free_ports(HOST, 2)
    file = folder / f"proxy-{level}.conf"
    file.write_text(
        _CONFIGURATION.format(
            host=HOST,
            port=port,
            web_port=web_port,
            broker=broker,
            broker_port=broker.rpartition(":")[2],
            level=level,
        )
    )
    starter = "org.apache.pulsar.proxy.server.ProxyServiceStarter"
    return Recipe(
        f"Java, level {level}",
        (java, *JVM, "-cp", f"{jars}{os.sep}*", starter, "--config", str(file)),
        port,
        folder / f"proxy-{level}.log",
        hello=broker,  # without a broker's name it answers lookups only
        patience=90.0,
        settle=8.0,
    )
