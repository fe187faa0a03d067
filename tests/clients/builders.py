"""Builds the client programs, once for each machine, in the cache of `tests.real.brokers.jars`.

Go fetches its package by the module proxy that the environment names, Java by Maven, Python by pip.
Raises MissingToolError if this machine lacks a tool, FetchError if one fails.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.real.brokers.jars import (
    PULSAR_VERSION,
    MissingToolError,
    Say,
    digest,
    filled_once,
    jars_of,
    java,
    run_tool,
    tool,
)

from .programs import Program

OLDEST_GO = 21
GO = Path(__file__).with_name("go")
JAVA = Path(__file__).with_name("java")
PYTHON = Path(__file__).with_name("python") / "client.py"

# For a short life: one compiler, one collector thread. A file of performance data may be locked by
# another container that shares the folder, and the warning would appear on standard output, among
# the answers. The rest is what the client's own start script opens to Netty.
JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.apache.pulsar.shade.io.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
)


def go_client(say: Say) -> Program:
    go = go_tool()
    sources = sorted([*GO.glob("*.go"), GO / "go.mod", GO / "go.sum"])

    def build(into: Path) -> None:
        say("building the Go client (a minute or two, once) ...")
        # Exactly what go.sum lists, without asking git about a checkout.
        env = os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false"}
        run_tool("go build", [go, "build", "-o", str(into / "client"), "."], cwd=GO, env=env)

    recipe = b"".join(source.read_bytes() for source in sources)
    return Program("go", (str(filled_once(f"go-client-{digest(recipe)}", build) / "client"),))


def go_tool() -> str:
    """Return the path of go. From 1.21 on it fetches the version that go.mod names."""
    go = tool("go")
    said = subprocess.run([go, "version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"go1\.(\d+)", said)
    if found and int(found[1]) < OLDEST_GO:
        raise MissingToolError("go", f"is too old, 1.{OLDEST_GO} or newer is needed: {said}")
    return go


def java_client(say: Say, version: str = PULSAR_VERSION) -> Program:
    """Compile with the current client. An older client runs the program as long as the calls use
    only its features."""
    runtime, javac = java(), tool("javac")
    jars, known = (
        jars_of(JAVA / "pom.xml", f"pulsar-client-{it}", it, "47 MB", say)
        for it in (version, PULSAR_VERSION)
    )
    sources = sorted(JAVA.glob("*.java"))

    def build(into: Path) -> None:
        command = [javac, "-cp", f"{known}{os.sep}*", "-d", str(into), *map(str, sources)]
        run_tool("javac", command)

    recipe = b"".join(source.read_bytes() for source in sources) + known.name.encode()
    classes = filled_once(f"java-client-{digest(recipe)}", build)
    path = os.pathsep.join((str(classes), f"{jars}{os.sep}*"))
    return Program("java", (runtime, *JVM_OPTIONS, "-cp", path, "Client"))


def python_client(_say: Say) -> Program:
    """Use the package that the tests themselves use."""
    return Program("python", (sys.executable, str(PYTHON)))


def old_python_client(say: Say, version: str) -> Program:
    """Use an older package in a directory of its own, found before the environment's."""

    def fetch(into: Path) -> None:
        say(f"fetching the Python client {version} (7 MB, once) ...")
        wanted = ["--no-deps", "--only-binary", ":all:", f"pulsar-client=={version}"]
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
        run_tool("pip", [*command, "--target", str(into), *wanted])

    tag = sys.implementation.cache_tag
    packages = filled_once(f"python-client-{version}-{tag}", fetch)
    python = (tool("env"), f"PYTHONPATH={packages}", sys.executable, str(PYTHON))
    return Program("python", python)


BUILDERS: dict[str, Callable[[Say], Program]] = {"go": go_client, "java": java_client}
"""The programs that can do everything."""

OLD: dict[str, Callable[[Say], Program]] = {
    "java 2.8.4": partial(java_client, version="2.8.4"),
    "java 2.11.4": partial(java_client, version="2.11.4"),
    "java 4.0.8": partial(java_client, version="4.0.8"),
    "python 3.7.0": partial(old_python_client, version="3.7.0"),
    "python 3.10.0": partial(old_python_client, version="3.10.0"),
}
"""Older clients: they produce and consume, and pack messages in all ways."""
