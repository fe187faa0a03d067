"""The compose file starts what belongs together, with files that are there and right."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.app import check
from gateway.config.load import load
from tests.deploy.rendering import DEPLOY, VERSION

COMPOSE = DEPLOY / "compose"
FILE = COMPOSE / "compose.yaml"
PATIENCE = 60


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def _service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = _compose()["services"][name]
    return found


def _mounts(name: str) -> dict[str, Path]:
    """Return the files and folders of the project that a service has, by their place in it."""
    found = {}
    for volume in _service(name)["volumes"]:
        source, place = volume.split(":")[:2]
        if source.startswith("."):
            found[place] = (COMPOSE / source).resolve()
    return found


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=COMPOSE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_file_is_of_the_compose_schema() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    schema = ("--builtin-schema", "vendor.compose-spec")
    _run(sys.executable, "-m", "check_jsonschema", *schema, FILE)


def _reader() -> list[str]:
    """Return what reads compose files: Docker, or the library by which it does so, with a command
    of its own. Skips the test where there is neither."""
    docker, library = shutil.which("docker"), shutil.which("compose-go")
    if docker and not subprocess.run([docker, "compose", "version"], check=False).returncode:
        return [docker, "compose", "--file", str(FILE), "config", "--format", "json"]
    if library is None:
        pytest.skip("neither docker compose nor compose-go is installed")
    return [library, "-format", "json", str(FILE)]


def test_docker_reads_the_file_as_it_is_meant() -> None:
    read = json.loads(_run(*_reader()).stdout)
    assert set(read["services"]) == {"pulsar", "gateway", "prometheus", "grafana"}
    assert read["services"]["gateway"]["read_only"] is True
    bound = [it["host_ip"] for one in read["services"].values() for it in one.get("ports", ())]
    assert set(bound) == {"127.0.0.1"}


def test_everything_that_is_mounted_is_there() -> None:
    paths = [path for name in _compose()["services"] for path in _mounts(name).values()]
    assert len(paths) == 7
    assert all(path.exists() for path in paths)


@pytest.mark.usefixtures("own_log")
def test_the_gateway_finds_its_configuration_right() -> None:
    file = _mounts("gateway")["/etc/broker-gateway/gateway.yaml"]
    assert check(file).startswith(f"{file}: ok")


def test_the_gateway_listens_on_the_ports_that_are_published() -> None:
    found = load(_mounts("gateway")["/etc/broker-gateway/gateway.yaml"])
    assert found.admin is not None
    ports = {bind.port for listener in found.listeners for bind in listener.bind}
    published = {it.rpartition(":")[2] for it in _service("gateway")["ports"]}
    assert published == {str(port) for port in (*ports, found.admin.bind.port)}


def test_the_gateway_is_killed_only_after_it_has_drained() -> None:
    found = load(_mounts("gateway")["/etc/broker-gateway/gateway.yaml"])
    assert found.deadlines.grace < int(_service("gateway")["stop_grace_period"].removesuffix("s"))


def test_the_gateway_is_the_one_of_this_version() -> None:
    assert _service("gateway")["image"] == f"broker-gateway:{VERSION}"
    build = _service("gateway")["build"]
    assert ((COMPOSE / build["context"]) / build["dockerfile"]).is_file()


def test_no_image_is_of_a_tag_that_moves() -> None:
    tags = [it["image"].partition(":")[2] for it in _compose()["services"].values()]
    assert all(tag and tag != "latest" for tag in tags)


def test_prometheus_reads_its_configuration_and_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package: prometheus)")
    for place, path in _mounts("prometheus").items():
        assert Path(place).parent == Path("/etc/prometheus")
        shutil.copy(path, tmp_path / Path(place).name)
    said = _run(promtool, "check", "config", tmp_path / "prometheus.yml").stdout
    assert "1 rule files found" in said


def test_prometheus_scrapes_the_gateway() -> None:
    scraped = yaml.safe_load(_mounts("prometheus")["/etc/prometheus/prometheus.yml"].read_text())
    found = load(_mounts("gateway")["/etc/broker-gateway/gateway.yaml"])
    assert found.admin is not None
    targets = [
        target
        for job in scraped["scrape_configs"]
        for it in job["static_configs"]
        for target in it["targets"]
    ]
    assert set(targets) == {f"gateway:{found.admin.bind.port}"}


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    mounts = _mounts("grafana")
    provisioning = "/etc/grafana/provisioning"
    sources = yaml.safe_load(
        (mounts[f"{provisioning}/datasources"] / "prometheus.yaml").read_text()
    )
    (source,) = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert source["isDefault"] is True
    provided = yaml.safe_load((mounts[f"{provisioning}/dashboards"] / "gateway.yaml").read_text())
    (folder,) = (it["options"]["path"] for it in provided["providers"])
    (place,) = (it for it in mounts if it.startswith(f"{folder}/"))
    assert json.loads(mounts[place].read_text())["uid"] == "broker-gateway"
    home = _service("grafana")["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == place
