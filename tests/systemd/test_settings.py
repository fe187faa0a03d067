"""What systemd-analyze says of the units, without starting anything."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packages.building import ROOT
from tests.packages.environments import COMMAND_S

UNITS = ROOT / "deploy" / "systemd"
MOST_EXPOSED = 15
"""In tenths: what is left is its network, Unix sockets, and the root of the machine to read."""

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)


def _analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """The units, with a command that this machine has."""
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/opt/broker-gateway/bin/gateway", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    return sorted(str(it) for it in tmp_path.iterdir())


def test_systemd_knows_all_settings(units: list[str]) -> None:
    done = _analyzed("verify", "--man=no", *units)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_is_hardly_exposed(units: list[str]) -> None:
    (service,) = (it for it in units if it.endswith(".service"))
    done = _analyzed("security", "--offline=true", f"--threshold={MOST_EXPOSED}", service)
    if "unrecognized option" in done.stderr:
        pytest.skip("systemd is older than 250, and judges no files")
    assert done.returncode == 0, done.stdout + done.stderr
