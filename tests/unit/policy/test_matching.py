"""The limits of subjects: by examples, and compared with a literal reading of docs/rules.md."""

from __future__ import annotations

import time
import weakref
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.dimensions import DIMENSIONS, Dimension
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.wire.account import Action
from gateway.wire.subject import Caller, Subject, TopicName
from tests.support.examples import examples
from tests.support.subjects import subject_of

PUBLISH = {"publish": {"messages": "100/s"}}
DISPATCH = {"dispatch": {"messages": "100/s"}}

CLIENT = subject_of(
    "persistent://acme/web/orders-partition-3",
    protocol="pulsar",
    listener="edge",
    connection=7,
    host="10.1.2.3",
    principal="app",
)


def rule(id: str = "a", limit: object = None, **parts: Any) -> Rule:
    return Rule.model_validate({"id": id, "limit": PUBLISH if limit is None else limit} | parts)


def applied(*rules: Rule, subject: Subject = CLIENT, action: str = Action.PRODUCE) -> list[str]:
    """Return the ids of the rules that apply."""
    return [limit.rule.id for limit in RuleSet.compile(rules).limits(subject, action)]


# -- whom a rule is for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"tenant": "acme"},
        {"tenant": "ac*"},
        {"tenant": "*m*"},
        {"tenant": ["other", "acme"]},
        {"namespace": "web"},
        {"namespace": "acme/web"},
        {"namespace": "acme/*"},
        {"topic": "orders"},
        {"topic": "acme/web/orders"},
        {"topic": "persistent://acme/web/orders"},
        {"topic": "*://acme/*"},
        {"topic": "acme/*"},
        {"network": "10.0.0.0/8"},
        {"network": ["fd00::/8", "10.1.2.3"]},
        {"principal": "app", "listener": "e*", "protocol": "pulsar"},
    ],
)
def test_a_rule_that_matches_applies(match: object) -> None:
    assert applied(rule(match=match)) == ["a"]


@pytest.mark.parametrize(
    "match",
    [
        {"tenant": "acm"},
        {"tenant": "ACME"},
        {"tenant": "ac*x"},
        {"tenant": "acme", "principal": "other"},
        {"namespace": "acme"},
        {"topic": "web/orders"},
        {"topic": "non-persistent://*"},
        {"topic": "order.*"},
        {"network": "10.1.2.4"},
        {"network": "fd00::/8"},
    ],
)
def test_a_rule_that_does_not_match_does_not_apply(match: object) -> None:
    assert applied(rule(match=match)) == []


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [("a*a", False), ("*a*", True), ("a", True), ("a*", True), ("**", True), ("*aa*", False)],
)
def test_parts_of_a_pattern_do_not_overlap(pattern: str, matches: bool) -> None:
    assert bool(applied(rule(match={"tenant": pattern}), subject=subject_of("a/b/c"))) == matches


def test_a_pattern_of_many_parts_is_fast_on_a_long_name() -> None:
    subject = subject_of("a" * 100_000 + "/b/c")
    assert applied(rule(match={"tenant": "*a" * 50 + "*b"}), subject=subject) == []
    assert applied(rule(match={"tenant": "*a" * 50 + "*"}), subject=subject) == ["a"]


def test_unknown_values_match_no_pattern() -> None:
    nobody = subject_of("persistent://a/b/c")
    assert applied(rule(match={"principal": "*"}), subject=nobody) == []
    assert applied(rule(match={"network": "0.0.0.0/0"}), subject=nobody) == []


@pytest.mark.parametrize("field", ["tenant", "namespace", "topic", "subscription"])
def test_a_subject_without_a_topic_has_no_tenant(field: str) -> None:
    alice = Subject(Caller(protocol="pulsar", principal="alice", host="::1"))
    for pattern in ("*", "*/*", "*://*"):
        found = rule(limit=DISPATCH, match={field: pattern})
        assert applied(found, subject=alice, action=Action.CONSUME) == []
    found = rule(limit=DISPATCH, per=[field])
    (limit,) = RuleSet.compile([found]).limits(alice, Action.CONSUME)
    assert limit.key == ("",)


