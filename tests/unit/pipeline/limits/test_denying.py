"""Rules against attackers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest

from gateway.pipeline.kinds import Kind
from gateway.pipeline.limits.denying import (
    MOST_NAMES,
    Attacker,
    decide,
    document,
)
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.rules import files
from gateway.wire.account import Right
from tests.support.subjects import subject_of

NIGHT = datetime(2026, 11, 20, 2, tzinfo=UTC)
NOW, DAY = NIGHT + timedelta(hours=6), timedelta(hours=24)


def attacker(kind: Kind, principal: str | None = None, **fields: object) -> Attacker:
    begin = round(NIGHT.timestamp() * 1000)
    usual = Attacker(
        *(kind, principal, "203.0.113.0/24", begin, begin + 60_001, 40, 1, 1),
        *(0, (), 0, ()),
    )
    return replace(usual, **fields)  # type: ignore[arg-type]


GUESSED = attacker(Kind.GUESSED, "admin")
SPRAYING = attacker(Kind.SPRAYING, principals=12)
SHARED = attacker(
    Kind.SHARED_CREDENTIAL,
    "fleet",
    network=None,
    networks=7,
    failures=0,
    known=2,
    strange=("198.51.100.0/24", "2001:db8::/48", "192.0.2.0/24"),
)


def rules_of(*attackers: Attacker, enforce: bool = False) -> list[Rule]:
    denied, left = decide(attackers, DAY, NOW)
    assert left == []
    text = document(denied, enforce=enforce)
    assert text is not None
    rules, mistakes = files.read(text, "x")
    assert mistakes == ()
    return list(rules)


def reason(it: Attacker) -> str:
    denied, left = decide([it], DAY, NOW)
    assert (denied, [each.attacker for each in left]) == ([], [it])
    return left[0].reason


TEXT = """\
# Attackers that events show. Each rule only counts what it would deny (mode: shadow).
# Written anew by `gateway pipeline abuse`.
version: 1
rules:
  # guessed of 'admin' from 203.0.113.0/24, 40 failures, 2026-11-20 02:00 to 2026-11-20 02:01
  # and 1 earlier
  - id: abuse.admin.{digest}
    match:
      principal:
      - admin
      network:
      - 203.0.113.0/24
    deny:
    - lookup
    - produce
    - consume
    - administer
    mode: shadow
    expires: '2026-11-21T02:01:01Z'
"""


def test_a_rule_has_what_it_is_based_on_and_lives_for_some_time() -> None:
    earlier = replace(
        GUESSED, kind=Kind.GUESSING, start_ms=GUESSED.start_ms - 10, end_ms=GUESSED.end_ms - 9
    )
    denied, _ = decide([GUESSED, earlier], DAY, NOW)
    text = document(denied, enforce=False)
    assert text is not None
    digest = text.split("abuse.admin.")[1].partition("\n")[0]
    assert text == TEXT.format(digest=digest)
    assert (
        document(decide([earlier, GUESSED], DAY, NOW + timedelta(1 / 24))[0], enforce=False) == text
    )


def test_a_guessed_principal_is_denied_where_it_is_a_stranger() -> None:
    rules = RuleSet.compile(rules_of(GUESSED, enforce=True))

    def may(principal: str, host: str) -> bool:
        client = subject_of("orders", principal=principal, host=host, listener="l")
        return all(rules.judge(client, it, closed=False).allowed for it in Right)

    assert not may("admin", "203.0.113.9")
    assert may("admin", "192.0.2.1")
    assert may("guest", "203.0.113.9")


def test_a_network_that_sprays_is_denied_if_nobody_is_at_home_there() -> None:
    (rule,) = rules_of(SPRAYING)
    assert (rule.match.network, rule.match.principal) == ((ip_network("203.0.113.0/24"),), ())
    assert (rule.deny, rule.mode) == (tuple(Right), "shadow")
    (rule,) = rules_of(replace(SPRAYING, residents=3, tried=("b", "a", "x*", "$a")))
    assert rule.match.principal == ("$a", "a", "b")
    assert "3 principals are at home" in reason(replace(SPRAYING, residents=3))
    many = tuple(map(str, range(MOST_NAMES + 1)))
    assert "too many to list" in reason(replace(SPRAYING, residents=3, tried=many))


def test_a_shared_credential_is_denied_in_its_new_networks() -> None:
    (rule,) = rules_of(SHARED)
    assert rule.match.principal == ("fleet",)
    assert [str(it) for it in rule.match.network] == [
        "192.0.2.0/24",
        "198.51.100.0/24",
        "2001:db8::/48",
    ]
    assert "nothing is known" in reason(replace(SHARED, known=0))
    assert "none of its networks is new" in reason(replace(SHARED, strange=()))
    many = tuple(f"10.0.{it}.0/24" for it in range(MOST_NAMES + 1))
    assert "more than 100 new networks" in reason(replace(SHARED, strange=many))


@pytest.mark.parametrize(
    "principal", ["*", "a*", "/a.*/", "", "(masked)", "p-0123456789abcdef01234567", "\ud800"]
)
def test_a_principal_that_rules_cannot_name_has_none(principal: str) -> None:
    assert reason(replace(GUESSED, principal=principal)).startswith("its principal is masked")


@pytest.mark.parametrize("network", [None, "", "unix", "10.0.0.0/24\n  - id: x", "10.0.0.1/24"])
def test_a_network_that_rules_cannot_match_has_none(network: str | None) -> None:
    for it in (GUESSED, SPRAYING):
        assert "no network that rules could match" in reason(replace(it, network=network))


@pytest.mark.parametrize(
    "principal", ["spiffe://x/y", "CN=a, O=b", "a b", "${HOME}", "ü", "- x: '\n\t\x00", "true", "7"]
)
def test_a_rule_names_any_other_principal_as_it_is(principal: str) -> None:
    (rule,) = rules_of(replace(GUESSED, principal=principal))
    assert rule.match.principal == (principal,)


def test_what_is_over_has_no_rule() -> None:
    end = datetime(2026, 11, 21, 2, 1, 1, tzinfo=UTC)
    assert len(decide([GUESSED], DAY, end - timedelta(seconds=1))[0]) == 1
    assert decide([GUESSED, replace(GUESSED, network=None)], DAY, end) == ([], [])
    assert document([], enforce=False) is None


def test_an_enforced_file_says_so() -> None:
    (rule,) = rules_of(GUESSED, enforce=True)
    assert rule.mode == "enforce"


def test_rules_are_in_an_order_of_their_own() -> None:
    all = [SHARED, SPRAYING, GUESSED]
    assert rules_of(*all) == rules_of(*all[::-1])
    assert len({it.id for it in rules_of(*all)}) == 3
