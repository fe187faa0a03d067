"""Regular expressions take time in proportion to what they read, and mistakes are told."""

from __future__ import annotations

import sys

import pytest

from gateway.config.expressions import compiled


def test_an_expression_matches_whole_names() -> None:
    expression = compiled("(?P<who>[a-z]+)@(example[.](?:org|net))")
    found = expression.fullmatch("alice@example.org")
    assert found is not None
    assert tuple(found.groups()) == ("alice", "example.org")
    assert dict(found.groupdict()) == {"who": "alice"}
    assert (expression.groups, dict(expression.groupindex)) == (2, {"who": 1})
    assert expression.fullmatch("alice@example.org.") is None


def test_nested_repetitions_end() -> None:
    """Others would take longer than the universe is old."""
    assert compiled("(a*)*b").fullmatch("a" * 100_000) is None


@pytest.mark.parametrize("text", ["(", "(?=a)", "(?<!a)b", r"(a)\1", "a{1001}", "[[:word"])
def test_a_mistake_is_told(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"^is not a regular expression: .+"):
        compiled(text)
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match=r"pip install 'broker-gateway\[regex\]'"):
        compiled("a")