def test_the_key_has_each_part_of_a_subject() -> None:
    parts = ["protocol", "listener", "connection", "address", "principal"]
    parts += ["tenant", "namespace", "topic", "subscription"]
    subject = subject_of(
        "tenant/ns/orders-partition-3",
        "s",
        protocol="pulsar",
        listener="edge",
        connection=7,
        host="fe80::1%eth0",
        principal="alice",
    )
    rules = [rule(it, DISPATCH, per=parts, partitions=it) for it in ("together", "each")]
    keys = [it.key for it in RuleSet.compile(rules).limits(subject, Action.CONSUME)]
    client = ("pulsar", "edge", "7", "fe80::1", "alice", "tenant", "tenant/ns")
    assert keys == [
        (*client, "persistent://tenant/ns/orders", "s"),
        (*client, "persistent://tenant/ns/orders-partition-3", "s"),
    ]


def test_the_zone_of_an_address_does_not_count() -> None:
    subject = subject_of("a/b/c", host="fe80::1%eth0")
    for network in ("fe80::/10", "fe80::1"):
        assert applied(rule(match={"network": network}), subject=subject) == ["a"]
    assert applied(rule(match={"network": "fe80::2"}), subject=subject) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "acme/web/orders/0000-7fff-1",
        "segment://acme/web/orders/0000-7fff-1",
        "orders",
        "topic://acme/web/orders",
    ],
)
def test_a_segment_is_matched_as_a_partition(pattern: str) -> None:
    segment = subject_of("segment://acme/web/orders/0000-7fff-1")
    each = rule(match={"topic": pattern}, partitions="each", per="topic")
    (limit,) = RuleSet.compile([each]).limits(segment, Action.PRODUCE)
    assert limit.key == ("segment://acme/web/orders/0000-7fff-1",)


def test_an_ipv4_address_of_an_ipv6_socket_is_an_ipv4_address() -> None:
    subject = subject_of("a/b/c", host="::ffff:10.1.2.3")
    limits = RuleSet.compile([rule(match={"network": "10.0.0.0/8"}, per="address")])
    (limit,) = limits.limits(subject, Action.PRODUCE)
    assert limit.key == ("10.1.2.3",)


@pytest.mark.parametrize("topic", ["orders", "orders-partition-3", "acme/web/*-partition-3"])
def test_where_each_partition_is_a_topic_both_names_match(topic: str) -> None:
    found = rule(match={"topic": topic}, partitions="each", per="topic")
    (limit,) = RuleSet.compile([found]).limits(CLIENT, Action.PRODUCE)
    assert limit.key == ("persistent://acme/web/orders-partition-3",)


def test_partitions_together_share_the_limit_of_their_topic() -> None:
    (limit,) = RuleSet.compile([rule(per="topic")]).limits(CLIENT, Action.PRODUCE)
    assert limit.key == ("persistent://acme/web/orders",)


def test_a_rule_limits_only_what_it_names() -> None:
    found = rule(limit={"lookups": "5/s", "producers": 3, "publish": {"bytes": "1MB/s"}})
    rules = RuleSet.compile([found])
    dimensions = {it: [li.dimension for li in rules.limits(CLIENT, it)] for it in DIMENSIONS}
    assert dimensions == {
        Action.CONNECT: [],
        Action.LOOKUP: [Dimension.LOOKUPS],
        Action.PRODUCE: [Dimension.PUBLISH_BYTES, Dimension.PRODUCERS],
        Action.CONSUME: [],
    }


def test_a_limit_has_its_rate_burst_and_mode() -> None:
    found = rule(burst=20, mode="shadow")
    (limit,) = RuleSet.compile([found]).limits(CLIENT, Action.PRODUCE)
    assert (limit.rate, limit.burst, limit.mode, limit.key) == (100, 20, "shadow", ())


