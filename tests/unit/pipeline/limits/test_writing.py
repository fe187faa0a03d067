"""Recommended limits as a file of rules."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.limits.deciding import Limit, Seen, What
from gateway.pipeline.limits.texts import write
from gateway.pipeline.limits.writing import (
    current,
    document,
    expiry,
    good_until,
    identifier,
)
from gateway.rules import files

UNTIL = date(2026, 12, 24)


def limit(tenant: str = "acme", what: What = What.PUBLISH_MESSAGES, rate: int = 1500) -> Limit:
    return Limit(Seen(tenant, what, 10, 1000, 1000, 1500, 2000, 0), rate, 1500)


TEXT = """\
# Limits that history recommends. Each only counts what it would have held (mode: shadow);
# `gateway rules promote ID` has one enforced. Written anew by `gateway pipeline recommend`.
version: 1
rules:
  # usual 1,000/s, most 1,500/s, 2,000 in one second; 10 days, 1000 intervals
  - id: recommended.acme.{digest}.publish-messages
    match:
      tenant:
      - acme
    limit:
      publish:
        messages: 1500/s
    per:
    - tenant
    burst: 1500
    mode: shadow
    expires: '2026-12-24'
"""


def test_a_rule_is_a_shadow_with_what_it_is_based_on() -> None:
    digest = identifier("acme", What.PUBLISH_MESSAGES).split(".")[2]
    assert document([limit()], UNTIL) == TEXT.format(digest=digest)


def test_rules_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "recommended" / "tenants.yaml"
    both = [limit(), limit("other", What.DISPATCH_BYTES, 5_000_000)]
    assert current(path) == {}
    assert expiry(path) is None
    assert write(path, document(both, UNTIL))
    assert current(path) == {identifier(it.seen.tenant, it.seen.what): it.rate for it in both}
    assert expiry(path) == UNTIL
    assert {rule.mode for rule in files.rules_of(files.load([path]))} == {"shadow"}


def test_the_same_limits_give_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "tenants.yaml"
    both = [limit(), limit("other")]
    assert write(path, document(both, UNTIL))
    assert not write(path, document(both[::-1], UNTIL))
    assert [it.name for it in tmp_path.iterdir()] == ["tenants.yaml"]


def test_without_limits_there_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "tenants.yaml"
    assert not write(path, document([], UNTIL))
    write(path, document([limit()], UNTIL))
    assert write(path, document([], UNTIL))
    assert not path.exists()


@pytest.mark.parametrize("tenant", ["a" * 300, "-", "Ünicode", "a-b", "a_b", "a=b"])
def test_each_tenant_has_an_id_that_rules_may_have(tenant: str) -> None:
    what = max(What, key=len)
    assert document([limit(tenant, what)], UNTIL)
    assert identifier(tenant, what) != identifier(tenant + "x", what)


def test_the_day_until_which_it_is_good_moves_on_seldom() -> None:
    today = date(2026, 11, 24)
    assert good_until(today, 30, None) == UNTIL
    assert good_until(date(2026, 12, 1), 30, UNTIL) == UNTIL
    assert good_until(date(2026, 12, 10), 30, UNTIL) == date(2027, 1, 9)
