"""The packages are the same whoever builds them, and work where nothing else is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from gateway import __version__
from tests.packages.building import ROOT, Builder, Packages
from tests.packages.environments import INSTALL_S, configured, run, serving

OF_THE_IMAGE = ("pyproject.toml", "README.md", "LICENSE", "deploy", "gateway")
"""What the Dockerfiles copy: there is no version control in a container."""


def _epoch(packages: Packages) -> str:
    with tarfile.open(packages.sdist) as packed:
        (time,) = {it.mtime for it in packed.getmembers()}
    return str(int(time))


def test_two_builds_give_the_same_bytes(
    builder: Builder, packages: Packages, tmp_path: Path
) -> None:
    """The second under another umask and hash seed, from another folder, without version control,
    where files are new and have other rights."""
    source = tmp_path / "source"
    with tarfile.open(fileobj=_committed()) as packed:
        packed.extractall(source, filter="data")
    for name in {it.name for it in source.iterdir()} - set(OF_THE_IMAGE):
        path = source / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in source.rglob("*.py"):
        path.chmod(0o600)
    environment = {"SOURCE_DATE_EPOCH": _epoch(packages), "PYTHONHASHSEED": "7"}
    again = builder.build(tmp_path / "dist", source, environment, umask=0o077)
    assert again.sdist.read_bytes() == packages.sdist.read_bytes()
    assert again.wheel.read_bytes() == packages.wheel.read_bytes()


def _committed() -> io.BytesIO:
    """Return an archive of the files of the last commit."""
    command = ["git", "archive", "HEAD"]
    return io.BytesIO(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def test_without_version_control_the_time_has_to_be_said(builder: Builder, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deploy").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "package.py", source / "deploy")
    with pytest.raises(AssertionError, match="SOURCE_DATE_EPOCH is not set"):
        builder.build(tmp_path / "dist", source, {"SOURCE_DATE_EPOCH": ""})


def test_the_wheel_has_all_files_of_the_package(packages: Packages) -> None:
    with zipfile.ZipFile(packages.wheel) as packed:
        names = {name for name in packed.namelist() if name.startswith("gateway/")}
    found = {name for name in names if not name.endswith(".so")}
    with tarfile.open(fileobj=_committed()) as committed:
        wanted = {it.name for it in committed.getmembers() if it.isfile()}
    assert found == {name for name in wanted if name.startswith("gateway/")}


def test_the_source_distribution_belongs_to_nobody(packages: Packages) -> None:
    with tarfile.open(packages.sdist) as packed:
        members = packed.getmembers()
    assert [it.name for it in members] == sorted(it.name for it in members)
    assert {(it.uid, it.gid, it.uname, it.gname) for it in members} == {(0, 0, "", "")}
    assert {it.mode for it in members} <= {0o644, 0o755}


EXTRAS = {
    "": "",
    "valkey": 'rules: rules.yaml\nstore: {url: "redis://127.0.0.1:16379"}\n',
    "pipeline": "usage: {folder: usage}\n",
}
"""By extra, what a configuration has that needs it."""


@pytest.mark.parametrize(
    "extra",
    ["", "valkey", "pipeline"],
    ids=lambda it: it or "none",
)
def test_an_installed_gateway_serves(extra: str, wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run([sys.executable, "-m", "venv", environment], tmp_path)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    run([*pip, "--constraint", ROOT / "constraints.txt", wanted], tmp_path, INSTALL_S)
    gateway = str(environment / "bin" / "gateway")
    assert run([gateway, "--version"], tmp_path) in {
        f"gateway {__version__} (compiled)\n",  # where a compiler is
        f"gateway {__version__} (pure)\n",
    }
    path, at = configured(tmp_path, EXTRAS[extra])
    assert run([gateway, "check", str(path)], tmp_path).startswith(f"{path}: ok")
    with serving([gateway, "run", str(path)], tmp_path, at):
        pass


def test_without_an_extra_the_command_says_which_one_is_missing(
    wheel: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    run([sys.executable, "-m", "venv", environment], tmp_path)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    run([*pip, "--constraint", ROOT / "constraints.txt", wheel], tmp_path, INSTALL_S)
    path, _ = configured(tmp_path, EXTRAS["valkey"])
    with pytest.raises(AssertionError, match=r"pip install 'broker-gateway\[valkey\]'"):
        run([environment / "bin" / "gateway", "check", path], tmp_path)
