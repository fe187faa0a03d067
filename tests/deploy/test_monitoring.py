"""The dashboard and the alerts name metrics and labels that exist, and Prometheus can read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.telemetry.families import FAMILIES, Family, Kind
from tests.support.faults import assert_none

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "gateway.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
RUNBOOK = DEPLOY.parent / "docs" / "runbook.md"

_USE = re.compile(r"\b((?:gateway|process)_[a-z_]+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
_VARIABLES = {"$__rate_interval": "5m", "$cluster": ".*", "$listener": ".*", "$tenant": ".*"}


def _panels() -> Iterator[dict[str, Any]]:
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        yield panel
        yield from panel.get("panels", ())


def _dashboard() -> list[str]:
    return [target["expr"] for panel in _panels() for target in panel.get("targets", ())]


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


EXPRESSIONS = [*_dashboard(), *(rule["expr"] for rule in _alerts())]


def _samples() -> dict[str, Family]:
    """Return the names of all samples, each with its family."""
    found = dict(FAMILIES)
    for name, family in FAMILIES.items():
        if family.kind is Kind.HISTOGRAM:
            found |= {f"{name}_{part}": family for part in ("bucket", "sum", "count")}
    return found


SAMPLES = _samples()


def _variables() -> list[str]:
    """Return the queries that fill the dashboard's variables."""
    page = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = (it["query"] for it in page["templating"]["list"] if it["type"] == "query")
    return [it["query"] for it in found]


def test_expressions_name_metrics_and_labels_that_exist() -> None:
    assert_none(
        f"{expression}: {fault}"
        for expression in sorted({*EXPRESSIONS, *_variables()})
        for fault in _faults(expression)
    )


def _faults(expression: str) -> Iterator[str]:
    """What an expression names that is not there."""
    uses = _USE.findall(expression)
    if not uses:
        yield "names no metric"
    labels = {"le"}
    for name, selectors in uses:
        if name not in SAMPLES:
            yield name
            continue
        own = set(SAMPLES[name].labels)
        labels |= own
        yield from set(_LABEL.findall(selectors)) - own
    grouped = {it.strip() for group in _GROUPED.findall(expression) for it in group.split(",")}
    yield from grouped - labels


def test_every_panel_shows_something_and_says_what() -> None:
    panels = [it for it in _panels() if it["type"] != "row"]
    assert all(it["title"] and it["targets"] for it in panels)
    assert len({it["title"] for it in panels}) == len(panels)
    assert len({it["id"] for it in _panels()}) == len(list(_panels()))


def test_no_two_panels_lie_on_each_other() -> None:
    cells = [
        (x, y)
        for panel in _panels()
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    alerts = _alerts()
    assert len({it["alert"] for it in alerts}) == len(alerts)
    for alert in alerts:
        assert alert["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(alert["annotations"]) == {"summary", "action"}


def test_the_runbook_has_a_section_for_each_alert() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    sections = re.findall(r"^## (Gateway\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert [name for name, _ in sections] == [it["alert"] for it in _alerts()]
    named = re.findall(r"`((?:gateway|process)_[a-z_]+)`", text)
    assert named
    assert [it for it in named if it not in SAMPLES] == []
    for _, section in sections:
        assert re.findall(r"^- \*\*(\w+(?: \w+)?)\*\*", section, re.M) == [
            "Clients notice",
            "Look at",
            "Do",
        ]


def test_each_alert_has_a_test() -> None:
    tests = yaml.safe_load((ALERTS.parent / "alerts.test.yaml").read_text(encoding="utf-8"))
    fired = {
        it["alertname"]
        for test in tests["tests"]
        for it in test["alert_rule_test"]
        if it["exp_alerts"]
    }
    assert fired == {it["alert"] for it in _alerts()}


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package: prometheus)")
    return found


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alerts_fire_when_they_should(promtool: str) -> None:
    _run(promtool, "check", "rules", ALERTS)
    _run(promtool, "test", "rules", ALERTS.parent / "alerts.test.yaml")


def test_prometheus_can_read_the_dashboards_expressions(promtool: str, tmp_path: Path) -> None:
    rules = []
    for number, expression in enumerate(_dashboard()):
        filled = reduce(lambda text, it: text.replace(*it), _VARIABLES.items(), expression)
        assert "$" not in filled
        rules.append({"record": f"panel:number_{number}", "expr": filled})
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    _run(promtool, "check", "rules", file)
