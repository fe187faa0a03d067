"""Which limits hold for somebody who does something. Pure: no files, no clock.

Rules are compiled once: each becomes a few tests of one name each, and is found by an exact name
where its match has one. Asked is once for each producer, consumer, lookup or connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum, auto
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Literal, NamedTuple

from gateway.config.model import Networks
from gateway.policy.rules import DIMENSIONS, Dimension, Match, Rule
from gateway.wire.subject import Subject, TopicName

Address = IPv4Address | IPv6Address


class AppliedLimit(NamedTuple):
    """One limit that holds. What has the same rule, dimension and key shares it.

    `rate`: for each second; of a plain number the number. `burst`: in the same unit, without time.
    """

    rule: Rule
    dimension: Dimension
    key: tuple[str, ...]
    rate: float
    burst: float
    mode: Literal["enforce", "shadow"]


class Replaced(NamedTuple):
    """A limit that does not hold, and the rule that overrides it."""

    limit: AppliedLimit
    by: Rule


class Silent(NamedTuple):
    """A rule that has nothing to say, and why."""

    rule: Rule
    why: str


class Explanation(NamedTuple):
    """What holds, what would without overrides, and all other rules."""

    applied: tuple[AppliedLimit, ...]
    replaced: tuple[Replaced, ...]
    silent: tuple[Silent, ...]


# -- names -------------------------------------------------------------------------------------


class _Form(IntEnum):
    """Ways to write what a subject has. A pattern is held against one of them."""

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
    """Write a subject in all forms, in their order."""
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
    """Write tenant, namespace (alone, with its tenant), topic and partition in all forms."""
    if topic is None:
        return (None,) * 9
    namespace = topic.namespace
    alone = namespace.rpartition("/")[2]
    whole, name = _name_forms(topic.whole, namespace), _name_forms(topic.name, namespace)
    return (topic.tenant, alone, namespace, *whole, *name)


def _name_forms(name: str, namespace: str) -> tuple[str, str, str]:
    """Write a topic's full name alone, with its namespace, and with its domain."""
    path = name.partition("://")[2] or name
    return path.removeprefix(f"{namespace}/"), path, name


def _address(host: str | None) -> Address | None:
    """Read an address; an IPv4 address that came to an IPv6 socket is an IPv4 address."""
    if host is None:
        return None
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


_KEYS: Mapping[str, _Form] = {
    "protocol": _Form.PROTOCOL,
    "listener": _Form.LISTENER,
    "tenant": _Form.TENANT,
    "namespace": _Form.NAMESPACE,
    "topic": _Form.TOPIC,
    "subscription": _Form.SUBSCRIPTION,
    "principal": _Form.PRINCIPAL,
    "address": _Form.ADDRESS,
    "connection": _Form.CONNECTION,
}


# -- patterns ----------------------------------------------------------------------------------

_Fits = Callable[[Any], object]
_Alternatives = tuple[tuple[_Form, _Fits], ...]


def _fits(pattern: str) -> _Fits:
    """Compile a pattern with `*` in it.

    No regular expression: with some `*` in it a long name, which is a client's to choose, could
    keep it busy for minutes. This goes through a name once.
    """
    head, *middle, tail = pattern.split("*")
    if not middle and not tail:  # the usual pattern, and this is twice as fast
        return lambda name: name.startswith(head)

    def fits(name: str) -> bool:
        at, end = len(head), len(name) - len(tail)
        if not (name.startswith(head) and name.endswith(tail)):
            return False
        for part in middle:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return at <= end

    return fits


def _forms_of(field: str, pattern: str, *, each: bool) -> tuple[_Form, ...]:
    """Answer the forms that a pattern of a field is held against."""
    if field == "namespace":
        return (_Form.NAMESPACE if "/" in pattern else _Form.NAMESPACE_ALONE,)
    if field != "topic":
        return (_Form[field.upper()],)
    way = _Form.TOPIC_PATH if "/" in pattern else _Form.TOPIC_ALONE
    way = _Form.TOPIC if "://" in pattern else way
    return (way, _Form(way + 3)) if each else (way,)


class _Question(NamedTuple):
    """One field of a match. `names`: all of them by form; None where a pattern is among them."""

    field: str
    alternatives: _Alternatives
    names: Mapping[_Form, frozenset[str]] | None


def _questions(rule: Rule) -> Iterator[_Question]:
    match = rule.match
    for field in Match.model_fields:
        if field == "network" and match.network:
            yield _Question(field, ((_Form.ADDRESS, _within(match.network)),), None)
        elif field != "network" and getattr(match, field):
            yield _question(field, getattr(match, field), each=rule.partitions == "each")


