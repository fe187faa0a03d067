"""Who may do what: by examples, and compared with a literal reading of the rules."""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.access import Access, Default, Refused
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.telemetry.figures import Denied
from gateway.wire.account import Right
from gateway.wire.contract import Denial, Refusal
from gateway.wire.subject import Caller, Subject
from tests.support.examples import examples
from tests.support.subjects import subject_of, topic_of

TOPIC = "persistent://acme/web/orders"
EDGE = "edge"

PRODUCE, CONSUME, LOOKUP, ADMINISTER = Right.PRODUCE, Right.CONSUME, Right.LOOKUP, Right.ADMINISTER
KINDS = ("allow", "deny")


def client(
    topic: str = TOPIC,
    subscription: str | None = None,
    *,
    principal: str | None = "app",
    host: str = "10.1.2.3",
    listener: str = EDGE,
) -> Subject:
    return subject_of(
        topic, subscription, protocol="pulsar", listener=listener, host=host, principal=principal
    )


def rule(id: str = "a", **parts: Any) -> Rule:
    return Rule.model_validate({"id": id} | parts)


class House(NamedTuple):
    """Rights under some rules, and whom they refused what."""

    access: Access
    told: list[Refused]

    def refuses(self, right: Right, subject: Subject) -> bool:
        """Ask in both ways, which must agree on all but subscriptions."""
        refused = self.access.refuse(right, subject) is not None
        if subject.subscription is None and subject.topic is not None:
            nobody = subject._replace(topic=None)
            assert self.access.which(right, nobody)(subject.topic) != refused
        return refused


def house(*rules: Rule, default: Default = "open") -> House:
    told: list[Refused] = []
    return House(Access(RuleSet.compile(rules), {EDGE: default}, told.append), told)


def may(*rules: Rule, default: Default = "closed", subject: Subject | None = None) -> set[Right]:
    """Return the rights of a client."""
    found = house(*rules, default=default)
    return {right for right in Right if not found.refuses(right, subject or client())}


# -- what decides ------------------------------------------------------------------------------


def test_without_rules_the_default_decides() -> None:
    assert may(default="open") == set(Right)
    assert may(default="closed") == set()
    assert may(default="shadow") == set(Right)


def test_what_a_rule_allows_is_allowed() -> None:
    assert may(rule(allow=["consume", "administer"])) == {CONSUME, LOOKUP, ADMINISTER}


def test_what_a_rule_denies_is_denied() -> None:
    assert may(rule(deny="produce"), default="open") == set(Right) - {PRODUCE}


