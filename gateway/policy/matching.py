"""Matches rules to subjects, to find limits and to authorize. This module reads no files and no
clock.

Theory of operation. A `RuleSet` is asked once for each producer, consumer, lookup or connection.

- A pattern may name a topic alone, with its namespace, or with its domain too. So a subject's topic
  is written in all these *forms* once, and each pattern is compared with one form.
- A rule is compiled to one test for each field of its match. If a field has only exact names, a
  dictionary of these names finds the rule. All other rules are tried one after the other.
- All rules that match apply, except those that an override replaces. An override replaces a rule if
  the rule is in no field more *specific* than the override. A name is more specific than a pattern,
  a network or a limit `per` value; and each of these is more specific than a field that is left
  out. Tenant, namespace and topic count as one field: a topic is more specific than any namespace,
  and a namespace is more specific than any tenant. Two overrides that are equally specific both
  apply.
- If a rule has already expired when it is added to a set, the set keeps it, but the rule matches
  nothing. A set does not change as time passes: its user replaces it when its next rule expires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import IntEnum, auto
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Literal, NamedTuple

from gateway.config.expressions import compiled
from gateway.policy.dimensions import DIMENSIONS, Dimension
from gateway.policy.expiry import written
from gateway.policy.rules import Match, Rule, expression_of, is_expression, is_pattern
from gateway.protocols import PLUGINS
from gateway.wire.account import Right
from gateway.wire.subject import Subject, TopicName

Address = IPv4Address | IPv6Address


class AppliedLimit(NamedTuple):
    """A limit that applies to a subject. Subjects share a limit if rule, dimension and key are the
    same.

    `rate`: units per second; of a concurrency limit, the most that may be open at the same time.
    `burst`: units.
    """

    rule: Rule
    dimension: Dimension
    key: tuple[str, ...]
    rate: float
    burst: float
    mode: Literal["enforce", "shadow"]


class Replaced(NamedTuple):
    """A limit that would apply if no override replaced it, and the rule that is this override."""

    limit: AppliedLimit
    by: Rule


class NotApplied(NamedTuple):
    """A rule that does not apply, and the reason, as text for people."""

    rule: Rule
    why: str


class Verdict(NamedTuple):
    """Whether a subject has a right, and by which rule; None: no rule allowed or denied it.
    `shadow_allowed`, `shadow_by`: the values that `allowed` and `by` would have if shadow rules
    were enforced."""

    allowed: bool
    by: Rule | None
    shadow_allowed: bool
    shadow_by: Rule | None


class Explanation(NamedTuple):
    """The limits that apply, the limits that are overridden, and the rules that do not apply.

    `rights`: the matching rules that allow or deny the action; the first of them decides. None: no
    rule of the set allows or denies anything.
    """

    applied: tuple[AppliedLimit, ...]
    replaced: tuple[Replaced, ...]
    not_applied: tuple[NotApplied, ...]
    rights: tuple[Rule, ...] | None = None


# -- names -------------------------------------------------------------------------------------


class _Form(IntEnum):
    """The ways to write the names of a subject. A pattern is compared with one of them."""

    PROTOCOL = 0
    LISTENER = auto()
    TENANT = auto()
    NAMESPACE_ALONE = auto()
    NAMESPACE = auto()
    TOPIC_ALONE = auto()
    TOPIC_PATH = auto()
    TOPIC = auto()
    PARTITION_ALONE = auto()
    PARTITION_PATH = auto()
    PARTITION = auto()
    PRINCIPAL = auto()
    SUBSCRIPTION = auto()
    ADDRESS = auto()
    CONNECTION = auto()


_Forms = tuple[Any, ...]


def _forms(subject: Subject) -> _Forms:
    """Return a subject in all forms, in the order of `_Form`."""
    topic = subject.topic
    connection = subject.connection
    return (
        subject.protocol,
        subject.listener,
        *_topic_forms(topic),
        subject.principal,
        subject.subscription,
        _address(subject.host),
        None if connection is None else str(connection),
    )


def _topic_forms(topic: TopicName | None) -> tuple[str | None, ...]:
    """Return tenant, namespace (alone, with its tenant), topic and partition in all forms."""
    if topic is None:
        return (None,) * 9
    namespace = topic.namespace
    alone = namespace.rpartition("/")[2]
    whole, name = _name_forms(topic.whole, namespace), _name_forms(topic.name, namespace)
    return (topic.tenant, alone, namespace, *whole, *name)


def _name_forms(name: str, namespace: str) -> tuple[str, str, str]:
    """Return a topic's name alone, with its namespace, and with its domain."""
    path = name.partition("://")[2] or name
    return path.removeprefix(f"{namespace}/"), path, name


