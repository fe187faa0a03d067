"""Decisions that are known for a while."""

from __future__ import annotations

from gateway.policy.decided import Decided


def test_a_decision_is_known_until_its_time() -> None:
    decided = Decided(10, 5.0)
    decided.put("a", 100.0, allowed=True)
    decided.put("b", 101.0, allowed=False)
    assert decided.find("a", 104.9) is True
    assert decided.find("a", 105.0) is None
    assert decided.find("b", 105.0) is False
    assert decided.find("c", 100.0) is None


def test_a_newer_decision_takes_the_place_of_an_older_one() -> None:
    decided = Decided(10, 5.0)
    decided.put("a", 100.0, allowed=True)
    decided.put("a", 103.0, allowed=False)
    assert decided.find("a", 107.0) is False
    assert len(decided) == 1


def test_the_oldest_decision_gives_way() -> None:
    decided = Decided(2, 5.0)
    for name in ("a", "b", "a", "c"):
        decided.put(name, 100.0, allowed=True)
    assert [decided.find(name, 101.0) for name in "abc"] == [True, None, True]
