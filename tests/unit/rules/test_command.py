"""The output and exit statuses of `gateway rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.policy.dimensions import DIMENSIONS
from gateway.rules.options import ACTIONS
from gateway.wire.account import Right

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


PROTOCOLS = """\
version: 1
rules:
  - {id: kafkas, match: {protocol: kafka}, limit: {publish: {messages: 30/s}}, per: topic}
  - {id: pulsars, match: {protocol: pulsar}, limit: {publish: {messages: 20/s}}, per: topic}
"""


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ([], "    20/s, burst 2: rule pulsars, for topic persistent://public/default/orders"),
        (
            ["--protocol", "pulsar"],
            "    20/s, burst 2: rule pulsars, for topic persistent://public/default/orders",
        ),
        (["--protocol", "kafka"], "    30/s, burst 3: rule kafkas, for topic orders"),
    ],
)
def test_explain_reads_topics_as_the_protocol_does(
    asked: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "protocols.yaml").write_text(PROTOCOLS)
    asked = ["explain", "protocols.yaml", "--action", "produce", "--topic", "orders", *asked]
    assert said(capsys, *asked) == (0, ["publish.messages", line])


@pytest.mark.parametrize(
    ("protocol", "topic"), [("pulsar", "acme/orders"), ("kafka", "acme/web/orders")]
)
def test_explain_refuses_what_is_no_topic_of_the_protocol(
    protocol: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rules", "explain", "--action", "produce", "--protocol", protocol, "--topic", topic])
    assert ended.value.code == 2
    wrong = f"argument --topic: is not a topic of {protocol}; orders, or the whole name"
    assert wrong in capsys.readouterr().err


# -- rights ------------------------------------------------------------------------------------

RIGHTS = """\
version: 1
rules:
  - {id: apps, match: {principal: app}, allow: [produce, consume]}
  - {id: secrets, match: {topic: "*secret*"}, deny: [produce, consume]}
  - {id: trial, match: {principal: app}, deny: produce, mode: shadow}
  - {id: mine, match: {subscription: mine}, allow: consume}
  - {id: slow, limit: {publish: {messages: 1/s}}}
"""

NEW_RIGHTS = """\
version: 1
rules:
  - {id: apps, match: {principal: app}, allow: produce}
  - {id: secrets, match: {topic: "*secret*"}, limit: {lookups: 1/s}}
  - {id: trial, match: {principal: app}, deny: produce}