def _address(host: str | None) -> Address | None:
    """Return a client's address; an IPv4 address that came to an IPv6 socket as IPv4."""
    if host is None:
        return None
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


_FORM_OF = {form.name.lower(): form for form in _Form}


# -- patterns ----------------------------------------------------------------------------------

_Test = Callable[[Any], object]
_Alternatives = tuple[tuple[_Form, _Test], ...]


def _compile_pattern(pattern: str) -> _Test:
    """Return the test of a pattern. It goes through a name once: clients choose long ones."""
    if is_expression(pattern):
        return compiled(expression_of(pattern)).fullmatch
    head, *middle, tail = pattern.split("*")
    if not middle and not tail:  # the usual pattern, and this is twice as fast
        return lambda name: name.startswith(head)

    def fits(name: str) -> bool:
        at, end = len(head), len(name) - len(tail)
        if not (name.startswith(head) and name.endswith(tail)):
            return False
        for part in middle:
            start = name.find(part, at, end)
            if start < 0:
                return False
            at = start + len(part)
        return at <= end

    return fits


def _forms_of(field: str, pattern: str, *, each: bool) -> tuple[_Form, ...]:
    """Return the forms that a pattern of a field is compared with."""
    if is_expression(pattern):
        pattern = expression_of(pattern)
    if field == "namespace":
        return (_Form.NAMESPACE if "/" in pattern else _Form.NAMESPACE_ALONE,)
    if field != "topic":
        return (_FORM_OF[field],)
    way = _Form.TOPIC_PATH if "/" in pattern else _Form.TOPIC_ALONE
    way = _Form.TOPIC if "://" in pattern else way
    return (way, _Form(way + 3)) if each else (way,)


class _FieldTest(NamedTuple):
    """The test of one field of a match. `names`: all names by form; None if there is a pattern."""

    field: str
    alternatives: _Alternatives
    names: Mapping[_Form, frozenset[str]] | None


def _field_tests(rule: Rule) -> Iterator[_FieldTest]:
    match = rule.match

    def is_inside(address: Address) -> bool:
        return any(address in network for network in match.network)

    for field in Match.model_fields:
        if field == "network" and match.network:
            yield _FieldTest(field, ((_Form.ADDRESS, is_inside),), None)
        elif field != "network" and getattr(match, field):
            yield _field_test(field, getattr(match, field), each=rule.partitions == "each")


def _field_test(field: str, patterns: Iterable[str], *, each: bool) -> _FieldTest:
    names: dict[_Form, set[str]] = {}
    alternatives: list[tuple[_Form, _Test]] = []
    for pattern in patterns:
        for form in _forms_of(field, pattern, each=each):
            if is_pattern(pattern):
                alternatives.append((form, _compile_pattern(pattern)))
            else:
                names.setdefault(form, set()).add(pattern)
    exact = {form: frozenset(texts) for form, texts in names.items()}
    known = [(form, texts.__contains__) for form, texts in exact.items()]
    return _FieldTest(field, (*known, *alternatives), None if alternatives else exact)


# -- rules -------------------------------------------------------------------------------------

_TOPIC_FIELDS = ("tenant", "namespace", "topic")
_OTHER_FIELDS = ("protocol", "listener", "principal", "network", "subscription", "connection")

_Specificity = tuple[int, ...]


def _specificity(rule: Rule) -> _Specificity:
    """Return how specific a rule is: in its place among topics, then in each other field.

    `per` counts as a pattern does: a limit for each topic is more specific than one for each
    tenant, whoever they are for.
    """
    places = [
        2 * level + specificity
        for level, field in enumerate(_TOPIC_FIELDS)
        if (specificity := _field_specificity(rule, field))
    ]
    return (max(places, default=0), *(_field_specificity(rule, field) for field in _OTHER_FIELDS))


def _field_specificity(rule: Rule, field: str) -> int:
    """Return 0 for a field without a condition; 1: patterns, or a limit for each; 2: names."""
    values = getattr(rule.match, field, ())
    if not values:
        split = field in rule.per or (field == "network" and "address" in rule.per)
        return 1 if split else 0
    if field == "network":
        return 2 if all(network.num_addresses == 1 for network in values) else 1
    return 1 if any(is_pattern(pattern) for pattern in values) else 2


