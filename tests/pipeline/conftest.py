"""One Spark session for all tests, and what makes records and tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.pipeline.demo.month import write_month
from tests.pipeline.samples import Folder, Month, ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gateway.pipeline.lake import Lake

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the session. Those that need neither it nor a browser take
    milliseconds, so `make test` runs them."""
    for item in items:
        asked = getattr(item, "fixturenames", ())
        if "spark" in asked:
            item.add_marker(pytest.mark.spark)
        needs_more = item.get_closest_marker("spark") or "browser" in asked
        is_marked = item.get_closest_marker("tier") is not None
        if item.path.parent == FOLDER and not needs_more and not is_marked:
            item.add_marker(pytest.mark.tier("test"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield the session. Without Java tests are skipped, or fail if `GATEWAY_REQUIRE` names it."""
    if shutil.which("java") is None:
        reason = "java is not here, which Spark needs"
        if "java" in os.environ.get("GATEWAY_REQUIRE", "").split():
            pytest.fail(f"{reason}, and GATEWAY_REQUIRE names it", pytrace=False)
        pytest.skip(reason)
    from gateway.pipeline.sessions import session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    # Compiling a small query takes longer than running it. Jobs by their commands compile theirs.
    settings |= {"spark.sql.codegen.wholeStage": "false"}
    settings |= {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    # So does optimizing its Java code. Without that, the usual cache of code is too small.
    java = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    settings |= {"spark.driver.extraJavaOptions": java}
    made = session("tests", master="local[2]", memory="1g", settings=settings)
    yield made
    made.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Return empty tables."""
    from gateway.pipeline.lake import Lake

    return Lake(spark, str(tmp_path / "tables"))


@pytest.fixture
def records(tmp_path: Path) -> Folder:
    """Return an empty folder of records."""
    return Folder(tmp_path / "records")


@pytest.fixture(scope="session")
def month(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Month:
    """Return five days of a made-up month, ingested."""
    from gateway.pipeline.ingest import ingest
    from gateway.pipeline.lake import Lake

    folder = tmp_path_factory.mktemp("month")
    interval_ms = 600_000
    planted = write_month(
        folder / "records", date(2026, 11, 2), days=5, tenants=10, interval_ms=interval_ms
    )
    lake = Lake(spark, str(folder / "tables"))
    for stream in ("usage", "events"):
        ingest(lake, str(folder / "records"), stream, ms("2026-11-08T00:00"))
    return Month(planted, lake, interval_ms)
