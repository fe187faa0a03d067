"""Apache's own proxy, from jars that Maven fetches into the cache of the real-broker tests."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.bench.load import BenchError, MissingToolError
from tests.bench.proxies import HOST, Recipe
from tests.bench.rounds import say
from tests.real.brokers.jars import cache_root
from tests.real.brokers.ports import free_ports
from tests.real.brokers.standalone import LOG_CONFIGURATION

VERSION = "4.0.8"
POM = Path(__file__).with_name("pulsar-proxy.pom.xml")
FETCH_SECONDS = 900.0

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
    """Return two recipes: level 0 relays bytes once a connection is open, level 1 reads every
    frame, like the gateway.
    """
    java = _tool("java")
    jars = _jars()
    return [_recipe(java, jars, folder, broker, level) for level in (0, 1)]


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


def _jars() -> Path:
    """Return the directory with all jars, which is complete or absent."""
    recipe = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    target = cache_root() / f"pulsar-proxy-{VERSION}-{recipe}"
    if not target.exists():
        say(f"fetching the jars of the Java proxy {VERSION} by Maven (once) into {target}")
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
        try:
            _fetch(_tool("mvn"), work)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def _fetch(mvn: str, into: Path) -> None:
    command = [mvn, "-B", "-q", "-f", str(POM), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
    )
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise BenchError(f"Maven ended with {done.returncode}:\n{last}")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is not installed, which PEERS=java needs")
    return found