_ALL_FIELDS = frozenset(Match.model_fields)
_PLACES = frozenset({"tenant", "namespace"})
_OF_CLIENTS = _ALL_FIELDS - _PLACES - {"topic"}


class _Compiled:
    """A compiled rule. `limits`: by action, its dimensions with rate and burst. `place`: its place
    among the rules. `tests`: alternatives of each field, of which one has to match."""

    __slots__ = ("field_tests", "limits", "place", "rule", "specificity", "tests")

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule, self.place = rule, place
        self.field_tests = tuple(_field_tests(rule))
        self.tests = tuple(test.alternatives for test in self.field_tests)
        self.specificity = _specificity(rule)
        limits = {
            dimension: (rate, rule.burst_of(dimension, rate)) for dimension, rate in rule.limits
        }
        self.limits = {
            action: {dimension: limits[dimension] for dimension in known if dimension in limits}
            for action, known in DIMENSIONS.items()
        }

    def matches(self, forms: _Forms) -> bool:
        """Return whether all fields of this rule match a subject. The loops call no helper methods,
        to save time: they run for each rule without exact names."""
        for alternatives in self.tests:
            for form, fits in alternatives:
                name = forms[form]
                if name is not None and fits(name):
                    break
            else:
                return False
        return True

    def refused_by(self, forms: _Forms, fields: Container[str] = _ALL_FIELDS) -> str | None:
        """Return the first of the rule's `fields` that does not match a subject; None if all of
        them match."""
        for test in self.field_tests:
            if test.field not in fields:
                continue
            known = ((forms[form], fits) for form, fits in test.alternatives)
            if not any(name is not None and fits(name) for name, fits in known):
                return test.field
        return None

    def key(self, forms: _Forms) -> tuple[str, ...]:
        return tuple(self._key(field, forms) for field in self.rule.per)

    def _key(self, field: str, forms: _Forms) -> str:
        address = forms[_Form.ADDRESS]
        if field == "network":
            return next(
                (str(network) for network in self.rule.match.network if address in network), ""
            )
        each = field == "topic" and self.rule.partitions == "each"
        value = forms[_Form.PARTITION if each else _FORM_OF[field]]
        return "" if value is None else str(value)

    def applied(self, dimension: Dimension, key: tuple[str, ...], action: str) -> AppliedLimit:
        rate, burst = self.limits[action][dimension]
        return AppliedLimit(self.rule, dimension, key, rate, burst, self.rule.mode)

    def replaces(self, other: _Compiled) -> bool:
        """Return whether this rule overrides the rule `other`. A shadow rule overrides only shadow
        rules."""
        pairs = zip(self.specificity, other.specificity, strict=True)
        covers = all(mine >= its for mine, its in pairs)
        equal = other.rule.override and other.specificity == self.specificity
        shadow = self.rule.mode == "shadow" and other.rule.mode == "enforce"
        return self.rule.override and covers and not equal and not shadow


class _Index:
    """The rules of one action or right: some by their exact names, the others tried one by one."""

    def __init__(self) -> None:
        self.rules: list[_Compiled] = []
        self._named: dict[_Form, dict[str, list[_Compiled]]] = {}
        self._others: list[_Compiled] = []

    def add(self, rule: _Compiled) -> None:
        self.rules.append(rule)
        exact = [test for test in rule.field_tests if test.names is not None]
        if not exact:
            self._others.append(rule)
            return
        names = min(exact, key=lambda test: _RARITY.index(test.field)).names or {}
        for form, texts in names.items():
            for name in texts:
                self._named.setdefault(form, {}).setdefault(name, []).append(rule)

    def matching(self, forms: _Forms) -> list[_Compiled]:
        """Return the rules that match a subject, in the order in which they were added to the
        set."""
        matches = [rule for rule in self._others if rule.matches(forms)]
        for form, named in self._named.items():
            matches += [rule for rule in named.get(forms[form], ()) if rule.matches(forms)]
        # A rule may be found by two forms.
        return sorted(dict.fromkeys(matches), key=lambda rule: rule.place)


# Fields by which rules are found, those first of which the fewest rules share a name.
_RARITY = ("topic", "subscription", "namespace", "principal", "tenant", "listener", "protocol")


