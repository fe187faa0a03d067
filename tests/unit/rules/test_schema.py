"""The schema for editors allows what the gateway accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.__main__ import main
from gateway.config import source
from gateway.policy.rules import RulesDocument
from gateway.rules.files import build
from tests.support.examples import examples
from tests.unit.errors import limits
from tests.unit.rules.schema import allows

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = RulesDocument.model_json_schema()


def texts() -> Iterator[Any]:
    """Return all whole files of rules: those of the folder and of the page."""
    for path in sorted((ROOT / "rules").iterdir()):
        yield pytest.param(path.read_text(), id=path.name)
    page = (ROOT / "docs" / "rules.md").read_text()
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)):
        yield pytest.param(block, id=f"page-{number}")


@pytest.mark.parametrize("text", list(texts()))
def test_each_example_is_accepted_and_allowed(text: str) -> None:
    data = source.parse(text, "", {}).data
    assert build(data)[1] == ()
    assert allows(SCHEMA, SCHEMA, data)


def of(**parts: Any) -> dict[str, Any]:
    return {"version": 1, "rules": [{"id": "a", "limit": {"lookups": "1/s"}} | parts]}


def right(**parts: Any) -> dict[str, Any]:
    return {"version": 1, "rules": [{"id": "a"} | parts]}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"version": 2, "rules": of()["rules"]},
        {"version": 1, "rules": []},
        {"version": 1, "rules": [{"limit": {"lookups": "1/s"}}]},
        {"version": 1, "rules": [{"id": "a"}]},
        {"version": 1, "rules": [{"id": "a", "limit": None}]},
        right(allow=[]),
        right(allow="admin"),
        right(deny=["produce", "connect"]),
        right(deny=7),
        right(allow="produce", deny="consume"),
        of(allow="produce"),
        of(id="a b"),
        of(limit={}),
        of(limit={"publish": {}}),
        of(limit={"lookups": 5}),
        of(limit={"lookups": "5"}),
        of(limit={"publish": {"bytes": "5/s"}}),
        of(limit={"producers": 0}),
        of(limit={"producers": True}),
        of(match={"color": "red"}),
        of(match={"tenant": []}),
        of(match={"tenant": [7]}),
        of(per="color"),
        of(burst=[]),
        of(mode="dry-run"),
        of(override="yes please"),
        of(expires="tomorrow"),
        of(expires="2026-12-24T18:00:00"),
        of(expires=2026),
        of(expires=None),
        of(color="red"),
    ],
)
def test_what_is_rejected_is_not_allowed(data: object) -> None:
    assert build(data)[1]
    assert not allows(SCHEMA, SCHEMA, data)


@pytest.mark.parametrize(
    "data",
    [
        of(per="tenant"),
        of(per=["tenant", "address"]),
        of(burst=2000),
        of(burst="500ms"),
        of(match={"tenant": "a,b", "network": ["10.0.0.0/8"]}),
        of(limit={"dispatch": {"bytes": "1.5 GiB/h"}, "producers": 7}),
        of(override=True, partitions="each", action="reject", on_store_failure="open"),
        of(expires="2026-12-24"),
        right(allow="produce", expires="2026-12-24T18:00+01:00"),
        right(deny=["lookup", "produce", "consume", "administer"], mode="shadow"),
        right(allow="consume", match={"subscription": "s"}),
        yaml.safe_load(limits.rules()),
    ],
)
def test_what_is_accepted_is_allowed(data: object) -> None:
    assert build(data)[1] == ()
    assert allows(SCHEMA, SCHEMA, data)


RATES = st.from_regex(r"[0-9]{0,3}\.?[0-9]{1,2}[KkMi]{0,2}[Bb]? ?/ ?[smhd]?", fullmatch=True)


@examples(500)
@given(RATES, st.sampled_from(["messages", "bytes"]))
def test_a_rate_is_allowed_where_it_is_accepted(rate: str, key: str) -> None:
    data = of(limit={"publish": {key: rate}})
    taken = not any("is not a rate" in mistake.text for mistake in build(data)[1])
    assert allows(SCHEMA, SCHEMA, data) == taken


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("$schema").startswith("https://json-schema.org/")
    assert printed == json.loads(json.dumps(SCHEMA))


def test_a_rule_limits_allows_or_denies() -> None:
    rule = SCHEMA["$defs"]["Rule"]
    assert rule["required"] == ["id"]
    assert rule["oneOf"] == [{"required": [it]} for it in ("limit", "allow", "deny")]


def test_every_key_has_a_description() -> None:
    known = [SCHEMA, *SCHEMA["$defs"].values()]
    silent = [
        name
        for part in known
        for name, field in part["properties"].items()
        if "description" not in field
    ]
    assert silent == []
