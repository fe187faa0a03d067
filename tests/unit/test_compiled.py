"""Which loops run: the compiled ones where they could be built, unless others are wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from gateway import PURE_BY, __version__
from gateway._pure import BUILT, COMPILED, WHY_PURE

pytestmark = pytest.mark.tier("test")


ROOT = Path(__file__).resolve().parents[2]


def said(code: str, **environment: str) -> str:
    """Return what another interpreter prints."""
    others = {key: value for key, value in os.environ.items() if key != PURE_BY}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=others | environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_the_loops_are_compiled_where_a_compiler_is() -> None:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        pytest.skip("no headers of Python")
    if os.environ.get(PURE_BY):
        pytest.skip(f"{PURE_BY} is set")
    assert COMPILED, WHY_PURE


SHOWN = "import gateway._pure as it; print(it.IMPLEMENTATION, {})"


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_environment_chooses_the_pure_loops(value: str) -> None:
    assert said(SHOWN.format("it.WHY_PURE"), GATEWAY_PURE=value) == f"pure {PURE_BY} is set\n"


@pytest.mark.skipif(not COMPILED, reason=f"pure: {WHY_PURE}")
@pytest.mark.parametrize("value", ["", "0"])
def test_a_value_that_chooses_nothing_has_no_effect(value: str) -> None:
    assert said(SHOWN.format("''"), GATEWAY_PURE=value) == "compiled \n"


def test_the_modules_that_must_be_compiled_together_are_those_that_are_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = [module["name"] for module in project["tool"]["setuptools"]["ext-modules"]]
    assert sorted(names) == sorted(f"gateway.{module.replace('/', '.')}" for module in BUILT)


@pytest.mark.parametrize("name", BUILT)
def test_a_module_that_is_missing_makes_all_pure(tmp_path: Path, name: str) -> None:
    """Even one that other compiled modules import by its C types."""
    package = tmp_path / "gateway"
    shutil.copytree(ROOT / "gateway", package, ignore=shutil.ignore_patterns("*.c", "__pycache__"))
    for file in package.glob(f"{name}.*.so"):
        file.unlink()
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    scanner = "from gateway.wire.pulsar import to_broker; "
    assert said(first + scanner + SHOWN.format("it.WHY_PURE")) == f"pure not built: {name}\n"


def test_the_version_says_which_loops_run() -> None:
    version = "from gateway.__main__ import main; main(['--version'])"
    assert said(version, GATEWAY_PURE="1") == f"gateway {__version__} (pure)\n"


def test_an_account_is_the_same_with_either() -> None:
    script = (
        "from gateway.wire.account import *; it = Account(Action.PRODUCE); it.count(5);"
        "it.bytes += 10; it.hold(); it.grant(3, 4); it.redelivered += 1; it.receipts += 2;"
        "print(it.frames, it.held, it.is_endless, it.outstanding, it.messages_ceiling,"
        "it.bytes_ceiling, it.surplus, it.redelivered, it.is_waiting)"
    )
    assert said(script) == said(script, GATEWAY_PURE="1")


TYPED = [it for it in (ROOT / "gateway").rglob("*.pxd") if it.with_suffix(".py").exists()]


@pytest.mark.parametrize("types", TYPED, ids=lambda it: it.stem)
def test_a_module_with_types_for_cython_is_built(types: Path) -> None:
    """`octets` and `calls` are not built: their types are functions of C."""
    if types.stem in ("octets", "calls"):
        return
    name = ".".join(types.relative_to(ROOT).with_suffix("").parts)
    assert f'name = "{name}"' in (ROOT / "pyproject.toml").read_text()
    if COMPILED:
        assert not str(import_module(name).__file__).endswith(".py")


def test_the_wheel_has_the_declarations_of_all_compiled_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["gateway"]
    packed = {file for pattern in patterns for file in (ROOT / "gateway").glob(pattern)}
    declared = set((ROOT / "gateway").rglob("*.pxd"))
    assert declared
    assert declared <= packed
