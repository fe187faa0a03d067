"""What jobs run on beyond one process: a cluster, a Spark Connect server and an S3 server, each on
free loopback ports, ended by whoever started them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import pyspark

from tests.real.brokers.jars import Say, filled_once, jars_of, run_tool, tool
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

HOST = "127.0.0.1"

SPARK = Path(pyspark.__file__).parent
"""Spark itself, which is in the package."""

READY_S, STOP_S = 120, 20
"""A Java process takes seconds to start; on a busy machine many."""

S3 = "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0"
"""An S3 server that keeps all in memory, under the MIT licence."""

BUCKET = "bucket"


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process of Spark: without what the tests' own Spark has set."""
    kept = {
        name: it for name, it in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))
    }
    kept["PATH"] = f"{Path(sys.executable).parent}:{SPARK / 'bin'}:{kept['PATH']}"
    return kept | {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": HOST} | more


@contextmanager
def _running(
    name: str,
    command: Sequence[str],
    folder: Path,
    is_ready: Callable[[], bool],
    **variables: str,
) -> Iterator[None]:
    """Run a server. `is_ready`: whether it answers."""
    log = folder / f"{name}.log"
    process = spawn(command, log, environment(**variables))
    try:
        until = time.monotonic() + READY_S
        while not is_ready():
            assert process.poll() is None, f"{name} ended:\n{tail(log)}"
            assert time.monotonic() < until, f"{name} is not ready:\n{tail(log)}"
            time.sleep(0.1)
        yield
    finally:
        end(process, STOP_S)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Run a master and two workers of one core each, and yield the URL of the master. Folders of
    workers, with one for each executor, are `worker-0` and `worker-1`."""
    port, page, *pages = free_ports(HOST, 4)
    java = str(SPARK / "bin" / "spark-class")
    url = f"spark://{HOST}:{port}"

    def workers() -> int:
        """Return how many workers there are; -1: the master does not say yet."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=READY_S) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return -1

    with ExitStack() as stack:
        place = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        memory = {"SPARK_DAEMON_MEMORY": "256m"}
        rest = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
        master = [java, "org.apache.spark.deploy.master.Master", *place]
        ready = _running("master", master, folder, lambda: workers() == 0, **memory, **rest)
        stack.enter_context(ready)
        for number, own in enumerate(pages):
            name = f"worker-{number}"
            place = ["--host", HOST, "--webui-port", str(own), "--work-dir", str(folder / name)]
            worker = [java, "org.apache.spark.deploy.worker.Worker", *place]
            worker += ["--cores", "1", "--memory", "640m", url]

            def registered(least: int = number + 1) -> bool:
                return workers() >= least

            stack.enter_context(_running(name, worker, folder, registered, **memory))
        yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Run a Spark Connect server in one process, and yield its URL."""
    (port,) = free_ports(HOST, 1)
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
    }
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(SPARK / "bin" / "spark-submit"), "--class", main, "--master", "local[2]"]
    command += ["--driver-memory", "1g", *(f"--conf={it}={settings[it]}" for it in settings)]
    with _running("connect", command, folder, lambda: _answers(port), SPARK_CONNECT_MODE="0"):
        yield f"sc://{HOST}:{port}"


class Bucket:
    """A bucket of an S3 server, which asks nobody for credentials. `url`: of the server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, folder: Path, prefix: str) -> None:
        """Store the files of a folder."""
        for path in sorted(it for it in folder.rglob("*") if it.is_file()):
            key = f"{prefix}/{path.relative_to(folder).as_posix()}"
            self._ask(key, path.read_bytes())

    def keys(self, prefix: str) -> list[str]:
        """Return the first thousand keys with a prefix."""
        listed = ElementTree.fromstring(self._ask(f"?list-type=2&prefix={quote(prefix)}"))
        return [it.text or "" for it in listed.iterfind(".//{*}Contents/{*}Key")]

    def get(self, prefix: str, folder: Path) -> None:
        """Write objects to files in a folder."""
        for key in self.keys(f"{prefix}/"):
            if not key.endswith("/"):  # which stands for a folder
                path = folder / key.removeprefix(f"{prefix}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._ask(quote(key)))

    def _ask(self, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self.url}/{BUCKET}/{path}", data)
        if data is not None:
            request.method = "PUT"
        with urllib.request.urlopen(request, timeout=READY_S) as answer:
            return bytes(answer.read())


@contextmanager
def bucket(program: Path, folder: Path) -> Iterator[Bucket]:
    """Run an S3 server with an empty bucket."""
    (port,) = free_ports(HOST, 1)
    command = [str(program), "-host", f"{HOST}:{port}", "-backend", "memory"]
    command += ["-initialbucket", BUCKET]
    with _running("s3", command, folder, lambda: _answers(port)):
        yield Bucket(f"http://{HOST}:{port}")


def s3_server(say: Say) -> Path:
    """Return an S3 server, built by Go at the first call on a machine. Raises as `pulsar_jars`."""

    def build(into: Path) -> None:
        say(f"building {S3} (some seconds, once) into {into.parent} ...")
        run_tool("Go", [tool("go"), "install", S3], env=os.environ | {"GOBIN": str(into)})

    return filled_once(f"s3-server-{S3.rpartition('@v')[2]}", build) / "gofakes3"


def s3a_jars(say: Say) -> list[Path]:
    """Return what Spark lacks for `s3a://`. Raises as `pulsar_jars`."""
    pom = Path(__file__).with_name("pom-s3a.xml")
    folder = jars_of(pom, "s3a-3.5.0", "none", "about 20 MB", say)
    return sorted(folder.glob("*.jar"))


def run(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], patience_s: float
) -> None:
    """Run a command to its end, which must be a good one."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=patience_s,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
