"""The jobs of deploy/pipeline are commands that the pipeline has, on files that are mounted."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.pipeline.billing import prices
from gateway.pipeline.command import add_to
from gateway.pipeline.invoicing import GRACE
from tests.deploy.rendering import (
    DEPLOY,
    ROOT,
    VERSION,
    Manifest,
    containers,
    of_kind,
    only,
    rendered,
    template,
)

PIPELINE = DEPLOY / "pipeline"
SPARK = PIPELINE / "spark" / "rollup.yaml"
PAGE = ROOT / "docs" / "kubernetes.md"


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return what the pipeline makes of arguments; it ends the test with 2 if they are wrong."""
    parser = argparse.ArgumentParser()
    add_to(parser)
    return parser.parse_args(words)


def _jobs() -> dict[str, tuple[Manifest, Manifest]]:
    """Return each container with the spec of its pod, by its name."""
    pods = [template(it)["spec"] for it in of_kind(rendered(PIPELINE), "CronJob")]
    return {it["name"]: (pod, it) for pod in pods for it in containers(pod)}


def test_there_are_jobs_for_bills() -> None:
    assert {name: _parsed(it["command"][2:]).job_name for name, (_, it) in _jobs().items()} == {
        "ingest": "ingest",
        "rollup": "rollup",
        "chargeback": "chargeback",
    }


@pytest.mark.parametrize("name", ["ingest", "rollup", "chargeback"])
def test_a_job_is_a_command_of_the_pipeline(name: str) -> None:
    _, container = _jobs()[name]
    assert container["command"][:2] == ["gateway", "pipeline"]
    options = _parsed(container["command"][2:])
    assert options.master == "local[*]"
    assert all(it.startswith("spark.") for it in options.conf)


@pytest.mark.parametrize("name", ["ingest", "rollup", "chargeback"])
def test_a_job_has_the_files_that_it_names(name: str) -> None:
    pod, container = _jobs()[name]
    mounts = {it["mountPath"]: it["name"] for it in container["volumeMounts"]}
    volumes = {it["name"] for it in pod["volumes"]}
    assert set(mounts.values()) <= volumes
    paths = re.findall(r"(?:^|=)(/\S+)", "\n".join(container["command"]), re.MULTILINE)
    assert paths
    for path in paths:
        assert any(path.startswith(f"{place}/") for place in mounts), path


@pytest.mark.parametrize("name", ["ingest", "rollup", "chargeback"])
def test_a_job_has_memory_beside_the_heap_and_bounded_cores(name: str) -> None:
    _, container = _jobs()[name]
    heap = _parsed(container["command"][2:]).memory
    limits = container["resources"]["limits"]
    assert int(heap.removesuffix("g")) < int(limits["memory"].removesuffix("Gi"))
    # Without a limit Spark would take as many threads as the node has cores.
    assert int(limits["cpu"]) >= 1


def test_what_jobs_mount_is_there_or_on_the_page() -> None:
    manifests, page = rendered(PIPELINE), PAGE.read_text()
    made = {(it["kind"], it["metadata"]["name"]) for it in manifests}
    for pod, _ in _jobs().values():
        assert ("ServiceAccount", pod["serviceAccountName"]) in made
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in made
            elif "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in made
            elif "secret" in volume:
                assert f" {volume['secret']['secretName']} --from-file=" in page


def test_jobs_use_the_same_tables() -> None:
    assert len({_parsed(it["command"][2:]).tables for _, it in _jobs().values()}) == 1


def test_a_month_is_closed_once_it_can_be() -> None:
    (job,) = (
        it
        for it in of_kind(rendered(PIPELINE), "CronJob")
        if it["metadata"]["name"].endswith("chargeback")
    )
    minute, hour, day, *rest = job["spec"]["schedule"].split()
    assert (rest, job["spec"]["timeZone"]) == (["*", "*"], "Etc/UTC")
    after = timedelta(days=int(day) - 1, hours=int(hour), minutes=int(minute))
    assert after >= GRACE


def test_the_rate_card_is_right() -> None:
    data = only(rendered(PIPELINE), "ConfigMap")["data"]
    assert prices.read(data["prices.yaml"], Path("prices.yaml")).currency.code == "EUR"


# -- on a cluster ------------------------------------------------------------------------------


def _application() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(SPARK.read_text())["spec"]
    return found


def test_the_operator_runs_a_job_of_the_pipeline() -> None:
    spec = _application()
    assert _parsed(spec["arguments"]).job_name == "rollup"
    assert spec["image"] == f"broker-gateway-pipeline:{VERSION}"


def test_the_operator_finds_the_job_where_the_image_has_it() -> None:
    path = _application()["mainApplicationFile"].removeprefix("local://")
    image = (DEPLOY / "images" / "pipeline" / "Dockerfile").read_text()
    environment, _, name = path.rpartition("/")
    assert re.search(rf"install\.sh {environment} ", image)
    install = (DEPLOY / "images" / "pipeline" / "install.sh").read_text()
    assert f'"$environment/{name}"' in install


def test_the_operator_has_the_version_of_spark_that_is_installed() -> None:
    pinned = re.search(r"^pyspark==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert _application()["sparkVersion"] == pinned[1]


def test_the_account_of_the_driver_exists() -> None:
    manifests = list(yaml.safe_load_all((SPARK.parent / "rbac.yaml").read_text()))
    account = only(manifests, "ServiceAccount")["metadata"]["name"]
    assert _application()["driver"]["serviceAccount"] == account
    assert [it["name"] for it in only(manifests, "RoleBinding")["subjects"]] == [account]


def _native() -> str:
    (found,) = re.findall(r"^gateway pipeline .*?(?<!\\)$", PAGE.read_text(), re.M | re.S)
    return str(found).replace("\\\n", " ")


def test_the_page_s_command_for_a_cluster_is_one_of_the_pipeline() -> None:
    options = _parsed(shlex.split(_native())[2:])
    assert options.master.startswith("k8s://https://")
    settings = dict(it.split("=", 1) for it in options.conf)
    image = "spark.kubernetes.container.image"
    assert settings[image] == f"broker-gateway-pipeline:{VERSION}"
    assert settings["spark.kubernetes.authenticate.serviceAccountName"] == "broker-gateway-spark"