@pytest.mark.parametrize(
    ("per", "key"),
    [
        (["tenant", "principal"], ("acme", "app")),
        (["namespace"], ("acme/web",)),
        (["listener", "protocol", "connection"], ("edge", "pulsar", "7")),
        (["address"], ("10.1.2.3",)),
        (["network"], ("10.0.0.0/8",)),
    ],
)
def test_a_key_has_the_values_in_the_order_of_the_rule(
    per: list[str], key: tuple[str, ...]
) -> None:
    found = rule(per=per, match={"network": ["192.0.2.0/24", "10.0.0.0/8"]})
    (limit,) = RuleSet.compile([found]).limits(CLIENT, Action.PRODUCE)
    assert limit.key == key


def test_all_rules_that_match_apply_in_their_order() -> None:
    rules = [rule("b"), rule("a", match={"tenant": "acme"}), rule("c", match={"tenant": "x"})]
    assert applied(*rules) == ["b", "a"]


# -- overrides ---------------------------------------------------------------------------------


def override(id: str, match: object, **parts: Any) -> Rule:
    return rule(id, match=match, override=True, **parts)


def test_an_override_replaces_wider_rules() -> None:
    everybody, tenant = rule("all"), rule("tenant", match={"tenant": "acme"})
    assert applied(everybody, tenant, override("o", {"namespace": "acme/web"})) == ["o"]
    assert applied(everybody, override("o", {"tenant": "other"})) == ["all"]


def test_an_override_keeps_narrower_rules() -> None:
    topic = rule("topic", match={"topic": "orders"})
    assert applied(topic, override("o", {"tenant": "acme"})) == ["topic", "o"]
    assert applied(rule("each", per="topic"), override("o", {"tenant": "acme"})) == ["each", "o"]


def test_an_override_keeps_rules_for_other_fields() -> None:
    principal = rule("principal", match={"principal": "app"})
    assert applied(principal, override("o", {"topic": "orders"})) == ["principal", "o"]


def test_an_override_by_name_replaces_one_by_pattern() -> None:
    pattern, name = override("pattern", {"tenant": "ac*"}), override("name", {"tenant": "acme"})
    assert applied(pattern, name) == ["name"]


def test_equally_specific_overrides_both_apply() -> None:
    assert applied(override("a", {"tenant": "acme"}), override("b", {"tenant": "acme"})) == [
        "a",
        "b",
    ]


def test_an_override_replaces_only_dimensions_that_it_limits() -> None:
    wide = rule("wide", limit={"publish": {"messages": "1/s", "bytes": "1MB/s"}})
    limits = RuleSet.compile([wide, override("o", {"tenant": "acme"})]).limits(CLIENT, "produce")
    assert [(it.rule.id, it.dimension) for it in limits] == [
        ("o", Dimension.PUBLISH_MESSAGES),
        ("wide", Dimension.PUBLISH_BYTES),
    ]


def test_a_shadow_replaces_no_enforced_rule() -> None:
    wide, shadow = rule("wide"), rule("shadow", mode="shadow")
    trial = override("trial", {"tenant": "acme"}, mode="shadow")
    assert applied(wide, shadow, trial) == ["wide", "trial"]
    assert applied(wide, shadow, override("o", {"tenant": "acme"})) == ["o"]


# -- explaining --------------------------------------------------------------------------------


def test_an_explanation_has_every_rule() -> None:
    rules = RuleSet.compile(
        [
            rule("wide"),
            override("o", {"tenant": "acme"}),
            rule("other", match={"tenant": "acme", "principal": ["x", "y*"]}),
            rule("lookups", limit={"lookups": "1/s"}),
        ]
    )
    found = rules.explain(CLIENT, Action.PRODUCE)
    assert found.applied == rules.limits(CLIENT, Action.PRODUCE)
    assert [(it.limit.rule.id, it.by.id) for it in found.replaced] == [("wide", "o")]
    assert [(it.rule.id, it.why) for it in found.not_applied] == [
        ("other", "its principal is x, y*"),
        ("lookups", "it limits nothing of produce"),
    ]