@pytest.mark.parametrize("default", ["open", "closed", "shadow"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_denial_comes_first_whatever_the_order(default: Default, order: tuple[int, ...]) -> None:
    rules = [
        rule("wide", allow="produce"),
        rule("never", match={"topic": "acme/web/*"}, deny="produce"),
        rule("narrow", match={"topic": TOPIC, "principal": "app"}, allow="produce"),
    ]
    found = house(*(rules[number] for number in order), default=default)
    denial = found.access.refuse(PRODUCE, client())
    assert denial == Denial(
        Refusal.UNAUTHORIZED, "this client may not produce here: rule never denies it"
    )
    assert found.refuses(PRODUCE, client())
    assert not found.refuses(PRODUCE, client("persistent://acme/other/orders"))


ALL = {
    "nothing": ((), "closed", False),
    "open": ((), "open", True),
    "shadow": ((), "shadow", True),
    "opa": ((), "opa", False),
    "all topics": (({"allow": "consume"},), "closed", True),
    "a pattern for all": (({"match": {"topic": "*"}, "allow": "lookup"},), "closed", True),
    "the namespace": (({"match": {"namespace": "acme/web"}, "allow": "lookup"},), "closed", True),
    "another namespace": (
        ({"match": {"namespace": "acme/x"}, "allow": "lookup"},),
        "closed",
        False,
    ),
    "many topics": (({"match": {"topic": "o*"}, "allow": "lookup"},), "closed", False),
    "an expression": (({"match": {"topic": "/.*/"}, "allow": "lookup"},), "closed", False),
    "another client": (({"match": {"principal": "x"}, "allow": "lookup"},), "closed", False),
    "one denied": (
        ({"allow": "lookup"}, {"id": "b", "match": {"topic": "orders"}, "deny": "lookup"}),
        "open",
        False,
    ),
    "denied to others": (({"match": {"principal": "x"}, "deny": "lookup"},), "open", True),
    "denied on trial": (({"deny": "lookup", "mode": "shadow"},), "open", True),
}


@pytest.mark.parametrize(("rules", "default", "expected"), ALL.values(), ids=ALL)
def test_a_right_to_all_topics_needs_rules_that_name_none(
    rules: tuple[dict[str, Any], ...], default: Default, expected: bool
) -> None:
    found = house(*(rule(**it) for it in rules), default=default)
    denial = found.access.refuse_all(LOOKUP, client()._replace(topic=None), topic_of(TOPIC))
    assert (denial is None) is expected
    assert len(found.told) == (0 if expected else 1)
    if denial is not None:
        assert denial.text == "this client may not lookup all topics here"


GROUP: dict[str, Any] = {"match": {"subscription": "g-*"}, "allow": "consume"}
OTHER_GROUP: dict[str, Any] = {"match": {"subscription": "h"}, "allow": "consume"}

ANY = {
    "nothing": ((), "closed", False),
    "open": ((), "open", True),
    "shadow": ((), "shadow", True),
    "opa": ((), "opa", True),
    "one topic": (({"match": {"topic": "orders"}, "allow": "consume"},), "closed", True),
    "another namespace": (
        ({"match": {"namespace": "acme/x"}, "allow": "consume"},),
        "closed",
        False,
    ),
    "another right": (({"allow": "produce"},), "closed", False),
    "another client": (({"match": {"principal": "x"}, "allow": "consume"},), "closed", False),
    "its subscription": ((GROUP,), "closed", True),
    "another subscription": ((OTHER_GROUP,), "closed", False),
    "all denied": (({"deny": "consume"},), "open", False),
    "all denied at an agent": (({"match": {"topic": "*"}, "deny": "consume"},), "opa", False),
    "one denied": (({"match": {"topic": "orders"}, "deny": "consume"},), "open", True),
    "denied to another subscription": (
        ({"match": {"subscription": "h"}, "deny": "consume"},),
        "open",
        True,
    ),
}


@pytest.mark.parametrize(("rules", "default", "expected"), ANY.values(), ids=ANY)
def test_a_right_to_a_group_needs_a_topic_that_may_be_used_by_it(
    rules: tuple[dict[str, Any], ...], default: Default, expected: bool
) -> None:
    found = house(*(rule(**it) for it in rules), default=default)
    group = client(subscription="g-1")._replace(topic=None)
    denial = found.access.refuse_any(CONSUME, group, topic_of(TOPIC))
    assert (denial is None) is expected
    assert len(found.told) == (0 if expected else 1)
    if denial is not None:
        assert denial.text.startswith("this client may not consume here: ")


def test_what_the_agent_decides_stays_in_a_list_of_topics_that_the_client_has_named() -> None:
    found = house(rule(match={"topic": "secret"}, deny="consume"), default="opa")
    nobody = client()._replace(topic=None)
    assert found.access.which_named(CONSUME, nobody)(topic_of(TOPIC))
    assert not found.access.which(CONSUME, nobody)(topic_of(TOPIC))
    assert not found.access.which_named(CONSUME, nobody)(topic_of("persistent://a/b/secret"))


def test_who_is_denied_by_nobody_is_told_that_no_rule_allows_it() -> None:
    denial = house(default="closed").access.refuse(CONSUME, client())
    assert isinstance(denial, Denial)
    assert denial.text == "this client may not consume here: no rule allows it"


def test_each_listener_has_its_default() -> None:
    access = Access(RuleSet(), {EDGE: "closed", "inner": "open"}, lambda _: None)
    assert access.refuse(PRODUCE, client()) is not None
    assert access.refuse(PRODUCE, client(listener="inner")) is None
    assert access.refuse(PRODUCE, client(listener="another")) is None


def test_limits_are_no_rights() -> None:
    limit = rule(limit={"publish": {"messages": "1/s"}})
    assert may(limit) == set()
    assert may(limit, default="open") == set(Right)


# -- one right and another ---------------------------------------------------------------------


@pytest.mark.parametrize("right", [PRODUCE, CONSUME])
def test_who_may_produce_or_consume_may_look_up(right: Right) -> None:
    assert may(rule(allow=right.value)) == {right, LOOKUP}


@pytest.mark.parametrize("right", [LOOKUP, ADMINISTER])
def test_no_other_right_includes_one(right: Right) -> None:
    assert may(rule(allow=right.value)) == {right}


@pytest.mark.parametrize("right", list(Right))
def test_the_denial_of_a_right_denies_no_other(right: Right) -> None:
    everything = rule("all", allow=list(Right))
    assert may(everything, rule("no", deny=right.value)) == set(Right) - {right}


def test_a_shadow_of_a_right_includes_no_lookup() -> None:
    assert may(rule(allow="produce", mode="shadow")) == set()


def test_who_may_consume_from_one_subscription_may_look_the_topic_up() -> None:
    found = house(rule(match={"subscription": "mine"}, allow="consume"), default="closed")
    assert not found.refuses(LOOKUP, client())
    assert not found.refuses(CONSUME, client(subscription="mine"))
    assert found.refuses(CONSUME, client(subscription="yours"))
    assert found.refuses(CONSUME, client())


def test_the_denial_of_a_subscription_is_for_that_one() -> None:
    found = house(rule(match={"subscription": "audit*"}, deny="consume"))
    assert found.refuses(CONSUME, client(subscription="audit-1"))
    assert not found.refuses(CONSUME, client(subscription="mine"))
    assert not found.refuses(LOOKUP, client())


# -- whom a rule is for ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("match", "subject"),
    [
        ({"network": "10.0.0.0/8"}, client(host="10.9.9.9")),
        ({"network": "10.0.0.0/8"}, client(host="::ffff:10.9.9.9")),
        ({"network": ["fd00::/8", "10.1.2.3"]}, client()),
        ({"listener": "ed*"}, client()),
        ({"principal": "app"}, client()),
        ({"principal": "*"}, client()),
        ({"tenant": "acme", "namespace": "web"}, client()),
        ({"topic": "orders"}, client()),
        ({"topic": "acme/web/*"}, client("persistent://acme/web/orders-partition-7")),
        ({"topic": "orders"}, client("persistent://acme/web/orders-partition-7")),
        ({"topic": "persistent://acme/web/orders"}, client(f"{TOPIC}-partition-7")),
        ({"topic": "acme/web/x"}, client("topic://acme/web/x")),
        ({"topic": "acme/web/x"}, client("segment://acme/web/x/0000-7fff-1")),
        ({"topic": "topic://acme/web/x"}, client("segment://acme/web/x/0000-7fff-1")),
        ({"topic": "x"}, client("persistent://acme/cluster/web/x")),
        ({"namespace": "acme/cluster/web"}, client("persistent://acme/cluster/web/x")),
    ],
)
def test_a_rule_is_for_those_that_match(kind: str, match: object, subject: Subject) -> None:
    found = rule(match=match, **{kind: "produce"})
    default: Default = "closed" if kind == "allow" else "open"
    assert (PRODUCE in may(found, default=default, subject=subject)) == (kind == "allow")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("match", "subject"),
    [
        ({"network": "10.0.0.0/8"}, client(host="11.0.0.1")),
        ({"listener": "edge"}, client(listener="inner")),
        ({"principal": "app"}, client(principal="APP")),
        ({"principal": "app"}, client(principal=None)),
        ({"principal": "*"}, client(principal=None)),
        ({"tenant": "acme", "namespace": "web"}, client("persistent://acme/other/orders")),
        ({"topic": "orders"}, client("persistent://acme/web/orders-partition-x")),
        ({"topic": "orders"}, client("persistent://acme/web/orders-partition-07")),
        ({"topic": "persistent://acme/web/x"}, client("topic://acme/web/x")),
        ({"topic": "topic://acme/web/x"}, client("persistent://acme/web/x")),
        ({"topic": "non-persistent://*"}, client()),
        ({"topic": "orders", "principal": "other"}, client()),
    ],
)
def test_a_rule_is_for_no_others(kind: str, match: object, subject: Subject) -> None:
    default: Default = "closed" if kind == "allow" else "open"
    access = Access(
        RuleSet.compile([rule(match=match, **{kind: "produce"})]),
        {"edge": default, "inner": default},
        lambda _: None,
    )
    assert (access.refuse(PRODUCE, subject) is None) == (kind == "deny")