class _Names:
    """The topics that any of some rules names. Their other fields are known to match."""

    def __init__(self, rules: Iterable[_Compiled]) -> None:
        self._all = False
        self._exact: dict[_Form, set[str]] = {}
        heads: dict[_Form, list[str]] = {}
        self._tests: list[tuple[_Form, _Test]] = []
        for rule in rules:
            self._all |= not rule.rule.match.topic
            for pattern in rule.rule.match.topic:
                (form,) = _forms_of("topic", pattern, each=False)
                if is_expression(pattern):
                    self._tests.append((form, _compile_pattern(pattern)))
                    continue
                head, *rest = pattern.split("*")
                if not rest:
                    self._exact.setdefault(form, set()).add(pattern)
                elif rest == [""]:
                    heads.setdefault(form, []).append(head)
                else:
                    self._tests.append((form, _compile_pattern(pattern)))
        # To compare a name with many beginnings at once is a hundred times as fast.
        self._heads = {form: tuple(beginnings) for form, beginnings in heads.items()}

    @property
    def are_none(self) -> bool:
        return not (self._all or self._exact or self._heads or self._tests)

    @property
    def are_all(self) -> bool:
        return self._all or any("" in heads for heads in self._heads.values())

    def have(self, forms: Mapping[_Form, str]) -> bool:
        return (
            self._all
            or any(forms[form] in names for form, names in self._exact.items())
            or any(forms[form].startswith(heads) for form, heads in self._heads.items())
            or any(fits(forms[form]) for form, fits in self._tests)
        )


class Narrowed:
    """A test of topics for one client and right. Its results are those of `RuleSet.judge`, but it
    is faster for many topics.

    It first selects the rules that match the client. For each namespace it then selects those of
    them that match the namespace, so that for each topic only the topic's name is tested. Shadow
    rules are left out.
    """

    def __init__(self, rules: Iterable[_Compiled], client: Subject, *, closed: bool) -> None:
        forms = _forms(client)
        enforced = (rule for rule in rules if rule.rule.mode == "enforce")
        self._rules = [rule for rule in enforced if rule.refused_by(forms, _OF_CLIENTS) is None]
        self._client = client
        self._closed = closed
        self._namespaces: dict[str, tuple[_Names, _Names]] = {}

    def has_all(self, place: TopicName) -> bool:
        """Return whether the client has the right on every topic of a namespace. `place`: any topic
        of the namespace. Regular expressions are not analysed: if a denying rule has one, the
        result is False, and an allowing rule that has one counts as not allowing all topics."""
        denied, allowed = self._names(place)
        return denied.are_none and (not self._closed or allowed.are_all)

    def _names(self, topic: TopicName) -> tuple[_Names, _Names]:
        names = self._namespaces.get(topic.namespace)
        if names is None:
            names = self._namespaces[topic.namespace] = self._within(topic)
        return names

    def __call__(self, topic: TopicName) -> bool:
        denied, allowed = self._names(topic)
        forms = dict(zip(_WHOLE, _name_forms(topic.whole, topic.namespace), strict=True))
        return not denied.have(forms) and (not self._closed or allowed.have(forms))

    def _within(self, topic: TopicName) -> tuple[_Names, _Names]:
        """Return what is denied and allowed in the namespace of a topic."""
        forms = _forms(self._client.about(topic))
        rules = [rule for rule in self._rules if rule.refused_by(forms, _PLACES) is None]
        denying = [rule for rule in rules if rule.rule.deny]
        return _Names(denying), _Names(rule for rule in rules if rule.rule.allow)


_WHOLE = (_Form.TOPIC_ALONE, _Form.TOPIC_PATH, _Form.TOPIC)


