"""`python -m tests.helm.rendering`: writes golden/*.yaml, what Helm makes of values/*.yaml.

Read the differences before they are committed: a golden file is what would be deployed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHART = ROOT / "helm" / "broker-gateway"
GOLDEN = HERE / "golden"
PARENT = HERE / "parent"
FILES = sorted((HERE / "values").glob("*.yaml"))

MINORS = ("1.33", "1.34", "1.35", "1.36")
"""The supported versions of Kubernetes."""

NAMESPACE = "messaging"

DASHBOARD = ROOT / "deploy" / "grafana" / "gateway.json"

_RANDOM = re.compile(r"^(  [\w.-]+\.key: )[A-Za-z0-9+/]{43}=$", re.MULTILINE)
"""A seal key that was made just now."""

Document = dict[str, Any]


class HelmError(Exception):
    """What Helm printed about a failure."""


def helm(*arguments: str | Path) -> str:
    """Run Helm, and return what it printed. Raises `HelmError`."""
    command = ["helm", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


def rendered(values: Path, minor: str = MINORS[0], chart: Path = CHART) -> str:
    """Return what Helm makes of the chart with a file of values. Raises `HelmError`."""
    # A Helm that was built from source takes every cluster for an old one.
    name = ("--kube-version", f"{minor}.0", "--namespace", NAMESPACE)
    return helm("template", "test", chart, "--values", values, *name)


def rendered_with(values: Mapping[str, Any], folder: Path) -> str:
    """Return the same with values, for which a file is written into a folder."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)), encoding="utf-8")
    return rendered(file)


def rendered_parent(minor: str = MINORS[0]) -> str:
    """Return what Helm makes of a chart whose pods have the sidecar. Raises `HelmError`."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(folder) / "application"
        shutil.copytree(PARENT, chart)
        shutil.copytree(CHART, chart / "charts" / "broker-gateway")
        return rendered(PARENT / "values.yaml", minor, chart)


def documents(text: str) -> list[Document]:
    """Return the objects of a rendering."""
    return [it for it in yaml.safe_load_all(text) if it]


def of_kind(text: str, kind: str) -> Iterator[Document]:
    """Yield the objects of one kind."""
    yield from (it for it in documents(text) if it["kind"] == kind)


def golden(text: str) -> str:
    """Return a rendering without what is random, or stands in another file as it is."""
    shown = indent(DASHBOARD.read_text(encoding="utf-8"), "    ").rstrip()
    text = text.replace(shown, "    (deploy/grafana/gateway.json)")
    return _RANDOM.sub(r"\1(32 random bytes)", text)


def renderings() -> Iterator[tuple[str, str]]:
    """Yield the name of each golden file, and the rendering of now."""
    for file in FILES:
        yield file.name, rendered(file)
    yield "parent.yaml", rendered_parent()


if __name__ == "__main__":
    for name, text in renderings():
        (GOLDEN / name).write_text(golden(text), encoding="utf-8")
        print(f"written: tests/helm/golden/{name}")
