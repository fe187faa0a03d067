"""Which patterns of topics brokers may get where rights are needed."""

from __future__ import annotations

import pytest

from gateway.wire.pulsar.patterns import MOST_NESTED, is_linear, without_domain

TAKEN = [
    "",
    ".*",
    "persistent://public/default/.*",
    "non-persistent://public/default/orders-[0-9]+",
    "(?:persistent://public/default/a.*)",
    r"public/default/(orders|mails)\.v\d{1,3}",
    r"^public/default/\Qa.b*(\E\w*$",
    r"\Qa.b",
    r"(?i)Orders_[a-zA-Z_.-]*?",
    r"(?i-s:a)\b[^/]+?",
    r"[-a][a-]{2,}[\]\-\\][\d\s_]",
    r"(a|b|)*(c+)+d??",
    r"\_\-\.\/",
    "(a{10}){100}",
    "a{1000}",
    "a{0}",
    "(.*a){90}",
    "|" * 1000,
    "(" * MOST_NESTED + "a" + ")" * MOST_NESTED,
    "zażółć",
]

REFUSED = [
    r".*pub((a+)+)b\2?",  # kept a thread of a broker for ever
    r"((a+)+)b\1",
    "(?!secret).*",
    "(?=a)(a+)+b",
    "(?<=a)b",
    "(?<!a)b",
    "(?>a+)b",
    "(?<name>a)",
    "(?P<name>a)",
    "(a+)++",
    "a**",
    "*a",
    "(|*)",
    "(?i)*",
    "^*",
    "a{1001}",
    "a{1000,}",
    "(a{10}){101}",
    "(?:){1001}",
    "(a{0}b{0}){1001}",
    "a{0}" * 1000 + "(a{1000}){1000}",
    "a{3,2}",
    "a{01}",
    "a{,3}",
    "a{x",
    "a}",
    "(a{500})(b{502})",
    "(",
    ")",
    "(a))",
    "(" * (MOST_NESTED + 1) + ")" * (MOST_NESTED + 1),
    "[",
    "[]",
    "[^]",
    "[^](a+)+]",
    "[]a]",
    "a]",
    "[z-a]",
    r"[a-\d]",
    r"[\d-z]",
    "[a-c-e]",
    "[a&&[b]]",
    "[[:alpha:]]",
    r"\Q\E*",
    r"a\E",
    r"\1",
    r"\pL",
    r"\R",
    r"\X",
    r"\G",
    r"\k",
    r"\u0061",
    "\\",
    "persistent://a://(a+)+b",
    "(persistent://a)://(a+)+b",
]


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_pattern_that_brokers_match_in_linear_time_is_taken(pattern: str) -> None:
    assert is_linear(pattern)


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_brokers_might_match_slowly_is_refused(pattern: str) -> None:
    assert not is_linear(pattern)


@pytest.mark.parametrize(
    ("pattern", "read"),
    [
        ("public/default/.*", "public/default/.*"),
        ("persistent://t/n/.*", "t/n/.*"),
        ("non-persistent://t/n/.*", "t/n/.*"),
        ("(?:persistent://t/n/a)", "(?:t/n/a)"),
        (r"\persistent://d", r"\d"),
        ("a{persistent://2000}", "a{2000}"),
    ],
)
def test_a_pattern_is_read_without_its_domain_as_brokers_do(pattern: str, read: str) -> None:
    assert without_domain(pattern) == read


def test_what_a_pattern_becomes_without_its_domain_is_what_counts() -> None:
    assert not is_linear("a{persistent://2000}")
    assert not is_linear("(a)(?persistent://!b)")
