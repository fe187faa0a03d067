"""Mistakes of files of rules."""

from __future__ import annotations

from tests.unit.errors.case import Case


def rules(rest: str = "", *, id: str = "a", limit: str = "{publish: {messages: 100/s}}") -> str:
    """Return a file of one rule, which is valid by default, with some parts replaced."""
    return f"version: 1\nrules:\n  - id: {id}\n    limit: {limit}\n    {rest}\n"


def right(*lines: str) -> str:
    """Return a file of one rule of rights."""
    return "\n    ".join(["version: 1\nrules:\n  - id: a", *lines]) + "\n"


CASES = [
    Case("an empty file of rules", "", "rules.yaml:1: is empty; at least version and rules"),
    Case(
        "a rule without a limit",
        "version: 1\nrules: [{id: a}]",
        "rules.yaml:2: rules[0]: has none of limit, allow and deny; exactly one",
    ),
    Case(
        "a rule that limits and allows",
        rules("allow: produce"),
        "rules.yaml:3: rules[0]: has limit and allow of limit, allow and deny; exactly one",
    ),
    Case(
        "a right by connection",
        right("allow: produce", "per: connection"),
        "rules.yaml:3: rules[0]: has per, which is for limits alone; leave it out",
    ),
    Case(
        "a right to produce by subscription",
        right("deny: [produce, consume]", "match: {subscription: s}"),
        (
            "rules.yaml:3: rules[0]: is about produce by subscription, which only consumers have; "
            "leave one of them out"
        ),
    ),
    Case(
        "a right on half a topic",
        right("deny: produce", "match: {topic: web/orders}"),
        (
            "rules.yaml:3: rules[0]: names a topic as no client may name one; orders, "
            "acme/web/orders or persistent://acme/web/orders"
        ),
    ),
    Case(
        "a right on one partition",
        right("deny: produce", 'match: {topic: "orders-partition-*"}'),
        (
            "rules.yaml:3: rules[0]: names a partition of a topic, and rights are those of the "
            "whole topic; the topic's own name"
        ),
    ),
    Case(
        "a rule that limits nothing",
        rules(limit="{publish: {}}"),
        "rules.yaml:4: rules[0].limit.publish: limits nothing; at least one of messages, bytes",
    ),
    Case(
        "a rate without time",
        rules(limit="{publish: {messages: 100}}"),
        "rules.yaml:4: rules[0].limit.publish.messages: is not a rate; 100/s, 6000/m or 1/h",
    ),
    Case(
        "a rate of bytes without unit",
        rules(limit="{publish: {bytes: 100/s}}"),
        (
            "rules.yaml:4: rules[0].limit.publish.bytes: is not a rate of bytes; 10MB/s, 64KiB/s "
            "or 1GB/h"
        ),
    ),
    Case(
        "an expiry without a time zone",
        rules("expires: 2026-12-24T18:00:00"),
        (
            "rules.yaml:5: rules[0].expires: is not a moment; 2026-12-24 for the end of that day "
            "in UTC, or 2026-12-24T18:00:00Z"
        ),
    ),
    Case(
        "a limit of zero",
        rules(limit="{producers: 0}"),
        (
            "rules.yaml:4: rules[0].limit.producers: cannot be a limit; more than 0, and less "
            "than 10^18"
        ),
    ),
    Case(
        "a burst with an unknown unit",
        rules("burst: 5 minutes"),
        (
            "rules.yaml:5: rules[0].burst: is not a burst; a time of the rate (500ms), or an "
            "amount (2000, 1MB)"
        ),
    ),
    Case(
        "one amount for several rates",
        rules("burst: 2000", limit="{publish: {messages: 100/s, bytes: 1MB/s}}"),
        (
            "rules.yaml:3: rules[0]: has one amount as the burst of several rates; a time such as "
            "500ms, or a rule for each rate"
        ),
    ),
    Case(
        "connections by topic",
        rules("per: topic", limit="{connects: 5/s}"),
        (
            "rules.yaml:3: rules[0]: cannot limit connects by topic, which is not known then; "
            "leave one of them out"
        ),
    ),
    Case(
        "producers by subscription",
        rules("match: {subscription: s}"),
        (
            "rules.yaml:3: rules[0]: cannot limit publish.messages by subscription, which is not "
            "known then; leave one of them out"
        ),
    ),
    Case(
        "a limit per network without networks",
        rules("per: network"),
        ("rules.yaml:3: rules[0]: has no networks to tell apart; match.network, or per: address"),
    ),
    Case(
        "one partition",
        rules("match: {topic: orders-partition-3}"),
        (
            "rules.yaml:3: rules[0]: names a partition of a topic, and here all are one; the "
            "topic's own name, or partitions: each"
        ),
    ),
    Case(
        "an override that is neither",
        rules("override: 'yes'"),
        "rules.yaml:5: rules[0].override: is neither true nor false; one of them, without quotes",
    ),
    Case(
        "a repeated id",
        "version: 1\nrules:\n  - &a {id: a, limit: {lookups: 1/s}}\n  - *a",
        "rules.yaml:3: rules[1].id: is also the id of rules[0]; choose another",
    ),
]
