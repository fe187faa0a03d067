"""A standalone that keeps its metadata in a ZooKeeper, as clusters do: two JVMs."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from .cluster import INNER_HOST, ZOOKEEPER, Jvm
from .ports import free_ports
from .standalone import Settings, Standalone


class ZooKeeper:
    """One ZooKeeper. `directory` holds everything that it writes."""

    def __init__(self, jars: Path, directory: Path) -> None:
        (self._port,) = free_ports(INNER_HOST, 1)
        self.address = f"{INNER_HOST}:{self._port}"
        self._directory = directory
        self._configuration = directory / "zookeeper.conf"
        arguments = ["-Xmx64m", "-Dzookeeper.4lw.commands.whitelist=ruok"]
        arguments += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(self._configuration)]
        self._jvm = Jvm(jars, directory, "zookeeper", arguments)

    def start(self) -> None:
        """Return when it serves. Raises StartError."""
        self._directory.mkdir(parents=True, exist_ok=True)
        data: Settings = {
            "dataDir": str(self._directory / "zookeeper"),
            "clientPort": self._port,
        }
        lines = [f"{key}={value}" for key, value in (ZOOKEEPER | data).items()]
        self._configuration.write_text("\n".join(lines) + "\n")
        self._jvm.spawn()
        self._jvm.await_ready(self._is_ready)

    def stop(self) -> None:
        """Kill it: its data is thrown away."""
        self._jvm.stop(patience=0)

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection((INNER_HOST, self._port), 2) as asked:
                asked.sendall(b"ruok")
                return asked.makefile().read() == "imok"
        except OSError:
            return False


class Kept(Standalone):
    """A standalone with a ZooKeeper, which must run before and after it."""

    def __init__(
        self, jars: Path, directory: Path, zookeeper: ZooKeeper, extra: Mapping[str, str | int]
    ) -> None:
        super().__init__(jars, directory, extra=extra)
        self.zookeeper = zookeeper

    def _command(self) -> list[str]:
        return [*super()._command(), "--metadata-url", f"zk:{self.zookeeper.address}"]