# -- shadows -----------------------------------------------------------------------------------


def test_an_open_listener_counts_nothing_that_it_allows() -> None:
    found = house(rule(allow="produce"))
    assert not found.refuses(PRODUCE, client())
    assert not found.refuses(CONSUME, client())
    assert found.access.denied == {}
    assert found.told == []


def test_a_denial_is_counted_and_told() -> None:
    found = house(rule("no", deny="produce"), default="closed")
    found.access.refuse(PRODUCE, client())
    found.access.refuse(CONSUME, client())
    assert found.access.denied == {
        Denied(EDGE, "no", PRODUCE, "enforce"): 1,
        Denied(EDGE, "", CONSUME, "enforce"): 1,
    }
    assert found.told == [
        Refused(client(), PRODUCE, "no", shadow=False),
        Refused(client(), CONSUME, "", shadow=False),
    ]


def test_a_listener_in_the_shadow_counts_what_it_would_deny() -> None:
    found = house(rule(allow="produce"), default="shadow")
    assert found.access.refuse(PRODUCE, client()) is None
    assert found.access.refuse(LOOKUP, client()) is None
    assert found.access.refuse(CONSUME, client()) is None
    assert found.access.denied == {Denied(EDGE, "", CONSUME, "shadow"): 1}
    assert found.told == [Refused(client(), CONSUME, "", shadow=True)]


