"""The gateway's image can be built, and its process runs as manifests want it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import __version__
from tests.packaging.building import ROOT
from tests.packaging.rooted import Contained, engine

COMPOSE = ROOT / "deploy" / "compose"


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[Contained]:
    """The process of the image, with the configuration of the compose file."""
    images = tmp_path / "images"
    images.mkdir()
    files = tmp_path / "files"
    (files / "secrets").mkdir(parents=True)
    shutil.copy(COMPOSE / "gateway.yaml", files)
    shutil.copytree(COMPOSE / "rules", files / "rules")
    with engine(images) as made:
        base = made.add_base()
        image = made.build("gateway", PYTHON_IMAGE=base, SOURCE_DATE_EPOCH="1", REVISION="tested")
        root, config = made.unpack(image)
        labels = config["Labels"]
        assert labels["org.opencontainers.image.version"] == __version__
        assert labels["org.opencontainers.image.revision"] == "tested"
        running = Contained(root, config, files)
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.package
def test_the_built_image_s_process_is_healthy_and_stops_in_good_order(
    contained: Contained,
) -> None:
    contained.wait()
    assert contained.user() == (10001, 10001)
    assert contained.stop() == 0
