"""Makes Spark sessions: in this process, on a master, or on a Spark Connect server.

Jobs get a session and make none, and use DataFrames alone, so they run unchanged in all three.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway.errors import ConfigurationError
from gateway.pipeline import failures as reasons
from gateway.pipeline.arguments import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Days are replaced as the commits of a lake say, so nothing is overwritten in place.
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""Settings of all sessions, which those that are given may replace."""

_LOG = Path(__file__).with_name("log4j2.properties")

_HERE = {
    "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG.as_uri()}",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session that this process drives, on a cluster or alone."""

_LOCAL = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.ui.enabled": "false",
    # The default of 200 is for a cluster; each costs some milliseconds in a process of its own.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
}
"""Settings of a session in this process, which nobody else looks at."""

_PORTS = {"sc": 15002, "spark": 7077}
"""The usual port of each kind of server."""

PATIENCE_S = 10
"""Seconds for a server's first answer, and for a process of Spark that fails to end."""


def session(
    job: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    memory: str = MEMORY,
    settings: Mapping[str, str] | None = None,
    is_traced: bool = False,
) -> SparkSession:
    """Return a session. `master`: `local[N]`, `spark://HOST:PORT` or `k8s://...`; without one, that
    of `spark-submit`, or all cores of this machine. `remote`: a Spark Connect server,
    `sc://HOST:PORT`. `settings`: of Spark, by their names. `is_traced`: Spark tells failures as
    they happen, beside raising them.

    Raises `ConfigurationError` where Java is missing, or nothing answers.
    """
    from pyspark.sql import SparkSession

    # Workers would take whatever `python3` is found first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_driven = remote is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    chosen = master or "local[*]"
    is_local = is_driven and chosen.startswith("local")
    # A URL may go on with a token, which is nobody's business.
    where = (remote or chosen).partition("/;")[0]
    builder = SparkSession.builder.appName(f"broker-gateway {job}")
    if remote is not None:
        builder = builder.remote(remote)
    elif is_driven:
        _require_java()
        builder = builder.master(chosen).config("spark.driver.memory", memory)
    _require_answer(where)
    usual = {**(_HERE if is_driven else {}), **(_LOCAL if is_local else {}), **_ALWAYS}
    for key, value in {**usual, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except failures() as error:
        raise ConfigurationError(f"no Spark session on {where}: {_reason(error)}") from None
    if remote is None:
        _silence(made, everything=is_local and not is_traced)
    return made


def _silence(spark: SparkSession, *, everything: bool) -> None:
    """Let Spark log errors alone, or nothing."""
    spark.sparkContext.setLogLevel("OFF" if everything else "ERROR")
    if everything:
        # Of a thread that serves Spark's process, which would print that it has gone.
        spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        # Of functions that a stream calls: what they raise fails the stream, which is told.
        logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions by which a session tells that a job failed."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped, unused-ignore]
    from pyspark.errors import PySparkException

    # Those of the system are of files that jobs write without Spark, or of Spark's process itself.
    return (PySparkException, Py4JError, OSError)


def explain(spark: SparkSession, error: Exception) -> str:
    """Return what a failure of a session means, in one line."""
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    try:
        text = str(error)  # which asks Spark's process
    except Exception:  # noqa: BLE001 - of py4j, which does not say what it raises then
        text = ""
    gone = isinstance(error, ConnectionError) or not text or "Answer from Java side" in text
    if gone:
        return reasons.ended(_status(spark))
    folders = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir())
    return reasons.explain(text, folders)


def _status(spark: SparkSession) -> int | None:
    """Return the exit status of a session's process that has gone; None: it is not known."""
    from pyspark.errors import PySparkException

    try:
        process: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
        return None if process is None else process.wait(PATIENCE_S)
    except (PySparkException, subprocess.TimeoutExpired):
        return None  # another machine's, or one that is still there


@contextmanager
def ended(spark: SparkSession) -> Iterator[None]:
    """End a session after a block, also if its process has gone."""
    try:
        yield
    finally:
        with suppress(*failures()):
            spark.stop()


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and os.path.exists(f"{home}/bin/java")):  # noqa: PTH110
        raise ConfigurationError("Spark needs Java 17 or newer, and there is none; install a JDK")


def _require_answer(url: str) -> None:
    """Raise `ConfigurationError` if nobody answers at any address of a master or server: Spark
    would try for minutes without a word."""
    scheme, _, rest = url.partition("://")
    if scheme not in _PORTS:
        return
    failures = []
    for place in rest.rstrip("/").split(","):
        try:
            at = urlsplit(f"//{place}")
            socket.create_connection((at.hostname, at.port or _PORTS[scheme]), PATIENCE_S).close()
            return
        except (OSError, ValueError) as error:
            failures.append(f"{place}: {error}")
    raise ConfigurationError(f"no Spark session on {url}: {'; '.join(failures)}")


def _reason(error: Exception) -> str:
    """Return what an error says, in a line. Those of Java say first which call they are from."""
    lines = [it.removeprefix(": ") for it in str(error).splitlines()]
    at = 1 if lines and lines[0].startswith("An error occurred while calling") else 0
    return next(iter(lines[at:]), type(error).__name__)
