"""What docs/kubernetes.md shows is right: its values render, and its commands run on a cluster that
keeps objects (`tests.helm.cluster`). Those that wait for pods are left out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.helm.cluster import Cluster
from tests.helm.rendering import CHART, NAMESPACE, ROOT, rendered_with
from tests.support.named_files import contents

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")

PAGES = (ROOT / "docs" / "kubernetes.md", CHART / "README.md")

WAITING = re.compile(r"helm test .*|kubectl .* rollout .*")
"""Commands that wait for pods, which only a whole cluster runs."""


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _examples() -> Iterator[str]:
    """Values: not what stands in a template, and not those of another chart."""
    for page in PAGES:
        for block in _blocks(page, "yaml"):
            if "{{" not in block and not block.startswith("broker-gateway:"):
                yield block


EXAMPLES = list(_examples())


@pytest.mark.parametrize("block", EXAMPLES, ids=range(len(EXAMPLES)))
def test_values_that_are_shown_render(block: str, tmp_path: Path) -> None:
    assert "kind: Deployment" in rendered_with(yaml.safe_load(block), tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where commands are typed: beside the chart, with the files that they name."""
    (tmp_path / "helm").symlink_to(CHART.parent)
    held = contents()
    files = {"public.pem": "R", "TOKEN": "token", "tls.crt": "certificate", "tls.key": "key"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(held[content])
    (edge,) = (it for it in EXAMPLES if "LoadBalancer, loadBalancerSourceRanges" in it)
    (tmp_path / "edge.yaml").write_text(edge)
    return tmp_path


def test_the_commands_run_one_after_the_other(folder: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    with Cluster() as cluster:
        settings = folder / "config"
        server = {"name": "c", "cluster": {"server": cluster.url}}
        context = {"name": "c", "context": {"cluster": "c", "namespace": NAMESPACE}}
        settings.write_text(
            yaml.safe_dump({"clusters": [server], "contexts": [context], "current-context": "c"})
        )
        environment = {**os.environ, "KUBECONFIG": str(settings), "HOME": str(folder)}
        lines = [line for it in _blocks(PAGES[0], "console") for line in it.splitlines()]
        for line in lines:
            if WAITING.fullmatch(line):
                continue
            done = subprocess.run(
                line, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert {shlex.split(line)[0] for line in lines} == {"helm", "kubectl", "head"}
        secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
        assert list(cluster.objects[f"{secrets}/broker-gateway-seal"]["data"]) == ["seal-2.key"]