class RuleSet:
    """Rules with different ids, compiled to find those that match a subject.

    A set can be filled and freed rule by rule, because both take long for thousands of rules.

    `expired`: the rules that had already expired when they were added, by id. `next_expiry`: the
    wall-clock second in which the next rule expires; infinite if no rule does.
    """

    def __init__(self) -> None:
        self._all: dict[str, Rule] = {}
        self.expired: dict[str, Rule] = {}
        self.next_expiry = math.inf
        self._rules: dict[str, _Compiled] = {}  # without those that have expired
        self._by_action = {action: _Index() for action in DIMENSIONS}
        self._by_right = {right: _Index() for right in Right}
        self._anywhere = {right: _Index() for right in Right}  # the same, whatever the topic
        self._shadows_rights = False
        self._dimensions: set[Dimension] = set()

    @classmethod
    def compile(cls, rules: Iterable[Rule], now: float = -math.inf) -> RuleSet:
        """Return a set of these rules, whose ids must differ. `now`: see `add`."""
        rule_set = cls()
        for rule in rules:
            rule_set.add(rule, now)
        return rule_set

    def add(self, rule: Rule, now: float = -math.inf) -> None:
        """Add a rule after all rules of the set. If the rule has expired at `now` (wall-clock
        seconds), it will match nothing."""
        self._all[rule.id] = rule
        if rule.has_expired(now):
            self.expired[rule.id] = rule
            return
        if rule.expires is not None:
            self.next_expiry = min(self.next_expiry, rule.expires.timestamp())
        compiled = self._rules[rule.id] = _Compiled(rule, len(self._rules))
        for action, index in self._by_action.items():
            if compiled.limits[action]:
                index.add(compiled)
                self._dimensions.update(compiled.limits[action])
        self._add_rights(compiled)

    def _add_rights(self, rule: _Compiled) -> None:
        for right in rule.rule.rights:
            self._add_right(right, rule)
        self._shadows_rights |= bool(rule.rule.rights) and rule.rule.mode == "shadow"
        looking_up = _without_subscription(rule) if _includes_lookup(rule.rule) else None
        if looking_up is not None:
            self._add_right(Right.LOOKUP, looking_up)

    def _add_right(self, right: Right, rule: _Compiled) -> None:
        self._by_right[right].add(rule)
        anywhere = _without_topic(rule)
        if anywhere is not None:
            self._anywhere[right].add(anywhere)

    def dissolve(self) -> Iterator[None]:
        """Free a set that is no longer used, one rule at each step."""
        for indices in (self._by_action, self._by_right, self._anywhere):
            while indices:
                indices.popitem()
                yield
        self.expired.clear()
        for rules in (self._rules, self._all):
            while rules:
                rules.popitem()
                yield

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Rule]:
        """Yield all rules in their order, the expired ones too."""
        return iter(self._all.values())

    def rule(self, id: str) -> Rule | None:
        """Return the rule with this id, even if it has expired; None if there is no such rule."""
        return self._all.get(id)

    def dimensions(self) -> frozenset[Dimension]:
        """Return all dimensions that the rules of this set limit. Expired rules are left out."""
        return frozenset(self._dimensions)

    def limits(self, subject: Subject, action: str) -> tuple[AppliedLimit, ...]:
        """Return all limits that apply to an action of a subject. They are sorted by dimension, and
        within a dimension in the order of their rules.

        `action`: an `Action` of `wire.account`.
        """
        forms = _forms(subject)
        matching = [(rule, rule.key(forms)) for rule in self._by_action[action].matching(forms)]
        return tuple(
            rule.applied(dimension, key, action)
            for dimension in DIMENSIONS[action]
            for rule, key in _not_overridden(matching, dimension, action)
        )

    def judge(self, subject: Subject, right: Right, *, closed: bool) -> Verdict:
        """Authorize a subject: return whether it has a right, and which rule allowed or denied it.
        `closed`: a right that no rule allows is denied."""
        return self._verdict(self._by_right[right].matching(_forms(subject)), closed=closed)

    def judge_any(self, subject: Subject, right: Right, *, closed: bool) -> Verdict:
        """Authorize a subject for what belongs to no single topic, such as a group: it needs a rule
        that allows the right on some topic, and no rule may deny it on all topics. The subject's
        topic stands for all topics of its namespace. `closed`: see `judge`."""
        return self._verdict(self._anywhere[right].matching(_forms(subject)), closed=closed)

    def _verdict(self, rules: list[_Compiled], *, closed: bool) -> Verdict:
        matching = [match.rule for match in rules]
        enforced = [rule for rule in matching if rule.mode == "enforce"]
        allowed, by = _judged(enforced, closed=closed)
        if not self._shadows_rights:
            return Verdict(allowed, by, allowed, by)
        return Verdict(allowed, by, *_judged(matching, closed=closed))

    def narrowed(self, client: Subject, right: Right, *, closed: bool) -> Narrowed:
        """Return a function that tells, for any topic, whether a client has a right on this topic.
        `closed`: see `judge`."""
        return Narrowed(self._by_right[right].rules, client, closed=closed)

    def explain(self, subject: Subject, action: str) -> Explanation:
        """Return which limits and rights apply to an action of a subject, and why each other rule
        does not apply. `action`: the name of an `Action` or of a `Right`."""
        forms = _forms(subject)
        matching = self._by_action[action].matching(forms) if action in DIMENSIONS else []
        rights = self._by_right[Right(action)].matching(forms) if action in _RIGHTS else []
        replaced = []
        for dimension in DIMENSIONS.get(action, ()):
            limiting = [rule for rule in matching if dimension in rule.limits[action]]
            for rule in limiting:
                by = next((other for other in limiting if other.replaces(rule)), None)
                if by is not None:
                    applied = rule.applied(dimension, rule.key(forms), action)
                    replaced.append(Replaced(applied, by.rule))
        not_applied = [
            NotApplied(rule.rule, _why(rule, forms, action))
            for rule in self._rules.values()
            if rule not in matching and rule.rule.id not in {match.rule.id for match in rights}
        ]
        not_applied += [
            NotApplied(expired, f"it expired at {written(expired.expires)}")
            for expired in self.expired.values()
            if expired.expires is not None
        ]
        limits = self.limits(subject, action) if action in DIMENSIONS else ()
        about = any(rule.rule.rights for rule in self._rules.values()) and action in _RIGHTS
        decisive = tuple(sorted((match.rule for match in rights), key=lambda rule: not rule.deny))
        return Explanation(limits, tuple(replaced), tuple(not_applied), decisive if about else None)


