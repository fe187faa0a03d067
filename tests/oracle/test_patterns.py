"""RE2J, by which brokers match topics, takes each pattern that the gateway lets pass."""

from __future__ import annotations

from random import Random

from gateway.wire.pulsar.patterns import is_linear, without_domain
from tests.unit.wire.pulsar.test_patterns import TAKEN

from .oracle import Oracles

_PARTS = (
    *"ab1._-/ &^$|*+?(){}[],:=!<>#'\"\\é\n",
    *("\\Q", "\\E", "(?:", "(?i)", "(?s-m:", "(?i-i)", "(?-m)", "{2}", "{0}", "{1,3}", "{2,}"),
    *("{1000}", "{01}", "[a-z]", "[^a]", "[^]", "[-a]", "[a-]", "[z-a]", "[a-\\d]", "[a&&b]"),
    *("\\d", "\\W", "\\b", "\\.", "\\_", "\\A", "\\1", "\\pL", ".*", "a+", "persistent://"),
    *("*?", "??", "()", "(|a)", "[[:alpha:]]", "(?P<x>", "(?=", "(?>", "\\x41", "[\\\\-z]"),
)


def _patterns() -> list[str]:
    rng = Random(1)
    drawn = ("".join(rng.choices(_PARTS, k=rng.randrange(1, 14))) for _ in range(60_000))
    return [*TAKEN, *sorted({pattern for pattern in drawn if is_linear(pattern)})]


def test_each_pattern_that_passes_is_one_of_re2j(oracles: Oracles) -> None:
    patterns = _patterns()
    assert len(patterns) > 1000
    said = oracles.patterns([without_domain(pattern).encode() for pattern in patterns])
    refused = [
        (pattern, readings)
        for pattern, readings in zip(patterns, said, strict=True)
        if any("ex" in reading for reading in readings)
    ]
    assert refused == []
