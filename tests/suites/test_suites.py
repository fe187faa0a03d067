"""Copying a suite's sources, and parsing its output."""

import os
import sys
from pathlib import Path

import pytest

from tests.real.brokers.jars import MissingToolError
from tests.support.differences import Verdict

from . import aiokafka, franz, go, librdkafka, pytests, rust
from .__main__ import SUITES, main
from .suite import output_of, rewritten

RUST_LISTED = "a::passes: test\na::fails: test\na::hangs: test\n\n3 tests, 0 benchmarks\n"
RUST_SAID = """running 4 tests
test a::passes ... ok
test a::fails ... FAILED
test a::is_left_out ... ignored, needs TLS
test a::panics - should panic ... ok
test a::hangs has been running for over 60 seconds
"""
GO_SAID = """=== RUN   TestA
=== RUN   TestA/passes
=== RUN   TestA/fails
--- FAIL: TestA (0.10s)
    --- PASS: TestA/passes (0.10s)
    --- FAIL: TestA/fails (0.00s)
FAIL
"""
PYTEST_LISTED = """test/integration/test_a.py::test_passes[None]
test/integration/test_a.py::test_fails
test/integration/test_a.py::test_hangs

3 tests collected in 0.10s
"""
PYTEST_SAID = """collected 5 items
test/integration/test_a.py::test_passes[None] PASSED [ 20%]
test/integration/test_a.py::test_fails FAILED        [ 40%]
test/integration/test_a.py::test_does_not_end_well PASSED [ 60%]
test/integration/test_a.py::test_does_not_end_well ERROR  [ 60%]
test/integration/test_a.py::test_is_left_out SKIPPED (too old) [ 80%]
test/integration/test_a.py::test_hangs
"""
FRANZ_SOURCE = """func TestOfAFunction(t *testing.T) {
	if one() {
	}
}

func helper() { newTestClient() }

func TestOfABroker(t *testing.T) {
	topic, cleanup := tmpTopicPartitions(t, 3)
}
"""
LIBRDKAFKA_LISTED = """struct test tests[] = {
    _TEST(0000_unittests,
          TEST_F_LOCAL,
          _THRES(.ucpu = 100.0)),
    _TEST(0001_multiobj, 0),
    _TEST(0045_subscribe, 0, TEST_BRKVER(0, 9, 0, 0)),
    _TEST(0045_subscribe_all,
          0,
          TEST_BRKVER(0, 9, 0, 0)),
    _TEST(0045_subscribe_mock, TEST_F_LOCAL),
    _TEST(0045_subscribe_more, 0, .scenario = "noautocreate"),
    _TEST(0045_subscribe_again, 0, .scenario = "default,ak23"),
    _TEST(0047_partial, TEST_F_KNOWN_ISSUE),
    _TEST(0055_latency, TEST_F_KNOWN_ISSUE_WIN32),
    _TEST(0150_telemetry_mock, 0),
    _TEST(8000_idle, TEST_F_MANUAL),
"""
LIBRDKAFKA_SAID = """[0001_passes / 0.1s] [32m================= Test 0001_passes PASSED ======[0m
[0001_fails / 0.1s] [31m================= Test 0001_fails FAILED ======[0m
[0001_is_left_out / 0.1s] ================= Test 0001_is_left_out SKIPPED ======
[0001_hangs / 9.1s] Test 0001_hangs timed out (timeout set to 60 seconds)
"""


def test_the_output_of_rust_is_parsed() -> None:
    assert rust.parsed(RUST_LISTED, RUST_SAID) == {
        "a::passes": Verdict.PASSED,
        "a::fails": Verdict.FAILED,
        "a::hangs": Verdict.UNFINISHED,
        "a::is_left_out": Verdict.SKIPPED,
        "a::panics": Verdict.PASSED,
    }


def test_the_output_of_go_is_parsed() -> None:
    assert go.parsed("TestA", GO_SAID) == {
        "TestA": Verdict.FAILED,
        "TestA/passes": Verdict.PASSED,
        "TestA/fails": Verdict.FAILED,
    }
    assert go.parsed("TestB", "panic: index out of range") == {"TestB": Verdict.UNFINISHED}
    assert go.parsed("TestC", "--- SKIP: TestC (0.00s)") == {"TestC": Verdict.SKIPPED}


