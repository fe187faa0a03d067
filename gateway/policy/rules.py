"""The model of a rules file, as frozen values: what each rule matches, and what it sets.

Each rule is checked by itself here; `rules.files` checks that the ids of all rules differ. The
texts below the fields become descriptions in the JSON schema (`gateway rules schema`), and editors
show them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, model_validator
from pydantic.json_schema import WithJsonSchema

from gateway.config import units
from gateway.config.expressions import compiled
from gateway.config.model import NOT_EMPTY, Flag, Name, Networks, Version
from gateway.config.parts import Part as ConfigurationPart
from gateway.policy import expiry, rates
from gateway.policy.dimensions import Dimension
from gateway.policy.rates import Burst
from gateway.protocols import PLUGINS
from gateway.wire.account import Action, Right

# Over ten seconds after a pause, 1 % more than the rate passes.
USUAL_BURST = Burst(seconds=0.1)
# A client that starts asks for all its topics at once, and hardly ever later.
USUAL_REQUEST_BURST = Burst(seconds=1.0)


def _patterns(value: object) -> object:
    """Return a list, also from one text with commas, as environment variables have it."""
    if value is None:
        return []
    if isinstance(value, list | tuple | dict):
        return value
    if isinstance(value, str) and is_expression(value.strip()):  # which may have commas
        return [value.strip()]
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]


def is_expression(pattern: str) -> bool:
    """Return whether a pattern of `match` is a regular expression, that is, stands between
    slashes."""
    return len(pattern) > 2 and pattern[0] == pattern[-1] == "/"


def expression_of(pattern: str) -> str:
    """Return the regular expression of a pattern that stands between slashes, without these
    slashes."""
    return pattern[1:-1]


def is_pattern(text: str) -> bool:
    """Return whether an entry of `match` may match several names, because it contains `*` or is a
    regular expression."""
    return "*" in text or is_expression(text)


def _pattern(value: object) -> str:
    pattern = units.text(value)
    if is_expression(pattern):
        compiled(expression_of(pattern))
    return pattern


def _names_partition(pattern: str) -> bool:
    """Return whether a pattern of topics names a partition, in a protocol that has partitions."""
    if is_expression(pattern):
        return False
    names = [pattern.replace("*", sample) for sample in "x0"]
    named = (plugin.read_topic(name) for plugin in PLUGINS.values() for name in names)
    return any(topic is not None and topic.partition is not None for topic in named)


def _names_none(pattern: str) -> bool:
    """Return whether a pattern of topics is a name that no protocol accepts."""
    return not is_pattern(pattern) and all(
        plugin.read_topic(pattern) is None for plugin in PLUGINS.values()
    )


def _text(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


def _list(entry: dict[str, Any]) -> WithJsonSchema:
    entries = {"type": "array", "items": entry, "minItems": 1}
    return WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, entries]})


Per = Literal[
    "protocol",
    "listener",
    "tenant",
    "namespace",
    "topic",
    "subscription",
    "principal",
    "network",
    "address",
    "connection",
]

_FLOW = r"^\d+(\.\d+)? ?/ ?[smh]$"
_BYTES = r"^\d+(\.\d+)? ?([KkMmGg][Ii]?)?[Bb] ?/ ?[smh]$"

Id = Annotated[
    Name,
    Field(examples=["tenants"]),
    _text("^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$", "tenants"),
]
Rate = Annotated[float, PlainValidator(rates.rate), _text(_FLOW, "100/s")]
ByteRate = Annotated[float, PlainValidator(rates.byte_rate), _text(_BYTES, "10MB/s")]
Number = Annotated[
    int, PlainValidator(rates.number), WithJsonSchema({"type": "integer", "minimum": 1})
]
BurstValue = Annotated[
    Burst,
    PlainValidator(rates.burst),
    WithJsonSchema({"type": ["string", "number"], "examples": ["500ms", 2000, "1MB"]}),
]
Patterns = Annotated[
    tuple[Annotated[str, PlainValidator(_pattern)], ...],
    BeforeValidator(_patterns),
    NOT_EMPTY,
    _list({"type": "string", "minLength": 1}),
]
Moment = Annotated[
    datetime | None,  # which an empty value is not: it would mean never
    PlainValidator(expiry.moment),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": expiry.PATTERN,
            "examples": ["2026-12-24", "2026-12-24T18:00:00Z"],
        }
    ),
]
MatchNetworks = Annotated[Networks, NOT_EMPTY, _list({"type": "string", "minLength": 1})]
Keys = Annotated[
    tuple[Per, ...],
    BeforeValidator(_patterns),
    NOT_EMPTY,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(Per))},
                {"type": "array", "items": {"enum": list(get_args(Per))}, "minItems": 1},
            ]
        }
    ),
]


class Part(ConfigurationPart):
    """The base of all parts of a rules file."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class LimitsSomething(Part):
    """A part that must have at least one field."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _need_one(self) -> Self:
        fields = type(self).model_fields
        if all(getattr(self, field) is None for field in fields):
            raise ValueError(f"limits nothing; at least one of {', '.join(fields)}")
        return self


Rights = Annotated[
    tuple[Right, ...],
    BeforeValidator(_patterns),
    NOT_EMPTY,
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(Right)},
                {"type": "array", "items": {"enum": list(Right)}, "minItems": 1},
            ]
        }
    ),
]


class Match(Part):
    """The clients and topics that a rule is for. A key that is left out matches all; `*` stands for
    any characters, and a regular expression stands between slashes."""

    protocol: Patterns = ()
    """The protocol of the listener."""
    listener: Patterns = ()
    """Names of listeners."""
    tenant: Patterns = ()
    """Tenants."""
    namespace: Patterns = ()
    """Namespaces: `web`, or `acme/web` with the tenant."""
    topic: Patterns = ()
    """Topics: `orders`, `acme/web/orders`, or `persistent://acme/web/orders`."""
    principal: Patterns = ()
    """Principals of clients. An unknown principal matches no pattern."""
    network: MatchNetworks = ()
    """Networks of clients: 10.0.0.0/8, or one address."""
    subscription: Patterns = ()
    """Names of subscriptions, and of consumer groups; consumers only. Of Kafka also transactional
    ids of producers."""


class Traffic(LimitsSomething):
    """Messages and bytes. A batch counts as the messages in it."""

    messages: Rate | None = None
    """Messages for each second (100/s), minute (m) or hour (h)."""
    bytes: ByteRate | None = None
    """Bytes for each second (10MB/s), minute (m) or hour (h)."""


class LimitValues(LimitsSomething):
    """The limited quantities, each with its value."""

    publish: Traffic | None = None
    """Traffic from producers."""
    dispatch: Traffic | None = None
    """Traffic to consumers."""
    lookups: Rate | None = None
    """Lookups and partition metadata requests."""
    connects: Rate | None = None
    """New connections."""
    producer_creations: Rate | None = None
    """Producers opened."""
    consumer_creations: Rate | None = None
    """Consumers opened."""
    producers: Number | None = None
    """Producers open at the same time, in one process."""
    consumers: Number | None = None
    """Consumers open at the same time, in one process."""

    def values(self) -> Iterator[tuple[Dimension, float]]:
        """Yield the limited dimensions, each with its value: the rate per second, or the number of
        a concurrency limit."""
        for dimension in Dimension:
            value: Any = self
            for step in dimension.split("."):
                value = getattr(value, step, None)
            if value is not None:
                yield dimension, float(value)


_KINDS = ("limit", "allow", "deny")


def _not_null(schema: dict[str, Any]) -> None:
    """Change the schema of a field that may be left out, but not be null."""
    del schema["default"]
    schema["anyOf"].remove({"type": "null"})


class Rule(Part):
    """One rule. All rules that match apply, so the strictest wins."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]}
    )

    id: Id
    """The rule's name in metrics and logs; unique in all files together."""
    match: Match = Match()
    """Whom the rule is for; everybody if left out."""
    limit: LimitValues | None = Field(default=None, json_schema_extra=_not_null)
    """What the rule limits. Each rule has one of `limit`, `allow` and `deny`."""
    allow: Rights = ()
    """What those whom the rule is for may do. To produce and to consume include to look up."""
    deny: Rights = ()
    """What they may not do, whatever other rules allow."""
    per: Keys = ()
    """One limit for each value of these; one for all that match if left out."""
    partitions: Literal["together", "each"] = "together"
    """Whether all partitions of a topic share a limit, or each is a topic of its own."""
    burst: BurstValue | None = None
    """What may pass at once after a pause: a time of the rate, or an amount."""
    override: Flag = False
    """Whether to replace rules that limit the same and are as wide or wider."""
    mode: Literal["enforce", "shadow"] = "enforce"
    """A shadow limits nothing and counts what it would have held."""
    action: Literal["hold", "reject"] = "hold"
    """Above the limit, hold frames or reject new producers."""
    on_overflow: Literal["reset", "reject"] = "reset"
    """Where a producer cannot be held any longer, reset it or reject its messages."""
    on_store_failure: Literal["local_share", "open", "closed"] = "local_share"
    """How the limit works while the store that replicas share does not answer."""
    expires: Moment = None
    """When the rule ends to have an effect: at the end of a day, or at a moment; in UTC."""

    def has_expired(self, now: float) -> bool:
        """Return whether the rule has no effect any more. `now`: wall-clock seconds."""
        return self.expires is not None and self.expires.timestamp() <= now

    @property
    def limits(self) -> Iterator[tuple[Dimension, float]]:
        """Yield the limited dimensions, each with its value; nothing if the rule allows or denies
        rights."""
        if self.limit is not None:
            yield from self.limit.values()

    @property
    def rights(self) -> tuple[Right, ...]:
        """Return the rights that the rule allows or denies; no rights if the rule sets limits."""
        return self.allow or self.deny

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        given = [kind for kind in _KINDS if getattr(self, kind)]
        if len(given) != 1:
            names = " and ".join(given) or "none"
            raise ValueError(f"has {names} of limit, allow and deny; exactly one")
        idle = sorted(self.model_fields_set & _OF_LIMITS) if self.limit is None else []
        if idle:
            raise ValueError(f"has {idle[0]}, which is for limits alone; leave it out")
        plugins = [PLUGINS.get(name) for name in self.match.protocol]
        apart = all(plugin is not None and plugin.groups_apart for plugin in plugins)
        apart = apart and bool(plugins)
        # Producers whose groups are apart have transactional ids.
        named = {Right.CONSUME, Right.PRODUCE} if apart else {Right.CONSUME}
        others = sorted({*self.rights} - named)
        if self.match.subscription and others:
            text = f"is about {others[0]} by subscription, which only consumers have"
            raise ValueError(f"{text}; leave one of them out")
        return self

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        conditions = {*self.match.model_fields_set, *self.per}
        for dimension, _ in self.limits:
            unknown = sorted(conditions & UNKNOWN.get(dimension.action, frozenset()))
            if unknown:
                text = f"cannot limit {dimension} by {unknown[0]}, which is not known then"
                raise ValueError(f"{text}; leave one of them out")
        if "network" in self.per and not self.match.network:
            raise ValueError("has no networks to tell apart; match.network, or per: address")
        return self

    @model_validator(mode="after")
    def _suits_its_protocols(self) -> Self:
        for plugin in (PLUGINS[name] for name in self.match.protocol if name in PLUGINS):
            for dimension, _ in self.limits:
                if dimension.action not in plugin.actions:
                    text = f"limits {dimension} of {plugin.name}, which has no such thing"
                    raise ValueError(f"{text}; leave one of them out")
        return self

    @model_validator(mode="after")
    def _names_topics(self) -> Self:
        # A limit that never applies is seen in its figures; a denial would be missed too late.
        if self.rights and any(map(_names_none, self.match.topic)):
            text = "names a topic as no client may name one"
            raise ValueError(f"{text}; orders, acme/web/orders or persistent://acme/web/orders")
        if self.partitions == "together" and any(map(_names_partition, self.match.topic)):
            if self.rights:
                text = "names a partition of a topic, and rights are those of the whole topic"
                raise ValueError(f"{text}; the topic's own name")
            text = "names a partition of a topic, and here all are one"
            raise ValueError(f"{text}; the topic's own name, or partitions: each")
        return self

    @model_validator(mode="after")
    def _burst_fits(self) -> Self:
        several = sum(not dimension.is_concurrency for dimension, _ in self.limits) > 1
        if several and self.burst is not None and self.burst.amount is not None:
            text = "has one amount as the burst of several rates"
            raise ValueError(f"{text}; a time such as 500ms, or a rule for each rate")
        return self

    def burst_of(self, dimension: Dimension, value: float) -> float:
        """Return the burst of the rule's limit on a dimension, in units. `value`: the limit's units
        per second. For a concurrency limit the burst is 0."""
        if dimension.is_concurrency:
            return 0.0
        usual = USUAL_REQUEST_BURST if dimension.unit is None else USUAL_BURST
        return (usual if self.burst is None else self.burst).of(value)


_OF_LIMITS = frozenset(
    {"per", "partitions", "burst", "override", "action", "on_overflow", "on_store_failure"}
)

_OF_TOPICS = frozenset({"tenant", "namespace", "topic", "subscription"})

UNKNOWN: Mapping[str, frozenset[str]] = {
    Action.CONNECT: _OF_TOPICS,
    Action.LOOKUP: frozenset({"subscription"}),
    Action.PRODUCE: frozenset({"subscription"}),
}
"""By action: the fields that are not known of a client when it does it."""


class RulesDocument(Part):
    """A rules file."""

    version: Annotated[Version, WithJsonSchema({"const": 1})]
    """The version of the file format."""
    rules: Annotated[
        tuple[Rule, ...],
        NOT_EMPTY,
        Field(
            examples=["[{id: all, limit: {publish: {messages: 100/s}}}]"],
            json_schema_extra={"minItems": 1},
        ),
    ]
    """All rules; their order does not matter."""
