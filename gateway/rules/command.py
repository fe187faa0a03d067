"""The commands `gateway rules check`, `diff`, `explain`, `promote` and `schema`: a function for
each, which returns the exit status.

If a file is wrong, they raise `ConfigurationError`, which becomes exit status 2.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from gateway.policy.matching import RuleSet
from gateway.policy.rules import RulesDocument
from gateway.protocols import DEFAULT, PLUGINS
from gateway.rules import files, promoting, text
from gateway.wire.subject import Caller, Subject, TopicName

SAME, DIFFERENT = 0, 1
"""Exit statuses of `diff`, the same as those of diff(1)."""

Options = argparse.Namespace


def check(options: Options) -> int:
    """Check files of rules, and print how many rules each has."""
    _print(files.check(options.rules, time.time()))
    return 0


def diff(options: Options) -> int:
    """Print which rules the new file adds, removes and changes."""
    old, new = (files.rules_of(files.load([path])) for path in (options.old, options.new))
    lines = text.differences(old, new)
    _print(lines)
    return DIFFERENT if lines else SAME


def explain(options: Options) -> int:
    """Print which limits and rights apply to a client's action, and why. Raises `ArgumentError` if
    the topic's name is not valid in its protocol."""
    subject = _subject(options)
    rules = RuleSet.compile(files.rules_of(files.load(options.rules)), time.time())
    explanation = rules.explain(subject, options.action)
    _print(text.explanation(explanation, options.action, everything=options.all))
    return 0


def promote(options: Options) -> int:
    """Enforce a recommended rule, which until then only counts what it would do."""
    now = datetime.now(UTC)
    promotion = promoting.Promotion(options.id, options.source, options.target, options.expires)
    _print([promoting.promote(promotion, now)])
    return 0


def schema(_: Options) -> int:
    """Print the JSON schema of a file of rules, for editors."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    _print([json.dumps(dialect | RulesDocument.model_json_schema(), indent=2)])
    return 0


def _subject(options: Options) -> Subject:
    protocol = options.protocol or DEFAULT
    caller = Caller(
        protocol=protocol,
        listener=options.listener,
        host=None if options.client is None else str(options.client),
        principal=options.principal,
    )
    topic = _topic(protocol, options.topic) if options.topic else None
    return Subject(caller, topic, options.subscription)


def _topic(protocol: str, text: str) -> TopicName:
    topic = PLUGINS[protocol].read_topic(text)
    if topic is None:
        wrong = f"argument --topic: is not a topic of {protocol}; orders, or the whole name"
        raise argparse.ArgumentError(None, wrong)
    return topic


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


COMMANDS: Mapping[str, Callable[[Options], int]] = {
    "check": check,
    "diff": diff,
    "explain": explain,
    "promote": promote,
    "schema": schema,
}