def _judged(rules: list[Rule], *, closed: bool) -> tuple[bool, Rule | None]:
    """Authorize by the rules that match: return whether they allow, and the rule that decides
    (None: no rule does). A rule that denies comes first."""
    denying = next((rule for rule in rules if rule.deny), None)
    if denying is not None:
        return False, denying
    return (True, rules[0]) if rules else (not closed, None)


def _includes_lookup(rule: Rule) -> bool:
    """Return whether a rule allows to look up because it allows to produce or to consume."""
    allowed = {*rule.allow}
    return bool(allowed & {Right.PRODUCE, Right.CONSUME}) and Right.LOOKUP not in allowed


def _without_topic(rule: _Compiled) -> _Compiled | None:
    """Return the rule as it applies where the topic is not known; None if it denies some topics
    alone."""
    topics = rule.rule.match.topic
    if not topics:
        return rule
    if rule.rule.deny and "*" not in topics:
        return None
    match = rule.rule.match.model_copy(update={"topic": ()})
    return _Compiled(rule.rule.model_copy(update={"match": match}), rule.place)


def _without_subscription(rule: _Compiled) -> _Compiled | None:
    """Return the rule as it applies to lookups, which have no subscription yet; None if it is not
    about topics, as in protocols whose groups are apart from them."""
    if not rule.rule.match.subscription:
        return rule
    protocols = rule.rule.match.protocol or tuple(PLUGINS)
    together = tuple(
        protocol
        for protocol in protocols
        if protocol not in PLUGINS or not PLUGINS[protocol].groups_apart
    )
    if not together:
        return None
    match = rule.rule.match.model_copy(update={"subscription": (), "protocol": together})
    return _Compiled(rule.rule.model_copy(update={"match": match}), rule.place)


_RIGHTS = frozenset(Right)

_Keyed = tuple[_Compiled, tuple[str, ...]]


def _not_overridden(matching: list[_Keyed], dimension: Dimension, action: str) -> list[_Keyed]:
    """Return the rules that limit a dimension and are not overridden."""
    limiting = [keyed for keyed in matching if dimension in keyed[0].limits[action]]
    # One override of each specificity and mode is enough: its equals replace the same rules.
    overrides = {
        (rule.specificity, rule.rule.mode): rule for rule, _ in limiting if rule.rule.override
    }
    return [
        (rule, key)
        for rule, key in limiting
        if not any(by.replaces(rule) for by in overrides.values())
    ]


def _why(rule: _Compiled, forms: _Forms, action: str) -> str:
    if rule.rule.rights:
        included = action == Right.LOOKUP and _includes_lookup(rule.rule)
        if not included and action not in rule.rule.rights:
            return f"it is not about {action}"
    elif not rule.limits.get(action):
        return f"it limits nothing of {action}"
    field = rule.refused_by(forms)
    return f"its {field} is {', '.join(map(str, getattr(rule.rule.match, field or '')))}"
