"""`gateway rules check`, `diff`, `explain` and `schema`. Each answers an exit status.

Files that are wrong raise `ConfigurationError`, which is status 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping

from gateway.policy.matching import RuleSet
from gateway.policy.rules import RulesDocument
from gateway.protocols import DEFAULT, PLUGINS
from gateway.rules import differing, explaining, files
from gateway.wire.subject import Caller, Subject

SAME, DIFFERENT = 0, 1
"""Exit statuses of `diff`, as the command of that name has them."""

Options = argparse.Namespace


def check(options: Options) -> int:
    """Say whether files of rules are right."""
    _print([files.check(options.rules)])
    return 0


def diff(options: Options) -> int:
    """Print what is added, removed and changed from one set to another."""
    old, new = (files.rules_of(files.load([path])) for path in (options.old, options.new))
    found = differing.differences(old, new)
    _print(found)
    return DIFFERENT if found else SAME


def explain(options: Options) -> int:
    """Print which limits hold for somebody, and why."""
    rules = RuleSet.compile(files.rules_of(files.load(options.rules)))
    found = rules.explain(_subject(options), options.action)
    _print(explaining.lines(found, options.action, everything=options.all))
    return 0


def schema(_: Options) -> int:
    """Print the JSON schema of a rules file, for editors."""
    named_as = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    _print([json.dumps(named_as | RulesDocument.model_json_schema(), indent=2)])
    return 0


def _subject(options: Options) -> Subject:
    caller = Caller(
        protocol=DEFAULT,
        listener=options.listener,
        host=None if options.client is None else str(options.client),
        principal=options.principal,
    )
    topic = PLUGINS[DEFAULT].read_topic(options.topic) if options.topic else None
    return Subject(caller, topic, options.subscription)


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


COMMANDS: Mapping[str, Callable[[Options], int]] = {
    "check": check,
    "diff": diff,
    "explain": explain,
    "schema": schema,
}
