"""The values of the chart agree with its schema, its README and its templates."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.init import template
from tests.helm import readme, schema
from tests.helm.rendering import CHART, ROOT

pytestmark = pytest.mark.tier("test")

_USE = re.compile(r"\.Values((?:\.[A-Za-z]+)+)")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def _values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return found


def _templates() -> list[Path]:
    return [it for it in sorted((CHART / "templates").rglob("*")) if it.is_file()]


def _used() -> Iterator[tuple[str, ...]]:
    for file in _templates():
        for expression in _EXPRESSION.findall(file.read_text(encoding="utf-8")):
            yield from (tuple(it[1:].split(".")) for it in _USE.findall(expression))


def _exists(path: tuple[str, ...]) -> bool:
    value: Any = _values()
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def test_each_value_that_a_template_uses_exists() -> None:
    used = set(_used())
    assert len(used) > 60
    assert sorted(path for path in used if not _exists(path)) == []


def test_each_value_is_used_by_a_template() -> None:
    used = set(_used())
    listed = [tuple(it.path.split(".")) for it in readme.listed()]
    prefixes = {path: {path[:length] for length in range(1, len(path) + 1)} for path in listed}
    assert [".".join(path) for path in listed if not prefixes[path] & used] == []


def test_each_value_has_a_comment() -> None:
    assert [it.path for it in readme.listed() if not it.comment] == []


def test_the_table_of_values_is_generated() -> None:
    page = readme.PAGE.read_text(encoding="utf-8")
    assert page == readme.written(page), "python -m tests.helm.readme"


def test_the_schema_is_generated() -> None:
    assert schema.FILE.read_text(encoding="utf-8") == schema.written(), (
        "python -m tests.helm.schema"
    )


def test_the_schema_is_one_of_draft_7() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="kubernetes-validate brings it along")
    jsonschema.Draft7Validator.check_schema(schema.schema())
    assert schema.schema()["additionalProperties"] is False


def _validator() -> Any:
    """Return the schema's validator; skip the test without one."""
    jsonschema = pytest.importorskip("jsonschema", reason="kubernetes-validate brings it along")
    return jsonschema.Draft7Validator(schema.schema())


def test_the_schema_accepts_the_defaults() -> None:
    _validator().validate(_values())


def test_the_schema_accepts_the_files_of_the_documentation() -> None:
    validator = _validator()
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(version: 1\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 4
    whole = (ROOT / "docs" / "configuration.yaml").read_text(encoding="utf-8")
    for text in (*blocks, whole):
        validator.validate({**_values(), "config": yaml.safe_load(text)})


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("use", ["sidecar", "edge", "shaper"])
def test_the_schema_accepts_what_init_writes(use: str, tls: bool) -> None:
    config = yaml.safe_load(template(use, tls=tls))
    _validator().validate({**_values(), "config": config})


def test_the_schema_accepts_the_rules_of_the_documentation() -> None:
    validator = _validator()
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(version: 1\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 2
    for block in blocks:
        rules = json.loads(json.dumps(yaml.safe_load(block), default=_as_helm_reads))
        validator.validate({**_values(), "rules": {"all.yaml": rules}})


def _as_helm_reads(value: object) -> str:
    """Return the text of a date or a moment, which Helm leaves as it stands there."""
    return str(value).replace(" ", "T").replace("+00:00", "Z")


@pytest.mark.parametrize("file", sorted((ROOT / "rules").glob("*.yaml")), ids=lambda it: it.name)
def test_the_schema_accepts_the_rules_of_the_repository(file: Path) -> None:
    validator = _validator()
    read = json.loads(json.dumps(yaml.safe_load(file.read_text()), default=_as_helm_reads))
    validator.validate({**_values(), "rules": {file.name: read}})


def test_the_charts_versions_are_the_packages() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


@pytest.mark.parametrize(
    ("copy", "original"),
    [("alerts.yaml", "prometheus/alerts.yaml"), ("dashboard.json", "grafana/gateway.json")],
)
def test_a_file_of_the_chart_is_what_deploy_has(copy: str, original: str) -> None:
    """Helm reads no file outside of the chart."""
    assert (CHART / "files" / copy).read_bytes() == (ROOT / "deploy" / original).read_bytes()
