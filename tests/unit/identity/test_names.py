"""Which names principals may have, and how rules write names anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.expressions import compiled
from gateway.identity.names import LONGEST_NAME, Mapping, is_proper, mapped


def rules(*written: tuple[str, str]) -> list[Mapping]:
    return [Mapping(compiled(pattern), template) for pattern, template in written]


# -- proper names --


@pytest.mark.parametrize(
    "name", ["a", "alice@example.com", "spiffe://a/b c", "é", "田", "x" * 2048]
)
def test_a_proper_name(name: str) -> None:
    assert is_proper(name)


@pytest.mark.parametrize(
    "name", ["", "x" * (LONGEST_NAME + 1), "a\0", "a\nb", "\x7f", "\x85", "\ud800", "a\x1b[2J"]
)
def test_an_improper_name(name: str) -> None:
    assert not is_proper(name)


# -- mapping --


def test_without_rules_names_stay_as_they_are() -> None:
    assert mapped("alice", []) == "alice"


@pytest.mark.parametrize(
    ("pattern", "template", "name", "expected"),
    [
        ("(.*)@a.com", "{1}", "alice@a.com", "alice"),
        ("(.*)@(.*)", "{2}/{1}", "alice@a.com", "a.com/alice"),
        (r"(?P<user>\w+)@(?P<site>\w+)", "{site}-{user}-{1}", "alice@home", "home-alice-alice"),
        (".*", "user-{0}", "alice", "user-alice"),
        (".*", "everybody", "alice", "everybody"),
        ("(a)|(b)", "{1}x{2}", "b", "xb"),
        ("(a)(b)?", "{1}{2}", "a", "a"),
        (".*", "{} {a b} {", "alice", "{} {a b} {"),
        ("(.*)", "{1}", "{0}{1}", "{0}{1}"),
        (r"spiffe://a/(.+)", "{1}", "spiffe://a/ns/x", "ns/x"),
    ],
)
def test_groups_stand_for_parts_of_the_name(
    pattern: str, template: str, name: str, expected: str
) -> None:
    assert mapped(name, rules((pattern, template))) == expected


@pytest.mark.parametrize("name", ["alice@a.com.evil.example", "x alice@a.com", "alice@a.com\n", ""])
def test_a_pattern_matches_names_as_a_whole(name: str) -> None:
    assert mapped(name, rules((r"(alice)@a\.com", "{1}"))) is None


def test_the_first_rule_that_fits_counts() -> None:
    written = rules(("b.*", "first"), ("a.*", "second"), ("alice", "third"))
    assert mapped("alice", written) == "second"


def test_a_name_that_fits_no_rule_is_nobodys() -> None:
    assert mapped("carol", rules(("alice", "a"), ("bob", "b"))) is None


@pytest.mark.parametrize(
    ("name", "pattern", "template"),
    [
        ("a\nb", "(?s)(.*)", "{1}"),
        ("alice", "alice", "a\x1b[2J"),
        ("alice", "(b)?alice", "{1}"),
        ("x" * 2000, "(.*)", "{1}{1}"),
    ],
)
def test_a_result_that_is_no_proper_name_is_nobodys(name: str, pattern: str, template: str) -> None:
    assert mapped(name, rules((pattern, template), (".*", "fallback"))) is None


@given(st.text(), st.text(), st.text())
def test_no_template_can_make_it_raise(name: str, template: str, rest: str) -> None:
    result = mapped(name, rules(("(?s)(.*)", template), (".*", rest)))
    assert result is None or is_proper(result)