def test_a_listener_in_the_shadow_denies_what_a_rule_denies() -> None:
    found = house(rule("no", deny="produce"), default="shadow")
    assert found.access.refuse(PRODUCE, client()) is not None
    assert found.access.denied == {Denied(EDGE, "no", PRODUCE, "enforce"): 1}


def test_a_shadow_that_denies_is_counted_and_denies_nothing() -> None:
    found = house(rule("trial", deny="produce", mode="shadow"))
    assert not found.refuses(PRODUCE, client())
    assert found.access.denied == {Denied(EDGE, "trial", PRODUCE, "shadow"): 1}
    assert found.told == [Refused(client(), PRODUCE, "trial", shadow=True)]


def test_a_shadow_that_denies_what_is_allowed_is_counted() -> None:
    rules = rule("trial", deny="produce", mode="shadow"), rule("yes", allow="produce")
    found = house(*rules, default="closed")
    assert not found.refuses(PRODUCE, client())
    assert found.access.denied == {Denied(EDGE, "trial", PRODUCE, "shadow"): 1}


@pytest.mark.parametrize("default", ["closed", "open"])
def test_a_shadow_that_allows_changes_nothing(default: Default) -> None:
    found = house(rule("trial", allow="produce", mode="shadow"), default=default)
    assert found.refuses(PRODUCE, client()) == (default == "closed")
    expected = {Denied(EDGE, "", PRODUCE, "enforce"): 1} if default == "closed" else {}
    assert found.access.denied == expected


def test_a_shadow_that_allows_spares_a_listener_in_the_shadow_its_count() -> None:
    """The figures say what would be denied if the shadows were in force."""
    found = house(rule("trial", allow="produce", mode="shadow"), default="shadow")
    assert found.access.refuse(PRODUCE, client()) is None
    assert found.access.denied == {}


def test_a_shadow_beside_a_denial_is_not_counted() -> None:
    rules = rule("trial", deny="produce", mode="shadow"), rule("no", deny="produce")
    found = house(*rules)
    assert found.refuses(PRODUCE, client())
    assert found.access.denied == {Denied(EDGE, "no", PRODUCE, "enforce"): 1}


def test_a_test_of_topics_counts_nothing() -> None:
    rules = rule("trial", deny="lookup", mode="shadow"), rule("no", deny="consume")
    found = house(*rules)
    assert found.access.which(LOOKUP, client())(topic_of(TOPIC))
    assert not found.access.which(CONSUME, client())(topic_of(TOPIC))
    assert found.access.denied == {}
    assert found.told == []


