"""One Spark session for all tests, and what makes records and tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.samples import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gateway.pipeline.lake import Lake


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


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
