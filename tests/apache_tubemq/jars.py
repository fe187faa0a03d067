"""The jars of TubeMQ's server and client, and the programs of this folder, compiled for them."""

from __future__ import annotations

from pathlib import Path

from tests.real.brokers.jars import Say, digest, filled_once, jars_of, java, run_tool, tool

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
SOURCES = HERE / "java"

LOGGING = f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"
"""Says to Java where logs go."""

VERSION = "2.4.0"
"""Of the server. Client and core are of 1.13.0, with which it runs."""

SERVER = f"org.apache.inlong:tubemq-server:{VERSION}"


def classpath(say: Say) -> str:
    """Return the class path of a master, a broker and our programs: fetched, and compiled, once.
    Raises MissingToolError without Java or, the first time, javac or Maven; FetchError."""
    java()
    libraries = jars_of(POM, f"tubemq-libraries-{VERSION}", "", "21 MB", say)
    known = f"{_server(say)}/*:{libraries}/*"
    return f"{_programs(known)}:{known}"


def _server(say: Say) -> Path:
    """Return the folder of the server's jar, copied alone: its parent pom is on no registry, so
    Maven can resolve nothing that depends on it."""

    def fetch(into: Path) -> None:
        say(f"fetching {SERVER} by Maven (once) into {into.parent} ...")
        command = [tool("mvn"), "-B", "--no-transfer-progress", "-f", str(POM), "dependency:copy"]
        run_tool("Maven", [*command, f"-Dartifact={SERVER}", f"-DoutputDirectory={into}"])

    return filled_once(f"tubemq-server-{VERSION}", fetch)


def _programs(known: str) -> Path:
    """Return the folder of the classes compiled from `SOURCES`; `known`: the class path to compile
    them with."""
    sources = sorted(SOURCES.glob("*.java"))

    def build(into: Path) -> None:
        command = [tool("javac"), "-proc:none", "-d", str(into), "-cp", known]
        run_tool("javac", [*command, *map(str, sources)])

    recipe = known.encode() + b"".join(it.read_bytes() for it in sources)
    return filled_once(f"tubemq-programs-{digest(recipe)}", build)
