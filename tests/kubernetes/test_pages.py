"""What pages tell operators to type runs, command by command, in a cluster with brokers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helm.rendering import CHART, ROOT
from tests.kubernetes.cluster import Cluster
from tests.real.artifacts import Artifacts
from tests.real.brokers.tokens import Authority
from tests.support.named_files import contents
from tests.support.sandbox import Sandbox

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed"),
]

DOCS = ROOT / "docs"

PAGES = tuple(DOCS / f"{it}.md" for it in ("kubernetes", "operating", "runbook"))
"""In an order in which each page finds what it is about: the first one installs the release `edge`
and the Deployment of the manifests."""

BROKERS = {
    "127.0.8.250": ("pulsar-broker", "pulsar-broker.pulsar", "broker-0"),
    "127.0.8.251": ("broker-1",),
}
"""By address: what the pages call brokers."""


@pytest.fixture
def brokers(cluster: Cluster, artifacts: Artifacts) -> Iterator[None]:
    """Brokers that answer where the pages expect them."""
    addresses = ",".join(f"{it}:6650" for it in BROKERS)
    started = Sandbox(artifacts.directory("brokers"), "--brokers", addresses)
    started.start()
    named = {("", host): it for it, hosts in BROKERS.items() for host in hosts}
    cluster.kubelet.names |= named
    yield
    started.stop()


@pytest.fixture
def folder(tmp_path: Path, authority: Authority) -> Path:
    """Where commands are typed: beside deploy/ and the chart, with the files that they name."""
    for name in ("helm", "deploy", "rules"):
        shutil.copytree(ROOT / name, tmp_path / name)
    held = contents()
    files = {"public.pem": held["R"], "tls.crt": held["certificate"], "tls.key": held["key"]}
    token = authority.token("proxy").encode()
    for name, content in {**files, "TOKEN": token, "token": token}.items():
        (tmp_path / name).write_bytes(content)
    (edge,) = re.findall(r"^```yaml\n(mode: edge\n.*?)^```$", PAGES[0].read_text(), re.M | re.S)
    (tmp_path / "edge.yaml").write_text(edge)
    return tmp_path


def _commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page's blocks about a cluster; tests/docs has the others."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.M | re.S):
        if re.search("^(kubectl|helm) ", block, re.M):
            yield from block.splitlines()


@pytest.mark.usefixtures("brokers")
def test_the_commands_of_all_pages_run_one_after_the_other(cluster: Cluster, folder: Path) -> None:
    assert CHART.is_relative_to(ROOT / "helm")
    cluster.run("kubectl", "create", "namespace", "messaging")
    for page in PAGES:
        for command in _commands(page):
            print(f"{page.name}$ {command}", flush=True)
            print(cluster.run("bash", "-ec", command, folder=folder), flush=True)
    for name in ("messaging", "gateway", "shop"):
        cluster.run("kubectl", "delete", "namespace", name, "--wait=false")
        cluster.ended(name)
