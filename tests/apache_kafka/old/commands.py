"""Old clients as commands, fetched and built once in the cache of `tests.real.brokers.jars`.

Each takes BOOTSTRAP TOPIC [MECHANISM FOLDER], and prints how many messages it has received, and how
many of these differ. With a mechanism, bob proves who he is; `FOLDER` has the authority's
certificate, as `authority.crt`, and as `authority.p12` for Java. A function here raises
MissingToolError if this machine lacks a tool, FetchError if one fails.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.clients.builders import JVM_OPTIONS
from tests.real.brokers.jars import (
    MissingToolError,
    Say,
    digest,
    filled_once,
    jars_of,
    java,
    run_tool,
    tool,
)

HERE = Path(__file__).parent
PYTHON = "2.0.2"
COMPILED_WITH = "0.11.0.3"
JAVA = ("0.10.2.2", COMPILED_WITH, "1.0.2")

Command = tuple[str, ...]
Made = Callable[[Say], Command]


def kafka_python(say: Say, version: str) -> Command:
    """By kafka-python, as if the broker were of a version."""
    if sys.version_info >= (3, 12):
        raise MissingToolError(f"kafka-python {PYTHON}", "runs up to Python 3.11")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target")

    def fetch(into: Path) -> None:
        say(f"fetching kafka-python {PYTHON} (once) ...")
        run_tool("pip", [*pip, str(into), f"kafka-python=={PYTHON}"])

    packages = filled_once(f"kafka-python-{PYTHON}", fetch)
    script = str(HERE / "kafka_python.py")
    return (tool("env"), f"PYTHONPATH={packages}", sys.executable, script, version)


def java_client(say: Say, version: str, name: str = "Old") -> Command:
    """By a class of this folder with kafka-clients of a version."""
    jars, known = (
        jars_of(HERE / "pom.xml", f"kafka-client-{it}", it, "2 MB", say)
        for it in (version, COMPILED_WITH)
    )
    sources = sorted(HERE.glob("*.java"))

    def build(into: Path) -> None:
        command = [tool("javac"), "-d", str(into), "-cp", f"{known}/*", *map(str, sources)]
        run_tool("javac", command)

    recipe = b"".join(it.read_bytes() for it in sources)
    classes = filled_once(f"kafka-old-{digest(recipe)}", build)
    return (java(), *JVM_OPTIONS, "-cp", f"{classes}:{jars}/*", name)


def node(say: Say, script: str) -> Command:
    """By a script of the folder `node`."""
    npm, package = tool("npm"), HERE / "node" / "package.json"
    options = ("--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")

    def fetch(into: Path) -> None:
        say("fetching Kafka's clients for Node.js by npm (a minute, once) ...")
        shutil.copy(package, into)
        run_tool("npm", [npm, "install", *options], cwd=into)

    packages = filled_once(f"kafka-node-{digest(package.read_bytes())}", fetch)
    path = f"NODE_PATH={packages / 'node_modules'}"
    return (tool("env"), path, tool("node"), str(HERE / "node" / script))


def rust(say: Say) -> Command:
    """By the crate `kafka`."""
    cargo, package = tool("cargo"), HERE / "rust"

    def build(into: Path) -> None:
        say("building Kafka's client in Rust by cargo (a minute, once) ...")
        shutil.copytree(package, into, dirs_exist_ok=True)
        run_tool(
            "cargo",
            [cargo, "install", "--debug", "--quiet", "--path", ".", "--root", "."],
            cwd=into,
        )
        shutil.rmtree(into / "target")  # 150 MB

    recipe = (package / "Cargo.toml").read_bytes() + (package / "src" / "main.rs").read_bytes()
    return (str(filled_once(f"kafka-rust-{digest(recipe)}", build) / "bin" / "old"),)


def _versions(name: str, made: Callable[..., Command], *versions: str) -> dict[str, Made]:
    return {f"{name} {it}": partial(made, version=it) for it in versions}


OLDEST = _versions("kafka-python", kafka_python, "0.9")
PYTHONS = _versions("kafka-python", kafka_python, "0.10.1", "0.10.2", "0.11", "1.0")
JAVAS = _versions("java", java_client, *JAVA)
KAFKA_NODE: dict[str, Made] = {"kafka-node": partial(node, script="kafka-node.js")}
OTHERS: dict[str, Made] = {"no-kafka": partial(node, script="no-kafka.js"), "rust": rust}
