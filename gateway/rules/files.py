"""Reads and checks files of rules. All mistakes of all files are reported together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from gateway.config import source
from gateway.config.load import count, read_text, report
from gateway.config.mistakes import Mistake, Place, explain, format_place
from gateway.config.source import Source
from gateway.errors import ConfigurationError
from gateway.policy.expiry import written
from gateway.policy.rules import Rule, RulesDocument

_ADVICE = "name a file of rules, or a folder of such files"

SUFFIXES = (".yaml", ".yml")


class RulesFile(NamedTuple):
    """A file and its rules."""

    path: Path
    rules: tuple[Rule, ...]


def load(
    paths: Iterable[Path], environment: Mapping[str, str] | None = None
) -> tuple[RulesFile, ...]:
    """Read and check files of rules. A path to a folder means all its `*.yaml` and `*.yml` files,
    sorted by name.

    `environment`: used in place of the process's environment variables. Raises `ConfigurationError`
    with one line for each mistake in all files.
    """
    environment = os.environ if environment is None else environment
    lines: list[str] = []
    sources = dict(_sources(_listed(paths, lines), environment, lines))
    repeated = _repeated(sources)
    files = []
    for path, text in sources.items():
        rules, mistakes = build(text.data)
        lines += report(path, text, [*mistakes, *repeated[path]])
        files.append(RulesFile(path, rules))
    if lines:
        raise ConfigurationError("\n".join(lines))
    return tuple(files)


def rules_of(files: Iterable[RulesFile]) -> tuple[Rule, ...]:
    """Return the rules of all files."""
    return tuple(rule for file in files for rule in file.rules)


def check(
    paths: Iterable[Path], now: float, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the lines that `gateway rules check` prints if the files are valid. `now`: the time, in
    wall-clock seconds, with which expiry times of rules are compared. Raises `ConfigurationError`
    as `load` does."""
    for path, rules in load(paths, environment):
        yield f"{path}: ok ({count(len(rules), 'rule')})"
        for rule in rules:
            if rule.expires is not None and rule.has_expired(now):
                yield f"{path}: {rule.id} expired at {written(rule.expires)}; it has no effect"


def read(text: str, title: str) -> tuple[tuple[Rule, ...], tuple[Mistake, ...]]:
    """Check a text as the content of a file of rules. Return its rules and no mistakes; if it is
    wrong, no rules and its mistakes. `title`: the name of the file, for errors. Raises
    `ConfigurationError` if the text is not YAML."""
    return build(source.parse(text, title, os.environ).data)


def build(data: object) -> tuple[tuple[Rule, ...], tuple[Mistake, ...]]:
    """Check the parsed data of one file of rules. Return its rules and no mistakes; if the data is
    wrong, no rules and its mistakes."""
    if data is None:
        return (), (Mistake((), "is empty; at least version and rules"),)
    try:
        return RulesDocument.model_validate(data).rules, ()
    except ValidationError as error:
        return (), tuple(explain(error, RulesDocument))


def _listed(paths: Iterable[Path], lines: list[str]) -> Iterable[Path]:
    """Return the files of all paths, each once. Append a line for each folder without any."""
    files: dict[Path, None] = {}
    for path in paths:
        listed = _files(path)
        files |= dict.fromkeys(listed)
        if not listed:
            lines.append(f"{path}: has no files of rules in it; at least one *.yaml")
    return files


def _files(path: Path) -> Sequence[Path]:
    try:
        listed = sorted(path.iterdir()) if path.is_dir() else None
    except OSError:
        listed = None
    if listed is None:
        return [path]  # if the file does not exist, reading it reports that
    return [entry for entry in listed if entry.suffix in SUFFIXES and entry.is_file()]


def _sources(
    files: Iterable[Path], environment: Mapping[str, str], lines: list[str]
) -> Iterator[tuple[Path, Source]]:
    """Yield the readable files. Append to `lines` a line for each of the others."""
    for path in files:
        try:
            yield path, source.parse(read_text(path, _ADVICE), str(path), environment)
        except ConfigurationError as error:
            lines.append(str(error))


def _repeated(sources: Mapping[Path, Source]) -> Mapping[Path, list[Mistake]]:
    """Find ids that occur twice: metrics could not tell such rules apart."""
    first: dict[str, tuple[Path, Place]] = {}
    mistakes: dict[Path, list[Mistake]] = {path: [] for path in sources}
    for path, text in sources.items():
        for place, id in _ids(text.data):
            before, where = first.setdefault(id, (path, place))
            if (before, where) != (path, place):
                other = format_place(where[:-1]) + ("" if before == path else f" in {before}")
                mistakes[path].append(Mistake(place, f"is also the id of {other}; choose another"))
    return mistakes


def _ids(data: object) -> Iterator[tuple[Place, str]]:
    """Yield each id in its place, whatever else is wrong."""
    rules = data.get("rules") if isinstance(data, Mapping) else None
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        if isinstance(rule, Mapping) and isinstance(rule.get("id"), str):
            yield ("rules", index, "id"), rule["id"]