# -- compared with the page --------------------------------------------------------------------


def fits(pattern: str, name: str) -> bool:
    if not pattern or not name:
        return not name and not pattern.strip("*")
    if pattern[0] == "*":
        return fits(pattern[1:], name) or fits(pattern, name[1:])
    return pattern[0] == name[0] and fits(pattern[1:], name[1:])


def names(field: str, pattern: str, subject: Subject, *, each: bool) -> list[str | None]:
    """Return the names that a pattern is compared with."""
    topic = subject.topic
    if field not in ("tenant", "namespace", "topic"):
        return [getattr(subject, field)]
    if topic is None:
        return [None]
    if field == "tenant":
        return [topic.tenant]
    if field == "namespace":
        return [topic.namespace if "/" in pattern else topic.namespace.split("/")[-1]]
    whole = [topic.whole, topic.partition or topic.whole][: 1 + each]
    if "://" in pattern:
        return [*whole]
    return [it.split("://")[1] if "/" in pattern else it.split("/")[-1] for it in whole]


def asks_for(rule: Rule, subject: Subject) -> bool:
    each = rule.partitions == "each"
    for field in ("tenant", "namespace", "topic", "principal", "subscription"):
        patterns = getattr(rule.match, field)
        held = [(it, name) for it in patterns for name in names(field, it, subject, each=each)]
        if patterns and not any(name and fits(pattern, name) for pattern, name in held):
            return False
    networks = rule.match.network
    inside = subject.host is not None and any(ip_address(subject.host) in it for it in networks)
    return inside or not networks


def widths(rule: Rule) -> list[int]:
    """Return the specificity of each field; a smaller one is wider."""

    def said(field: str) -> int:
        patterns = [str(it) for it in getattr(rule.match, field)]
        if field == "network":
            patterns = [it.replace("/32", "").replace("/", "*") for it in patterns]
        per = {field, "address"} if field == "network" else {field}
        return (1 + ("*" not in "".join(patterns))) if patterns else bool(per & {*rule.per})

    place = 0
    for level, field in enumerate(("tenant", "namespace", "topic")):
        place = level * 10 + said(field) if said(field) else place
    return [place, said("principal"), said("network"), said("subscription")]


def replaces(by: Rule, rule: Rule) -> bool:
    wider = all(mine >= its for mine, its in zip(widths(by), widths(rule), strict=True))
    if not by.override or not wider or (rule.override and widths(by) == widths(rule)):
        return False
    return by.mode == "enforce" or rule.mode == "shadow"


def key(rule: Rule, subject: Subject) -> tuple[str, ...]:
    topic = subject.topic
    values = {"principal": subject.principal, "address": subject.host}
    if topic is not None:
        whole = topic.partition if rule.partitions == "each" and topic.partition else topic.whole
        values |= {"tenant": topic.tenant, "namespace": topic.namespace, "topic": whole}
    return tuple(values.get(it) or "" for it in rule.per)


def naive(rules: list[Rule], subject: Subject, action: str) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for dimension in DIMENSIONS[action]:
        held = [
            it for it in rules if dimension in dict(it.limit.values()) and asks_for(it, subject)
        ]
        found += [
            (it.id, dimension, key(it, subject), dict(it.limit.values())[dimension])
            for it in held
            if not any(replaces(by, it) for by in held)
        ]
    return found


def some(*patterns: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(patterns), min_size=1, max_size=2)


