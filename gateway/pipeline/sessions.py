"""Makes Spark sessions: in this process, on a master, or on a Spark Connect server.

Jobs get a session and make none, and use DataFrames alone, so they run unchanged in all three.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.pipeline import failures as reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Days are replaced as the commits of a lake say, so nothing is overwritten in place.
    "spark.sql.sources.partitionOverwriteMode": "static",
}

_LOG = Path(__file__).with_name("log4j2.properties")

_LOCAL = {
    "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG.as_uri()}",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The default of 200 is for a cluster; each costs some milliseconds in a process of its own.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
    "spark.sql.parquet.compression.codec": "zstd",
}
"""Settings of a session in this process, which nobody else looks at."""

PATIENCE_S = 10
"""Seconds for a process of Spark that fails to end."""

MEMORY = "2g"
"""Of a session in this process. Spark spills to disk beyond it."""


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
    `sc://HOST:PORT`. `is_traced`: Spark tells failures as they happen, beside raising them.

    Raises `ConfigurationError` where Java is missing, or nothing answers.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers would take whatever `python3` is found first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"broker-gateway {job}")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if remote is not None:
        builder = builder.remote(remote)
    elif not submitted:
        _require_java()
        chosen = master or "local[*]"
        builder = builder.master(chosen).config("spark.driver.memory", memory)
        for key, value in _LOCAL.items() if chosen.startswith("local") else ():
            builder = builder.config(key, value)
    for key, value in {**_ALWAYS, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        where = remote or master or "this machine"
        raise ConfigurationError(f"no Spark session on {where}: {_first_line(error)}") from None
    if remote is None:
        is_quiet = not is_traced and not submitted and chosen.startswith("local")
        made.sparkContext.setLogLevel("OFF" if is_quiet else "ERROR")
        if is_quiet:
            # Of a thread that serves Spark's process, which would print that it has gone.
            made.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
            # Of functions that a stream calls: what they raise fails the stream, which is told.
            logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    return made


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


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