def _within(networks: Networks) -> _Fits:
    return lambda address: any(address in network for network in networks)


def _question(field: str, patterns: Iterable[str], *, each: bool) -> _Question:
    names: dict[_Form, set[str]] = {}
    alternatives: list[tuple[_Form, _Fits]] = []
    for pattern in patterns:
        for form in _forms_of(field, pattern, each=each):
            if "*" in pattern:
                alternatives.append((form, _fits(pattern)))
            else:
                names.setdefault(form, set()).add(pattern)
    exact = {form: frozenset(found) for form, found in names.items()}
    known = [(form, found.__contains__) for form, found in exact.items()]
    return _Question(field, (*known, *alternatives), None if alternatives else exact)


# -- rules -------------------------------------------------------------------------------------

_PLACES = ("tenant", "namespace", "topic")
_OTHERS = ("protocol", "listener", "principal", "network", "subscription", "connection")

_Narrowness = tuple[int, ...]


def _narrowness(rule: Rule) -> _Narrowness:
    """How narrow is what a rule limits: its place among topics, then each of the other fields.

    `per` narrows as a pattern does: a limit for each topic is narrower than one for each tenant,
    whoever they are for. A namespace is narrower than any tenant, a topic than any namespace.
    """
    places = [
        2 * level + closeness
        for level, field in enumerate(_PLACES)
        if (closeness := _closeness(rule, field))
    ]
    return (max(places, default=0), *(_closeness(rule, field) for field in _OTHERS))


def _closeness(rule: Rule, field: str) -> int:
    """0: nothing is said about a field; 1: a pattern, or a limit for each; 2: names alone."""
    values = getattr(rule.match, field, ())
    if not values:
        split = field in rule.per or (field == "network" and "address" in rule.per)
        return 1 if split else 0
    if field == "network":
        return 2 if all(it.num_addresses == 1 for it in values) else 1
    return 1 if any("*" in it for it in values) else 2


def _covers(one: _Narrowness, other: _Narrowness) -> bool:
    return all(mine >= its for mine, its in zip(one, other, strict=True))


class _Compiled:
    """A rule, ready to be asked. `limits`: by action, its dimensions with rate and burst."""

    __slots__ = ("limits", "narrowness", "place", "questions", "rule", "tests")

    def __init__(self, rule: Rule, place: int) -> None:
        self.rule, self.place = rule, place
        self.questions = tuple(_questions(rule))
        self.tests = tuple(question.alternatives for question in self.questions)
        self.narrowness = _narrowness(rule)
        limits = {it: (rate, rule.burst_of(it, rate)) for it, rate in rule.limit.values()}
        self.limits = {
            action: {it: limits[it] for it in known if it in limits}
            for action, known in DIMENSIONS.items()
        }

    def matches(self, forms: _Forms) -> bool:
        """Flat, because it is asked for each rule that no exact name finds."""
        for alternatives in self.tests:
            for form, fits in alternatives:
                name = forms[form]
                if name is not None and fits(name):
                    break
            else:
                return False
        return True

    def refused_by(self, forms: _Forms) -> str | None:
        """The first field that does not match."""
        for question in self.questions:
            known = ((forms[form], fits) for form, fits in question.alternatives)
            if not any(name is not None and fits(name) for name, fits in known):
                return question.field
        return None

    def key(self, forms: _Forms) -> tuple[str, ...]:
        return tuple(self._key(field, forms) for field in self.rule.per)

    def _key(self, field: str, forms: _Forms) -> str:
        address = forms[_Form.ADDRESS]
        if field == "network":
            return next((str(it) for it in self.rule.match.network if address in it), "")
        each = field == "topic" and self.rule.partitions == "each"
        found = forms[_Form.PARTITION if each else _KEYS[field]]
        return "" if found is None else str(found)

    def applied(self, dimension: Dimension, key: tuple[str, ...], action: str) -> AppliedLimit:
        rate, burst = self.limits[action][dimension]
        return AppliedLimit(self.rule, dimension, key, rate, burst, self.rule.mode)

    def replaces(self, other: _Compiled) -> bool:
        """Whether this one overrides another; a shadow overrides nothing that is enforced."""
        wider = _covers(self.narrowness, other.narrowness)
        equal = other.rule.override and other.narrowness == self.narrowness
        shadow = self.rule.mode == "shadow" and other.rule.mode == "enforce"
        return self.rule.override and wider and not equal and not shadow


