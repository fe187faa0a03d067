"""Patterns of topics, by which brokers select what they list.

Brokers from 4.1 on match topics by RE2J, in time linear in a name, but by default compile what RE2J
does not take with Java's own expressions, which may take longer than the world lasts
(`topicsPatternRegexImplementation`). The threads that match serve all clients. So a pattern must be
of a grammar that RE2J surely takes, and must not grow large when it is compiled.

Source: `TopicsPatternFactory` and `TopicList.removeTopicDomainScheme` of Pulsar 4.1 to 5.0, and the
parser of RE2J 1.8, to which tests give the patterns that are accepted here.
"""

from __future__ import annotations

import re

MOST_ADDED = 999
"""How many states counted repetitions may add to a pattern: RE2J refuses more than 1000 copies, of
nested repetitions together, and takes a step for each state and character of a name."""

MOST_NESTED = 100
"""Groups within each other. RE2J parses them by recursion."""

_SEPARATOR = "://"
_DOMAINS = ("non-persistent", "persistent")

_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_OF_CLASS = rf"(?:[^\[\]\\-]|\\{_PUNCTUATION})"
_NUMBER = "(?:0|[1-9][0-9]{0,3})"
_FLAGS = "(?:[ims]+(?:-[ims]+)?|-[ims]+)"

_TOKEN = re.compile(
    rf"""
    \\Q (?P<quoted> (?: [^\\] | \\(?!E) )+ ) (?: \\E | \Z )
    | \[ (?: \^ | (?!\^) ) (?P<items> -? (?: {_OF_CLASS} (?:-{_OF_CLASS})? | \\[dswDSW] )+ -? ) \]
    | (?P<one> [^\\\[\](){{}}|*+?^$] | \\{_PUNCTUATION} | \\[dswDSW] )
    | (?P<assertion> [|^$] | \\b | \(\?{_FLAGS}\) )
    | (?P<open> \( (?: \?{_FLAGS}?: )? )
    | (?P<close> \) )
    | (?: [*+?] | \{{ (?P<least>{_NUMBER}) (?P<more> , (?P<most>{_NUMBER})? )? \}} ) \??
    """,
    re.VERBOSE | re.DOTALL,
)
_RANGE = re.compile(r"\\?(?P<first>.)-\\?(?P<last>.)|\\?.", re.DOTALL)


def is_linear(pattern: str) -> bool:
    """Return whether brokers match a pattern in linear time."""
    if pattern.count(_SEPARATOR) > 1:
        return False  # brokers drop what is behind the second
    return _is_taken(without_domain(pattern))


def without_domain(pattern: str) -> str:
    """Return what brokers compile of a pattern."""
    before, separator, behind = pattern.partition(_SEPARATOR)
    domains = (domain for domain in _DOMAINS if separator and before.endswith(domain))
    return before.removesuffix(next(domains, "")) + behind


def _is_taken(pattern: str) -> bool:
    """Return whether RE2J takes a pattern, and compiles it to few states."""
    outer: list[int] = []  # the states of the groups around
    size = last = added = 0  # of this group; of what may be repeated, 0 for nothing
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return False
        at = token.end()
        repeated = 0
        match token.lastgroup:
            case "quoted":
                size, last = size + len(token["quoted"]), 1
            case "items" if not _is_ordered(token["items"]):
                return False
            case "items" | "one":
                size, last = size + 1, 1
            case "assertion":
                size, last = size + 1, 0
            case "open":
                outer.append(size)
                size = last = 0
            case "close":
                if not outer:
                    return False
                last = max(1, size)
                size = outer.pop() + last
            case _:
                if not last:
                    return False
                repeated, last = last * _copies(token), 0
        size += repeated
        added += repeated
        if added > MOST_ADDED or len(outer) > MOST_NESTED:
            return False
    return not outer


def _is_ordered(items: str) -> bool:
    """Return whether all ranges of a class go upwards."""
    found = _RANGE.finditer(items)
    return all(it["last"] is None or it["first"] <= it["last"] for it in found)


def _copies(token: re.Match[str]) -> int:
    """Return how many copies of what it repeats a repetition adds. `{2,}` has one more, which
    repeats without end."""
    least, most = int(token["least"] or 0), token["most"]
    if most is None:
        return max(0, least - (token["more"] is None))
    return max(0, int(most) - 1) if least <= int(most) else MOST_ADDED + 1
