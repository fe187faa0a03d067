"""The output and exit statuses of `gateway rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.policy.dimensions import DIMENSIONS
from gateway.rules.options import ACTIONS

OLD = """\
version: 1
rules:
  - {id: same, limit: {lookups: 60/m}}
  - {id: gone, limit: {lookups: 1/s}}
  - id: tenants
    limit: {publish: {messages: 1000/s, bytes: 10MB/s}}
    per: tenant
"""

NEW = """\
version: 1
rules:
  - id: tenants
    match: {tenant: [a, b]}
    limit: {publish: {messages: 2500/s}, producers: 7}
    per: tenant
    burst: 2s
  - {id: same, limit: {lookups: 1/s}, mode: enforce}
  - {id: more, limit: {lookups: 1/s}}
"""

RULES = """\
version: 1
rules:
  - {id: all, limit: {publish: {messages: 100/s, bytes: 10MB/s}}}
  - {id: topics, limit: {publish: {messages: 30/m}}, per: [topic, principal]}
  - {id: large, match: {tenant: acme}, limit: {publish: {bytes: 1.5GB/s}}, override: true}
  - {id: trial, limit: {publish: {messages: 20/s}}, mode: shadow, burst: 7}
  - {id: producers, match: {listener: edge}, limit: {producers: 1000}}
  - {id: connects, match: {network: 10.0.0.0/8}, limit: {connects: 5/s}, per: network}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"old.yaml": OLD, "new.yaml": NEW, "rules/all.yaml": RULES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Return the exit status and the printed lines."""
    status = main(["rules", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return status, out.splitlines()


def test_check_reads_the_default_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "check") == (0, ["rules/all.yaml: ok (6 rules)"])


def test_check_reads_files_and_folders(capsys: pytest.CaptureFixture[str]) -> None:
    expected = ["new.yaml: ok (3 rules)", "rules/all.yaml: ok (6 rules)"]
    assert said(capsys, "check", "new.yaml", "rules") == (0, expected)


def test_check_of_wrong_rules_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check", "old.yaml", "new.yaml"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "new.yaml:3: rules[0].id: is also the id of rules[2] in old.yaml; choose another",
        "new.yaml:8: rules[1].id: is also the id of rules[0] in old.yaml; choose another",
    ]


def test_diff_shows_differences_by_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "diff", "old.yaml", "new.yaml") == (
        1,
        [
            "- gone",
            "+ more",
            "~ tenants",
            "    match.tenant: any -> a, b",
            "    limit.publish.messages: 1000/s -> 2500/s",
            "    limit.publish.bytes: 10MB/s -> none",
            "    burst: the usual -> 2s",
            "    limit.producers: none -> 7",
        ],
    )


def test_diff_of_equal_rules_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "diff", "old.yaml", "old.yaml") == (0, [])


def test_explain_shows_the_limits_that_apply_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--action", "produce", "--topic", "acme/web/orders-partition-2", "--principal", "app"]
    topic = "topic persistent://acme/web/orders, principal app"
    assert said(capsys, "explain", *asked) == (
        0,
        [
            "publish.messages",
            f"    0.5/s, burst 1: rule topics, for {topic}: the strictest",
            "    20/s, burst 7: rule trial, one for all that match: shadow, counts only",
            "    100/s, burst 10: rule all, one for all that match",
            "publish.bytes",
            "    1.5GB/s, burst 150MB: rule large, one for all that match",
            "    10MB/s, burst 1MB: rule all, one for all that match: replaced by large",
        ],
    )


def test_explain_all_shows_the_rules_that_do_not_apply(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--action", "connect", "--client", "10.1.2.3", "--listener", "edge", "--all"]
    status, lines = said(capsys, "explain", *asked)
    assert status == 0
    assert lines[:3] == [
        "connects",
        "    5/s, burst 5: rule connects, for network 10.0.0.0/8",
        "rules that do not apply",
    ]
    assert "    producers: it limits nothing of connect" in lines[3:]
    assert len(lines[3:]) == 5


def test_explain_says_when_nothing_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "explain", "--action", "lookup", "--topic", "orders", "rules") == (
        0,
        ["nothing limits lookup here"],
    )


def test_unknown_fields_do_not_match(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = said(capsys, "explain", "--action", "connect", "--all")
    assert "    connects: its network is 10.0.0.0/8" in lines


def test_every_action_is_an_option() -> None:
    assert set(ACTIONS) == set(DIMENSIONS)
