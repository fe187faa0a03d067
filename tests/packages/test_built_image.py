"""The images can be built, and their processes run as the manifests want it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from tests.deploy.rendering import DEPLOY, containers, of_kind, rendered, template
from tests.packages.rooted import Contained, Engine, Files, engine

COMPOSE = DEPLOY / "compose"
USER = (10001, 10001)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with engine(tmp_path_factory.mktemp("images")) as made:
        yield made


@pytest.fixture(scope="module")
def base(images: Engine) -> str:
    return images.add_base()


def _built(images: Engine, base: str, name: str) -> tuple[Path, dict[str, Any]]:
    image = images.build(name, PYTHON_IMAGE=base, SOURCE_DATE_EPOCH="1", REVISION="tested")
    root, config = images.unpack(image)
    assert config["Labels"]["org.opencontainers.image.version"] == __version__
    assert config["Labels"]["org.opencontainers.image.revision"] == "tested"
    return root, config


def test_the_gateway_is_healthy_and_stops_in_good_order(
    images: Engine, base: str, tmp_path: Path
) -> None:
    root, config = _built(images, base, "gateway")
    files = Files(tmp_path / "files", config)
    shutil.copy(COMPOSE / "gateway.yaml", files.etc)
    shutil.copytree(COMPOSE / "rules", files.etc / "rules")
    running = Contained(root, config, files)
    try:
        running.wait()
        assert running.user() == USER
        assert running.stop() == 0
    finally:
        running.kill()


def test_the_pipeline_runs_the_job_of_the_manifests(
    images: Engine, base: str, tmp_path: Path
) -> None:
    pods = [template(it)["spec"] for it in of_kind(rendered(DEPLOY / "pipeline"), "CronJob")]
    (command,) = (it["command"] for pod in pods for it in containers(pod) if it["name"] == "rollup")
    root, config = _built(images, base, "pipeline")
    running = Contained(root, config, Files(tmp_path / "files", config), command)
    try:
        status, said = running.ended()
    finally:
        running.kill()
    assert (status, "0 days summed up" in said) == (0, True), said
