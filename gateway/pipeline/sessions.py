"""Makes Spark sessions: in this process, on a master, or on a Spark Connect server.

Jobs get a session and make none, and use DataFrames alone, so they run unchanged in all three.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

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

MEMORY = "2g"
"""Of a session in this process. Spark spills to disk beyond it."""


def session(
    job: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    memory: str = MEMORY,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session. `master`: `local[N]`, `spark://HOST:PORT` or `k8s://...`; without one, that
    of `spark-submit`, or all cores of this machine. `remote`: a Spark Connect server,
    `sc://HOST:PORT`.

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
        made.sparkContext.setLogLevel("ERROR")
    return made


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and os.path.exists(f"{home}/bin/java")):  # noqa: PTH110
        raise ConfigurationError("Spark needs Java 17 or newer, and there is none; install a JDK")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
