"""A Pulsar standalone (broker, bookie and metadata in one JVM) as a test fixture.

It listens on ports and a loopback address of its own, not 127.0.0.1: a client that reads one of
these has it from this broker.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .admin import Admin
from .jars import java
from .ports import free_ports
from .processes import end, spawn, tail
from .tokens import Authority

HOST = "127.0.0.77"
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.xml")
# Starting takes 5 s on two idle cores; the rest is for a busy machine.
READY_SECONDS = 300
# An orderly stop takes 1 to 3 s. The data is thrown away, so a kill after that costs nothing.
STOP_SECONDS = 10
DEFAULT_MESSAGE_SIZE = 5 * 1024 * 1024
# Room in a bookie's frame for headers and metadata beside the message.
FRAME_OVERHEAD = 10 * 1024

METADATA = "org.apache.pulsar.metadata.bookkeeper"
AUTHENTICATION = "org.apache.pulsar.broker.authentication"
CLIENT_AUTHENTICATION = "org.apache.pulsar.client.impl.auth"
JVM_OPTIONS = [
    # For a short life: small, only the first compiler, one collector thread.
    *(
        "-Xms64m",
        "-Xmx512m",
        "-XX:MaxDirectMemorySize=512m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:TieredStopAtLevel=1",
    ),
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    "-Djute.maxbuffer=10485760",
    "-Dlog4j2.is.webapp=false",
    "-Dlog4j.shutdownHookEnabled=false",
    f"-Dlog4j.configurationFile={LOG_CONFIGURATION}",
    # The packages that Pulsar's own start script opens to Netty, RocksDB and the bookie.
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dorg.apache.pulsar.shade.io.netty.tryReflectionSetAccessible=true",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.io", "java.nio", "java.util.zip")
    ),
    *(
        f"--add-opens=java.base/jdk.internal.{package}=ALL-UNNAMED"
        for package in ("misc", "platform")
    ),
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    f"-Dbookkeeper.metadata.bookie.drivers={METADATA}.PulsarMetadataBookieDriver",
    f"-Dbookkeeper.metadata.client.drivers={METADATA}.PulsarMetadataClientDriver",
]

Settings = dict[str, str | int]

COMMON: Settings = {
    "clusterName": "standalone",
    "bindAddresses": "",
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    "managedLedgerCacheSizeMB": 16,
    "loadBalancerEnabled": "false",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
    "webSocketServiceEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "numIOThreads": 2,
    "numOrderedExecutorThreads": 2,
    "numHttpServerThreads": 8,  # with 4 the web server cannot start
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "dbStorage_writeCacheMaxSizeMb": 64,  # each half must hold the largest message
    "dbStorage_readAheadCacheMaxSizeMb": 16,
    "journalSyncData": "false",
    "httpServerEnabled": "false",
    # Without these two settings the bookie listens on every address of the machine.
    "listeningInterface": "lo",
    "allowLoopback": "true",
}


def token_settings(secret_file: Path, admin_token_file: Path) -> Settings:
    """Return settings for token authentication and authorization: role `admin` may do everything,
    role `proxy` may act for others."""
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": f"{AUTHENTICATION}.AuthenticationProviderToken",
        "tokenSecretKey": secret_file.as_uri(),
        "authorizationEnabled": "true",
        "authenticationRefreshCheckSeconds": 5,
        "superUserRoles": "admin",
        "proxyRoles": "proxy",
        "brokerClientAuthenticationPlugin": f"{CLIENT_AUTHENTICATION}.AuthenticationToken",
        "brokerClientAuthenticationParameters": admin_token_file.as_uri(),
    }


class StartError(Exception):
    """The JVM ended, or was not ready in time."""


@dataclass
class Standalone:
    """One broker. `directory` holds everything that it writes; `authority` turns
    authentication on; `keeps`: another start finds what was there; `jvm`: further options of the
    JVM, which prevail."""

    jars: Path
    directory: Path
    authority: Authority | None = None
    max_message_size: int = DEFAULT_MESSAGE_SIZE
    extra: Mapping[str, str | int] = field(default_factory=dict)
    host: str = HOST
    keeps: bool = False
    jvm: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.port, self.web_port = free_ports(self.host, 2)  # the bookie picks its own
        self.service_url = f"pulsar://{self.host}:{self.port}"
        self.admin = Admin(f"http://{self.host}:{self.web_port}", self.token("admin"))
        self.log = self.directory / "broker.log"
        self.configuration = self.directory / "standalone.conf"
        self._process: subprocess.Popen[bytes] | None = None

    def token(self, role: str) -> str | None:
        return self.authority.token(role) if self.authority else None

    @property
    def traces(self) -> tuple[str, ...]:
        """Return texts that reveal this broker."""
        return (self.host, f":{self.port}", f":{self.web_port}")

    def start(self) -> None:
        """Return when the broker serves. Raises StartError, after which no process is left
        running."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        self._process = spawn(self._command(), self.log)
        try:
            self._wait_until_ready(time.monotonic() + READY_SECONDS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the process that this object started; do nothing if it is down."""
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_SECONDS)

    def kill(self) -> None:
        """Kill the process, which closes nothing in good order."""
        process, self._process = self._process, None
        assert process is not None
        end(process, STOP_SECONDS, signal.SIGKILL)

    def _wait_until_ready(self, deadline: float) -> None:
        assert self._process is not None
        while not self.admin.is_healthy():
            if self._process.poll() is not None:
                raise StartError(
                    f"the broker ended with {self._process.returncode}:\n{tail(self.log)}"
                )
            if time.monotonic() > deadline:
                raise StartError(
                    f"the broker was not ready after {READY_SECONDS} s:\n{tail(self.log)}"
                )
            time.sleep(0.1)

    def _command(self) -> list[str]:
        options = [] if self.keeps else ["--wipe-data"]
        options += ["--no-functions-worker", "--no-stream-storage"]
        options += ["--config", str(self.configuration), "--advertised-address", self.host]
        options += ["--metadata-dir", str(self.directory / "metadata")]
        options += ["--bookkeeper-dir", str(self.directory / "bookie")]
        command = [
            java(),
            *JVM_OPTIONS,
            *self.jvm,
            "-cp",
            f"{self.jars}{os.sep}*",
            "org.apache.pulsar.PulsarStandaloneStarter",
        ]
        return [*command, *options]

    def _settings(self) -> Settings:
        own: Settings = {
            "bindAddress": self.host,
            "advertisedAddress": self.host,
            "brokerServicePort": self.port,
            "webServicePort": self.web_port,
            "maxMessageSize": self.max_message_size,
            "nettyMaxFrameSizeBytes": self.max_message_size + FRAME_OVERHEAD,
        }
        return COMMON | own | self._token_settings() | dict(self.extra)

    def _token_settings(self) -> Settings:
        if self.authority is None:
            return {}
        secret, token = self.directory / "secret.key", self.directory / "admin.token"
        secret.write_bytes(self.authority.secret)
        token.write_text(self.authority.token("admin"))
        return token_settings(secret, token)

    def _write_configuration(self) -> None:
        lines = [f"{name}={value}" for name, value in self._settings().items()]
        self.configuration.write_text("\n".join(lines) + "\n")