class _Index:
    """Rules of one action: by an exact name, or among those that are always asked."""

    def __init__(self) -> None:
        self._named: dict[_Form, dict[str, list[_Compiled]]] = {}
        self._others: list[_Compiled] = []

    def add(self, rule: _Compiled) -> None:
        exact = [it for it in rule.questions if it.names is not None]
        if not exact:
            self._others.append(rule)
            return
        names = min(exact, key=lambda it: _RARITY.index(it.field)).names or {}
        for form, found in names.items():
            for name in found:
                self._named.setdefault(form, {}).setdefault(name, []).append(rule)

    def matching(self, forms: _Forms) -> list[_Compiled]:
        """Answer the rules that match, in the order in which they stand."""
        found = [rule for rule in self._others if rule.matches(forms)]
        for form, named in self._named.items():
            found += [rule for rule in named.get(forms[form], ()) if rule.matches(forms)]
        # One rule may be named in two forms.
        return sorted(dict.fromkeys(found), key=lambda rule: rule.place)


# The fewer others have a name in common, the better is a rule found by it.
_RARITY = ("topic", "subscription", "namespace", "principal", "tenant", "listener", "protocol")


class RuleSet:
    """Rules that hold together, all with ids of their own.

    It can be made and taken apart rule by rule: of thousands either takes long in one go.
    """

    def __init__(self) -> None:
        self._rules: dict[str, _Compiled] = {}
        self._by_action = {action: _Index() for action in DIMENSIONS}
        self._dimensions: set[Dimension] = set()

    @classmethod
    def compile(cls, rules: Iterable[Rule]) -> RuleSet:
        """Make a set of rules whose ids differ."""
        found = cls()
        for rule in rules:
            found.add(rule)
        return found

    def add(self, rule: Rule) -> None:
        """Let one more rule hold, behind all others."""
        compiled = self._rules[rule.id] = _Compiled(rule, len(self._rules))
        for action, index in self._by_action.items():
            if compiled.limits[action]:
                index.add(compiled)
                self._dimensions.update(compiled.limits[action])

    def dissolve(self) -> Iterator[None]:
        """Let go of a set that nobody asks any more, one rule with each step."""
        while self._by_action:
            self._by_action.popitem()
            yield
        while self._rules:
            self._rules.popitem()
            yield

    def __len__(self) -> int:
        return len(self._rules)

    def rule(self, id: str) -> Rule | None:
        """Answer the rule of this id."""
        compiled = self._rules.get(id)
        return None if compiled is None else compiled.rule

    def dimensions(self) -> frozenset[Dimension]:
        """Answer all that these rules limit, for whomever."""
        return frozenset(self._dimensions)

    def limits(self, subject: Subject, action: str) -> tuple[AppliedLimit, ...]:
        """Answer all limits that hold: by dimension, then in the order of their rules.

        `action`: a `contract.Action`.
        """
        forms = _forms(subject)
        matching = [(rule, rule.key(forms)) for rule in self._by_action[action].matching(forms)]
        return tuple(
            rule.applied(dimension, key, action)
            for dimension in DIMENSIONS[action]
            for rule, key in _standing(matching, dimension, action)
        )

    def explain(self, subject: Subject, action: str) -> Explanation:
        """Answer what `limits` does, and why all others do not hold."""
        forms = _forms(subject)
        matching = self._by_action[action].matching(forms)
        replaced = [
            Replaced(rule.applied(dimension, rule.key(forms), action), by.rule)
            for dimension in DIMENSIONS[action]
            for rule in matching
            if dimension in rule.limits[action]
            for by in _overriding(rule, matching, dimension, action)[:1]
        ]
        silent = [
            Silent(it.rule, _why(it, forms, action))
            for it in self._rules.values()
            if it not in matching
        ]
        return Explanation(self.limits(subject, action), tuple(replaced), tuple(silent))


_Keyed = tuple[_Compiled, tuple[str, ...]]


def _standing(matching: list[_Keyed], dimension: Dimension, action: str) -> list[_Keyed]:
    """Leave out what an override replaces."""
    limiting = [keyed for keyed in matching if dimension in keyed[0].limits[action]]
    # One of each kind is enough: what one replaces, its equals do.
    overrides = {
        (rule.narrowness, rule.rule.mode): rule for rule, _ in limiting if rule.rule.override
    }
    return [it for it in limiting if not any(by.replaces(it[0]) for by in overrides.values())]


def _overriding(
    rule: _Compiled, matching: list[_Compiled], dimension: Dimension, action: str
) -> list[_Compiled]:
    return [by for by in matching if dimension in by.limits[action] and by.replaces(rule)]


def _why(rule: _Compiled, forms: _Forms, action: str) -> str:
    if not rule.limits[action]:
        return f"it limits nothing of {action}"
    field = rule.refused_by(forms)
    return f"its {field} is {', '.join(map(str, getattr(rule.rule.match, field or '')))}"