def test_the_output_of_pytest_is_parsed() -> None:
    assert pytests.parsed(PYTEST_LISTED, PYTEST_SAID, "test/integration/") == {
        "test_a.py::test_passes[None]": Verdict.PASSED,
        "test_a.py::test_fails": Verdict.FAILED,
        "test_a.py::test_hangs": Verdict.UNFINISHED,
        "test_a.py::test_does_not_end_well": Verdict.FAILED,
        "test_a.py::test_is_left_out": Verdict.SKIPPED,
    }


def test_of_franz_those_are_run_that_need_a_broker() -> None:
    assert franz.needs(FRANZ_SOURCE) == ["TestOfABroker"]


def test_of_librdkafka_those_are_run_that_need_a_broker() -> None:
    needing = librdkafka.needing(LIBRDKAFKA_LISTED)
    subscribing = ["0045_subscribe", "0045_subscribe_all", "0045_subscribe_again"]
    assert needing == ["0001_multiobj", *subscribing, "0055_latency"]
    assert librdkafka.numbered(needing, "subscribe") == {"0045": subscribing}


def test_the_output_of_librdkafka_is_parsed() -> None:
    names = ["0001_passes", "0001_fails", "0001_is_left_out", "0001_hangs"]
    assert librdkafka.parsed(names, LIBRDKAFKA_SAID) == {
        "0001_passes": Verdict.PASSED,
        "0001_fails": Verdict.FAILED,
        "0001_is_left_out": Verdict.SKIPPED,
        "0001_hangs": Verdict.UNFINISHED,
    }


def test_a_copy_has_replaced_words_and_the_library_stays(tmp_path: Path) -> None:
    library = tmp_path / "library"
    (library / "src").mkdir(parents=True)
    source, other = library / "src" / "a.rs", library / "a.txt"
    for file in (source, other):
        file.write_text('connect("127.0.0.1:6650")')
        file.chmod(0o444)
    copy = rewritten(library, tmp_path / "copy", ".rs", {"127.0.0.1:6650": "127.0.0.1:7"})
    assert (copy / "src" / "a.rs").read_text() == 'connect("127.0.0.1:7")'
    assert (copy / "a.txt").read_text() == source.read_text() == 'connect("127.0.0.1:6650")'


def test_an_unchanged_copy_keeps_its_time(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "a.rs").write_text("old")
    copied = rewritten(library, tmp_path / "copy", ".rs", {"old": "new"}) / "a.rs"
    os.utime(copied, (1, 1))
    rewritten(library, tmp_path / "copy", ".rs", {"old": "new"})
    assert copied.stat().st_mtime == 1
    rewritten(library, tmp_path / "copy", ".rs", {"old": "newer"})
    assert copied.read_text() == "newer"


def test_tests_that_hang_are_ended_and_their_output_is_kept(tmp_path: Path) -> None:
    script = "import time; print('begun', flush=True); time.sleep(1000)"
    command = [sys.executable, "-c", script]
    log = tmp_path / "tests.log"
    assert output_of(command, tmp_path, log, 2, os.environ) == "begun\n" == log.read_text()


@pytest.mark.parametrize(
    ("name", "tool"), [("rust", "protoc"), ("go", "go"), ("franz", "go"), ("librdkafka", "npm")]
)
def test_without_its_tool_a_suite_is_not_run(
    name: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=f"{tool} is not installed"):
        SUITES[name].sources(print)


def test_without_a_checkout_the_suite_of_aiokafka_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(aiokafka.CHECKOUT, str(tmp_path))
    with pytest.raises(MissingToolError, match="AIOKAFKA_CHECKOUT"):
        SUITES["aiokafka"].sources(print)


def test_the_command_prints_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--only", "rust"]) == 0
    assert "skipped rust: java is not installed" in capsys.readouterr().out