# -- other rules -------------------------------------------------------------------------------


def test_other_rules_are_adopted_at_once() -> None:
    found = house(default="closed")
    assert found.refuses(PRODUCE, client())
    found.access.adopt(RuleSet.compile([rule(allow="produce")]))
    assert not found.refuses(PRODUCE, client())
    assert not found.refuses(LOOKUP, client())
    found.access.adopt(RuleSet())
    assert found.refuses(PRODUCE, client())
    assert sum(found.access.denied.values()) == 2, "what was counted stays"


# -- compared with a literal reading -----------------------------------------------------------

PATTERNS = {
    "principal": ["app", "other", "a*", "*"],
    "tenant": ["acme", "other", "ac*"],
    "namespace": ["web", "acme/web", "*eb", "acme/*"],
    "topic": ["orders", "acme/web/orders", "o*", "*://acme/*", "persistent://acme/web/b*", "*r*s"],
    "network": ["10.0.0.0/8", "10.1.2.3", "fd00::/8"],
    "listener": ["edge", "inner", "*n*"],
}

MATCHES = st.fixed_dictionaries(
    {},
    optional={
        field: st.lists(st.sampled_from(known), min_size=1, max_size=2)
        for field, known in PATTERNS.items()
    },
)
RIGHTS = st.lists(st.sampled_from(list(Right)), min_size=1, max_size=3, unique=True)
RULES = st.lists(
    st.builds(
        lambda match, kind, rights, mode: {"match": match, kind: rights, "mode": mode},
        MATCHES,
        st.sampled_from(KINDS),
        RIGHTS,
        st.sampled_from(["enforce", "enforce", "shadow"]),
    ),
    max_size=6,
)
TOPICS = [
    *("persistent://acme/web/orders", "persistent://acme/web/bills-partition-3"),
    *("non-persistent://acme/app/orders", "persistent://other/web/orders"),
    *("topic://acme/web/orders", "segment://acme/web/orders/0000-7fff-1"),
    "persistent://acme/c/web/errors",
]
CLIENTS = st.builds(
    Caller,
    protocol=st.just("pulsar"),
    listener=st.sampled_from(["edge", "inner"]),
    principal=st.sampled_from(["app", "other", None]),
    host=st.sampled_from(["10.1.2.3", "10.1.2.4", "fd00::1"]),
)


def applies(rule: Rule, subject: Subject) -> bool:
    """Return whether a rule matches, by the limits that it would set."""
    match = rule.match.model_dump(mode="json", exclude_defaults=True)
    limit = {"id": "a", "match": match, "limit": {"publish": {"messages": "1/s"}}}
    limits = RuleSet.compile([Rule.model_validate(limit)]).limits(subject, "produce")
    return bool(limits)


def literally(rules: list[Rule], right: Right, subject: Subject, *, closed: bool) -> bool:
    """Return what the page says: a denial first, then what is allowed, then the default."""
    matching = [it for it in rules if it.mode == "enforce" and applies(it, subject)]
    if any(right in it.deny for it in matching):
        return False
    including = {LOOKUP: {LOOKUP, PRODUCE, CONSUME}}.get(right, {right})
    return not closed or any(including & {*it.allow} for it in matching)


@examples(500)
@given(RULES, CLIENTS, st.sampled_from(list(Right)), st.booleans())
def test_rights_are_as_the_page_says(
    rules: list[dict[str, Any]], caller: Caller, right: Right, closed: bool
) -> None:
    made = [Rule.model_validate({"id": f"r{n}"} | it) for n, it in enumerate(rules)]
    found = RuleSet.compile(made)
    narrowed = found.narrowed(Subject(caller), right, closed=closed)
    for name in TOPICS:
        subject = Subject(caller, topic_of(name))
        expected = literally(made, right, subject, closed=closed)
        assert found.judge(subject, right, closed=closed).allowed == expected
        assert subject.topic is not None
        assert narrowed(subject.topic) == expected
        assert expected or not narrowed.has_all(subject.topic)
        assert not expected or found.judge_any(subject, right, closed=closed).allowed
