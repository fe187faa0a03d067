"""Decides which rules keep attackers out, and writes them. No Spark, no clock.

Rules come after authentication: they cannot stop anybody who tries credentials, but what somebody
may do who has found one. A rule denies all rights to a network that nobody else is at home in, or
to principals in networks that they are strange to; so it is for nobody who was there before.

A rule lives for some time from the last event that it is based on, so the same findings give the
same file, and an attack that goes on prolongs it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from re import compile as expression

from gateway.config import units
from gateway.pipeline.kinds import Kind
from gateway.pipeline.limits.texts import block, checked, readable
from gateway.policy.expiry import written
from gateway.policy.rules import is_pattern
from gateway.wire.account import Right

MOST_NAMES = 100
"""Principals or networks of one rule: more are no list that anybody reads, and a rule that names
networks is tried one after the other."""

MOST_RULES = 1000
"""Findings that rules are made of: the latest. A gateway compiles so many rules in 50 ms."""

_PSEUDONYM = expression(r"p-[0-9a-f]{24}|\(masked\)").fullmatch
"""Matches what records have for a principal if they do not tell it (`usage.principals`)."""


@dataclass(frozen=True, slots=True)
class Attacker:
    """An attack, and who else is concerned. `kind` to `networks`: as in the table `abuse`.

    `residents`: other principals that were connected from the network before. `tried`: principals
    that it tried and that are strange to it. `strange`: networks of a shared credential that its
    principal was never connected from before; `known`: how many others. Each list has one more than
    `MOST_NAMES` at most.
    """

    kind: str
    principal: str | None
    network: str | None
    start_ms: int
    end_ms: int
    failures: int
    principals: int | None
    networks: int
    residents: int
    tried: Sequence[str]
    known: int
    strange: Sequence[str]


@dataclass(frozen=True, slots=True)
class Denied:
    """Whom a rule is for, until when, and the attack that it is based on, the latest of `number`
    with the same match."""

    match: Mapping[str, Sequence[str]]
    attacker: Attacker
    expires: datetime
    number: int = 1


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """An attack that no rule keeps out, and why."""

    attacker: Attacker
    reason: str


def decide(
    attackers: Iterable[Attacker], lifetime: timedelta, now: datetime
) -> tuple[list[Denied], list[Inexpressible]]:
    """Return rules that have not expired, by who they are for, and the attacks without one."""
    found, left = dict[str, Denied](), list[Inexpressible]()
    for it in sorted(attackers, key=lambda it: (it.end_ms, it.start_ms, it.kind)):
        expires = datetime.fromtimestamp(ceil(it.end_ms / 1000), UTC) + lifetime
        if expires <= now:
            continue
        match = _match(it)
        if isinstance(match, str):
            left.append(Inexpressible(it, match))
            continue
        key = json.dumps(match)
        number = found[key].number + 1 if key in found else 1
        found[key] = Denied(match, it, expires, number)
    return [found[key] for key in sorted(found)], left


def _match(it: Attacker) -> Mapping[str, Sequence[str]] | str:
    """Return whom a rule is for, or why there can be none."""
    if it.kind == Kind.SHARED_CREDENTIAL:
        return _of_shared(it)
    networks = _networks([it.network] if it.network else [])
    if not networks:
        return "records have no network that rules could match (usage.clients)"
    if it.kind in (Kind.GUESSING, Kind.GUESSED) and it.principal is not None:
        return _of_principals([it.principal], networks)
    if not it.residents:
        return {"network": networks}
    if not it.tried:
        return f"{it.residents} principals are at home in its network, and it tried unknown ones"
    if len(it.tried) > MOST_NAMES:
        return (
            f"{it.residents} principals are at home in its network, and it tried too many to list"
        )
    return _of_principals(it.tried, networks)


def _of_shared(it: Attacker) -> Mapping[str, Sequence[str]] | str:
    if not it.known:
        return "nothing is known of its networks before; change its credential"
    if len(it.strange) > MOST_NAMES:
        return f"it came from more than {MOST_NAMES} new networks; change its credential"
    networks = _networks(it.strange)
    if not networks:
        return "none of its networks is new; change its credential"
    return _of_principals([it.principal or ""], networks)


def _of_principals(
    principals: Sequence[str], networks: Sequence[str]
) -> Mapping[str, Sequence[str]] | str:
    named = sorted(filter(_is_nameable, principals))
    if not named:
        return "its principal is masked, or a rule would read it as a pattern"
    # As rules are read, `$` may begin a variable.
    return {"principal": [it.replace("$", "$$") for it in named], "network": networks}


def _is_nameable(principal: str) -> bool:
    """Return whether a rule can name a principal. Surrogates are no text that a file may have."""
    is_text = principal.isascii() or principal.isprintable()
    return bool(principal) and is_text and not is_pattern(principal) and not _PSEUDONYM(principal)


def _networks(texts: Iterable[str]) -> list[str]:
    found = set()
    for text in texts:
        try:
            found.add(units.network(text))
        except ValueError:
            continue
    return [str(it) for it in sorted(found, key=lambda it: (it.version, int(it.network_address)))]


# -- text --------------------------------------------------------------------------------------

_HEADS = {
    True: "# Attackers that events show, denied until their rules expire.",
    False: "# Attackers that events show. Each rule only counts what it would deny (mode: shadow).",
}


def document(denied: Sequence[Denied], *, enforce: bool) -> str | None:
    """Return the text of a file; None without rules, because a file has at least one."""
    if not denied:
        return None
    head = f"{_HEADS[enforce]}\n# Written anew by `gateway pipeline abuse`.\nversion: 1\nrules:\n"
    return checked(head + "".join(_rule(it, enforce=enforce) for it in denied))


def _rule(it: Denied, *, enforce: bool) -> str:
    rule = {
        "id": identifier(it.match),
        "match": {key: list(values) for key, values in it.match.items()},
        "deny": [str(right) for right in Right],
        "mode": "enforce" if enforce else "shadow",
        "expires": written(it.expires),
    }
    more = [] if it.number == 1 else [f"and {it.number - 1} earlier"]
    return block([told(it.attacker), *more], rule)


def identifier(match: Mapping[str, Sequence[str]]) -> str:
    """Return the id of a rule: readable, and another one for each match."""
    first = next(iter(match.values()))[0]
    digest = hashlib.blake2s(json.dumps(match).encode(), digest_size=5).hexdigest()
    return f"abuse.{readable(first, 'principal')}.{digest}"


def told(it: Attacker) -> str:
    """Return what an attack was, in one line."""
    who = f"{it.principal!a}" if it.principal else f"{it.principals or 'unknown'} principals"
    # Records come from elsewhere: a line break would end a comment.
    where = ascii(it.network)[1:-1] if it.network else f"{it.networks} networks"
    begin, end = _time(it.start_ms), _time(it.end_ms)
    return f"{it.kind} of {who} from {where}, {it.failures} failures, {begin} to {end}"


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"