# Few names, so that most rules match and overrides compete.
MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "tenant": some("a", "a*", "b"),
        "namespace": some("a", "a/a", "*/a", "*b"),
        "topic": some("a", "a/a/a", "p://a/a/a", "a/*", "p:*", "*-1", "b"),
        "principal": some("a", "*a", "b"),
        "network": st.sampled_from([["10.0.0.0/8"], ["10.0.0.1"], ["10.0.0.1", "fd00::/8"]]),
    },
)
PER = ["tenant", "namespace", "topic", "principal", "address"]
LIMITS = st.sampled_from(
    [PUBLISH, {"publish": {"bytes": "1MB/s", "messages": "5/s"}, "dispatch": {"bytes": "9B/s"}}]
)
PARTS = st.fixed_dictionaries(
    {"match": MATCHES, "limit": LIMITS},
    optional={
        "per": st.lists(st.sampled_from(PER), min_size=1, max_size=2, unique=True),
        "partitions": st.sampled_from(["together", "each"]),
        "mode": st.sampled_from(["enforce", "shadow"]),
        "override": st.booleans(),
    },
)
SHORT = st.sampled_from(["a", "a", "a", "b"])


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    tenant, local, topic = draw(SHORT), draw(SHORT), draw(SHORT)
    namespace = f"{tenant}/{local}"
    whole = f"p://{namespace}/{topic}"
    partition = draw(st.sampled_from([None, f"{whole}-partition-1"]))
    caller = Caller(
        host=draw(st.sampled_from([None, "10.0.0.1", "10.0.0.1"])),
        principal=draw(st.sampled_from([None, "a", "a"])),
    )
    return Subject(caller, TopicName(tenant, namespace, whole, partition))


@examples(500)
@given(st.lists(PARTS, max_size=6), subjects(), st.sampled_from([Action.PRODUCE, Action.CONSUME]))
def test_limits_are_those_of_the_page(
    parts: list[dict[str, Any]], subject: Subject, action: Action
) -> None:
    rules = [Rule.model_validate({"id": f"r{i}"} | part) for i, part in enumerate(parts)]
    compiled = RuleSet.compile(rules)
    found = [(it.rule.id, it.dimension, it.key, it.rate) for it in compiled.limits(subject, action)]
    assert found == naive(rules, subject, action)
    explained = compiled.explain(subject, action)
    not_applied = {it.rule.id for it in explained.not_applied}
    replaced = {it.limit.rule.id for it in explained.replaced}
    assert not_applied | replaced | {it[0] for it in found} == {it.id for it in rules}
    assert not not_applied & {it[0] for it in found}


# -- many --------------------------------------------------------------------------------------

MANY = 2000


@pytest.mark.parametrize(
    "matching",
    [
        pytest.param(lambda n: {"tenant": f"t{n}"}, id="names"),
        pytest.param(lambda n: {"tenant": f"t{n}-*"}, id="beginnings"),
        pytest.param(lambda n: {"topic": f"*/t{n}-*/*"}, id="patterns"),
        pytest.param(lambda n: {"network": f"10.{n // 250}.{n % 250}.0/24"}, id="networks"),
    ],
)
def test_one_rule_among_many_is_found(matching: Any) -> None:
    tenant = "t7-x" if "-*" in str(matching(7)) else "t7"
    subject = subject_of(f"{tenant}/t7-x/orders", host="10.0.7.1")
    rules = [rule(f"r{n}", match=matching(n)) for n in range(MANY)]
    begin = time.perf_counter()
    compiled = RuleSet.compile(rules)
    middle = time.perf_counter()
    limits = compiled.limits(subject, Action.PRODUCE)
    end = time.perf_counter()
    print(f"{MANY} rules: compiled in {middle - begin:.4f} s, asked in {end - middle:.6f} s")
    assert [it.rule.id for it in limits] == ["r7"]


def test_a_set_is_dissolved_rule_by_rule() -> None:
    rules = [rule(f"r{n}", match={"tenant": f"t{n}"}) for n in range(10)]
    alive = [weakref.ref(it) for it in rules]
    compiled = RuleSet.compile(rules)
    rules.clear()
    left = []
    for _ in compiled.dissolve():
        left.append(sum(it() is not None for it in alive))
        assert len(compiled) == left[-1]
    assert left[-11:] == list(range(10, -1, -1))


def test_a_set_knows_its_rules_by_their_ids() -> None:
    rules = [rule("a"), rule("b", per="topic")]
    compiled = RuleSet.compile(rules)
    assert [compiled.rule(it) for it in ("a", "b", "c")] == [*rules, None]
