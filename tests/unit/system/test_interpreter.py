"""Garbage collection, and command lines of child processes."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.system.interpreter import begin_collections, command, postpone_collections


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave the collector of the tests' process as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


@pytest.mark.usefixtures("collector")
def test_collections_wait_until_they_begin_and_spare_what_exists_then() -> None:
    postpone_collections()
    assert not gc.isenabled()
    begin_collections()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


_FAULTS = """
import resource
from gateway.system.interpreter import keep_freed_memory
if {keeps}:
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    frame = [bytearray(500_000) for _ in range(4)]
    del frame
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Prints how many pages the kernel gave to frames that came one after another."""


def faults(*, keeps: bool, **environment: str) -> int:
    command = [sys.executable, "-c", _FAULTS.format(keeps=keeps)]
    done = subprocess.run(command, check=True, capture_output=True, env=os.environ | environment)
    return int(done.stdout)


@pytest.mark.tier("test")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library allocates")
def test_memory_that_frames_had_is_kept_for_the_next_ones() -> None:
    """Each page of each frame otherwise."""
    assert faults(keeps=True) * 10 < faults(keeps=False)


@pytest.mark.tier("test")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library allocates")
def test_the_environment_may_say_otherwise() -> None:
    assert faults(keeps=True, MALLOC_TRIM_THRESHOLD_="0") > 10 * faults(keeps=True)


def test_a_module_runs_in_the_same_interpreter_with_its_arguments() -> None:
    found = command("a.module", "--first", "second")
    assert (found[0], found[-4:]) == (sys.executable, ["-m", "a.module", "--first", "second"])


def test_modules_are_not_imported_from_a_foreign_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("a.module")[1] == "-P"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "-P" not in command("a.module")