"""


@pytest.fixture
def rights(tmp_path: Path) -> None:
    (tmp_path / "rights.yaml").write_text(RIGHTS)
    (tmp_path / "later.yaml").write_text(NEW_RIGHTS)


Capture = pytest.CaptureFixture[str]


@pytest.mark.usefixtures("rights")
def test_diff_shows_rights(capsys: Capture) -> None:
    assert said(capsys, "diff", "rights.yaml", "later.yaml") == (
        1,
        [
            "~ apps",
            "    allow: produce, consume -> produce",
            "- mine",
            "~ secrets",
            "    deny: produce, consume -> nothing",
            "    limit.lookups: none -> 1/s",
            "- slow",
            "~ trial",
            "    mode: shadow -> enforce",
        ],
    )


def explained(capsys: Capture, action: str, topic: str, *more: str) -> list[str]:
    status, lines = said(
        capsys, "explain", "rights.yaml", "--action", action, "--topic", topic, *more
    )
    assert status == 0
    return lines


APP = ("--principal", "app")


@pytest.mark.usefixtures("rights")
def test_explain_shows_who_allows(capsys: Capture) -> None:
    assert explained(capsys, "produce", "orders", *APP) == [
        "produce is allowed by rule apps",
        "    rule trial denies it: shadow, counts only",
        "publish.messages",
        "    1/s, burst 1: rule slow, one for all that match",
    ]


@pytest.mark.usefixtures("rights")
def test_explain_shows_the_denial_first(capsys: Capture) -> None:
    assert explained(capsys, "consume", "secrets", *APP) == [
        "consume is denied by rule secrets",
        "    rule apps allows it",
        "nothing limits consume here",
    ]


@pytest.mark.usefixtures("rights")
def test_explain_shows_where_the_listener_decides(capsys: Capture) -> None:
    assert explained(capsys, "administer", "orders", *APP) == [
        "no rule says who may administer here: the listener's access decides"
    ]


@pytest.mark.usefixtures("rights")
def test_explain_of_a_lookup_knows_what_includes_it(capsys: Capture) -> None:
    lines = explained(capsys, "lookup", "orders", *APP)
    assert lines[0] == "lookup is allowed by rule apps"
    assert "    rule mine allows it too" in lines


@pytest.mark.usefixtures("rights")
def test_explain_knows_subscriptions(capsys: Capture) -> None:
    lines = explained(capsys, "consume", "orders", "--subscription", "mine")
    assert lines[0] == "consume is allowed by rule mine"
    lines = explained(capsys, "consume", "orders", "--subscription", "yours")
    assert lines[0].startswith("no rule says who may consume here")


@pytest.mark.usefixtures("rights")
def test_explain_all_tells_why_a_rule_of_rights_does_not_apply(capsys: Capture) -> None:
    lines = explained(capsys, "produce", "orders", "--all")
    assert lines[-5:] == [
        "rules that do not apply",
        "    apps: its principal is app",
        "    secrets: its topic is *secret*",
        "    trial: its principal is app",
        "    mine: it is not about produce",
    ]


@pytest.mark.usefixtures("rights")
def test_explain_all_of_a_lookup_names_the_field_that_differs(capsys: Capture) -> None:
    lines = explained(capsys, "lookup", "orders", "--all")
    assert "    apps: its principal is app" in lines
    assert "    secrets: it is not about lookup" in lines


def test_without_rules_of_rights_explain_says_nothing_of_them(capsys: Capture) -> None:
    lines = said(capsys, "explain", "rules", "--action", "administer", "--topic", "orders")
    assert lines == (0, [])


# -- rules that expire -------------------------------------------------------------------------

EXPIRING = """\
version: 1
rules:
  - {id: past, limit: {publish: {messages: 1/s}}, expires: 2020-02-29}
  - {id: ahead, limit: {publish: {messages: 5/s}}, expires: "9990-01-01T00:00:00Z"}
  - {id: gone, deny: produce, expires: "2020-01-01T00:00Z"}
  - {id: app, deny: produce, match: {principal: app}, expires: 9990-01-01}
"""


@pytest.fixture
def expiring(tmp_path: Path) -> None:
    (tmp_path / "expiring.yaml").write_text(EXPIRING)


@pytest.mark.usefixtures("expiring")
def test_check_names_rules_that_have_expired(capsys: Capture) -> None:
    assert said(capsys, "check", "expiring.yaml") == (
        0,
        [
            "expiring.yaml: ok (4 rules)",
            "expiring.yaml: past expired at 2020-03-01T00:00:00Z; it has no effect",
            "expiring.yaml: gone expired at 2020-01-01T00:00:00Z; it has no effect",
        ],
    )


@pytest.mark.usefixtures("expiring")
def test_explain_says_until_when_and_leaves_out_what_has_expired(capsys: Capture) -> None:
    asked = ("explain", "expiring.yaml", "--action", "produce", "--topic", "orders", "--all")
    assert said(capsys, *asked, *APP) == (
        0,
        [
            "produce is denied by rule app, until 9990-01-02T00:00:00Z",
            "publish.messages",
            "    5/s, burst 1: rule ahead, one for all that match, until 9990-01-01T00:00:00Z",
            "rules that do not apply",
            "    past: it expired at 2020-03-01T00:00:00Z",
            "    gone: it expired at 2020-01-01T00:00:00Z",
        ],
    )


@pytest.mark.usefixtures("expiring")
def test_diff_shows_when_rules_expire(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "later.yaml"
    path.write_text(EXPIRING.replace(", expires: 2020-02-29", ""))
    assert said(capsys, "diff", "expiring.yaml", "later.yaml") == (
        1,
        ["~ past", "    expires: 2020-03-01T00:00:00Z -> never"],
    )


def test_promote_refuses_what_is_no_moment(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["rules", "promote", "x", "--expires", "tomorrow"])
    assert "argument --expires: is not a moment; 2026-12-24" in capsys.readouterr().err


def test_every_action_is_an_option() -> None:
    assert set(ACTIONS) == {*DIMENSIONS, *Right}
