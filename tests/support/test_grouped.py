"""How xdist distributes tests with brokers and with Spark over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120

TESTS = """
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.fixture
def modular():
    pass


@pytest.fixture
def extensible():
    pass


def run_by(file):
    with Path(file).open("a") as it:
        it.write(os.environ["PYTEST_XDIST_WORKER"] + " ")


@pytest.mark.parametrize("number", range(6))
def test_one(modular, number):
    run_by("one")


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("asked", ["extensible"])
def test_other(request, asked, number):
    run_by("other")
"""

OF_SPARK = """
import pytest
from test_some import modular, run_by

pytestmark = pytest.mark.spark


def test_one():
    run_by("spark")


@pytest.mark.real
def test_with_a_broker(modular):
    run_by("spark")
"""


def test_one_process_runs_all_tests_of_a_broker_or_of_spark(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    for name in ("test_spark.py", "test_spark_too.py"):
        (tmp_path / name).write_text(OF_SPARK)
    ini = f"[pytest]\npythonpath = {ROOT}\nmarkers =\n real\n spark\n"
    (tmp_path / "pytest.ini").write_text(ini)
    options = "-p tests.support.grouped -p no:cacheprovider -n 2 --dist loadgroup"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split()],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    files = ("one", "other", "spark")
    one, other, spark = ((tmp_path / file).read_text().split() for file in files)
    assert (len(one), len(other), len(spark)) == (6, 5, 4)
    assert len({*one}) == len({*other}) == len({*spark}) == 1
    assert {*one} != {*other}
