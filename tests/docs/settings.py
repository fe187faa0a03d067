"""`python -m tests.docs.settings`: writes the reference of all settings into docs/configuration.md.

What a setting means is said by the docstring below it in the model. Its kind of value, bounds,
choices and default are those of the model, and the variables those of the templates of
`gateway init`. A test holds the page to the code.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo
from pydantic.functional_validators import PlainValidator

from gateway import protocols
from gateway.config import init, model, store, units
from gateway.config.parts import Part
from tests.docs import regions

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "configuration.md"

FILE = "The file"
"""The heading of the settings that are in no other part."""

FEW = 3
"""Most settings of a part that is shown as a list. Parts with more settings are shown as tables."""

_SUFFIXES: Mapping[Any, str] = {tuple: "[]", Mapping: ".<name>"}

_MAPPING = {
    "": "[mapping](#{})",
    "[]": "list of [mappings](#{})",
    ".<name>": "[mappings](#{}) by name",
}


class Setting(NamedTuple):
    """One field of a part. `name`: as the file has it."""

    name: str
    field: FieldInfo
    meaning: str


class Section(NamedTuple):
    """The settings of one part. `path`: of the part in the file; of the whole file it is empty.
    `said`: the meaning of the setting that holds the part."""

    path: str
    part: type[Part]
    said: str
    settings: tuple[Setting, ...]


def sections(
    part: type[Part] = model.Configuration, path: str = "", said: str = ""
) -> Iterator[Section]:
    """Yield a part, and then the parts inside of it."""
    meanings = _meanings(part)
    yield Section(
        path,
        part,
        said,
        tuple(
            # Some keys of the file are words of Python.
            Setting(field.alias or name, field, meanings.get(name, ""))
            for name, field in part.model_fields.items()
        ),
    )
    for name, field in part.model_fields.items():
        inner = part_of(field)
        if inner is not None:
            place = f"{path}.{name}".strip(".") + _suffix(field)
            yield from sections(inner, place, meanings.get(name, ""))


def _suffix(field: FieldInfo) -> str:
    """Return what a path has behind the name of a setting that holds several parts."""
    return _SUFFIXES.get(get_origin(field.annotation), "")


def part_of(field: FieldInfo) -> type[Part] | None:
    """Return the part that a setting holds, or holds several of."""
    kinds = (field.annotation, *get_args(field.annotation))
    parts = (it for it in kinds if isinstance(it, type) and issubclass(it, Part))
    return next(parts, None)


# -- docstrings --------------------------------------------------------------------------------


def _meanings(part: type[Part]) -> dict[str, str]:
    """Return the docstrings of a part's fields, those that it inherits too."""
    found: dict[str, str] = {}
    for it in reversed(part.__mro__):
        if issubclass(it, Part) and it is not Part:
            found |= _docstrings(it.__module__).get(it.__name__, {})
    return found


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of a module's classes."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    classes = (it for it in tree.body if isinstance(it, ast.ClassDef))
    return {it.name: dict(_of_fields(it.body)) for it in classes}


def _of_fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield field.target.id, " ".join(below.value.value.split())


# -- values ------------------------------------------------------------------------------------

KINDS: Mapping[Callable[..., object], str] = {
    units.name: "name",
    units.text: "text",
    units.pattern: "regular expression",
    units.flag: "flag",
    units.whole: "number",
    units.fraction: "number",
    units.seconds: "duration",
    units.size: "size",
    units.bind: "address",
    units.binds: "address, or a list",
    units.broker: "broker URL",
    units.host_pattern: "host",
    units.host: "host",
    units.ids: "ids",
    units.network: "network",
    units.port: "port",
    units.protocol: ", ".join(f"`{name}`" for name in protocols.PLUGINS),
    units.https: "secure URL",
    units.http: "URL",
    units.host_template: "name with `{n}`",
    units.broker_template: "`host:port` with `{n}`",
    store.address: "store URL",
    store.prefix: "text",
    model._version: ", ".join(f"`{version}`" for version in model.VERSIONS),
    model._header_version: f"`{model.HEADER_VERSION}`",
    model._workers: f"number, 1\N{EN DASH}{model.MOST_WORKERS}, or `auto`",
    model._algorithm: "algorithm",
}
"""By the function that reads a value: its kind. "How values are written" describes them."""


PATHS = {
    "locate": "file",
    "locate_folder": "file or folder",
    "locate_new": "new file",
    "locate_new_folder": "folder",
}
"""By the function that finds a path: what it finds."""


def value_of(setting: Setting, path: str) -> str:
    """Return the kind of a setting's value with its bounds or choices, and its default."""
    field = setting.field
    kind = _kind(field.annotation, field.metadata)
    if part_of(field) is not None:
        suffix = _suffix(field)
        place = f"{path}.{setting.name}".strip(".") + suffix
        kind = _MAPPING[suffix].format(anchor(place))
    default = default_of(field)
    return f"{kind}; {default}" if default else kind


def _kind(annotation: Any, metadata: list[Any]) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0], list(annotation.__metadata__))
    if origin is Literal and not _readers(metadata):
        return ", ".join(f"`{_plain(it)}`" for it in get_args(annotation))
    if origin in (Union, UnionType) and not _readers(metadata):
        (other,) = (it for it in get_args(annotation) if it is not type(None))
        return _kind(other, metadata)
    if origin is tuple and not _readers(metadata):
        entry = _kind(get_args(annotation)[0], [])
        return f"list of {entry}" if entry.startswith("`") else f"list of {_many(entry)}"
    return _bounded(_readers(metadata)[0]) if _readers(metadata) else ""


def _readers(metadata: list[Any]) -> list[Callable[..., object]]:
    """Return the functions that read a value, of which there is one at most."""
    return [it.func for it in metadata if isinstance(it, PlainValidator)]


def _bounded(reader: Callable[..., object]) -> str:
    enclosed = inspect.getclosurevars(reader).nonlocals
    if "by" in enclosed:
        return PATHS[enclosed["by"]]
    if "read" in enclosed:
        low, high = enclosed["low"], enclosed["high"]
        return f"{KINDS[enclosed['read']]}, {low}\N{EN DASH}{high}"
    return KINDS[reader]


def _many(kind: str) -> str:
    return kind.replace(" or ", "s or ") + "s"


# -- defaults ----------------------------------------------------------------------------------


def default_of(field: FieldInfo) -> str:
    """Return the default as the page has it; empty: there is none, or those of another part."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default in (None, ()):
        return ""
    if isinstance(default, Part):
        set_ = default.model_dump(exclude_unset=True)
        return f"`{yaml.safe_dump(set_, default_flow_style=True).strip()}`" if set_ else ""
    return f"`{_written(default, _unit(field))}`"


def _unit(field: FieldInfo) -> Callable[..., object] | None:
    """Return the reader of a setting with bounds."""
    enclosed = (inspect.getclosurevars(it).nonlocals for it in _readers(field.metadata))
    return next((it["read"] for it in enclosed if "read" in it), None)


def _written(value: Any, read: Callable[..., object] | None) -> str:
    """Return a value as the file has it, in the largest unit that has no fraction."""
    if isinstance(value, tuple):
        return f"[{', '.join(_plain(it) for it in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if read is units.seconds:
        return _in_units(round(value * 1000), {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1})
    if read is units.size:
        return _in_units(value, {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1})
    return _plain(value) if isinstance(value, str) else str(value)


def _in_units(value: int, sizes: Mapping[str, int]) -> str:
    if value == 0:
        return "0"
    return next(f"{value // size}{unit}" for unit, size in sizes.items() if value % size == 0)


def _plain(text: str) -> str:
    """Return a text as YAML has it, in quotes where it would be something else."""
    return text if yaml.safe_load(text) == text else f'"{text}"'


# -- the page ----------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """Return what a link to a heading ends in, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def reference() -> str:
    """Return the tables of all settings."""
    seen: dict[type[Part], Section] = {}
    lines: list[str] = []
    for section in sections():
        lines += [f"### `{section.path}`" if section.path else f"### {FILE}", ""]
        lines += _again(section, seen[section.part]) if section.part in seen else _table(section)
        bases = (it for it in section.part.__mro__ if issubclass(it, Part) and it.model_fields)
        seen = {**dict.fromkeys(bases, section), **seen}
    return "\n".join(lines).rstrip()


def _again(section: Section, before: Section) -> Iterator[str]:
    """Yield what stands for the table of a part whose settings have been in another one."""
    names = {it.name for it in section.settings}
    others = [f"`{it.name}`" for it in before.settings if it.name not in names]
    without = f", without {', '.join(others)}" if others else ""
    yield f"As [`{before.path}`](#{anchor(before.path)}){without}."
    yield ""


def _table(section: Section) -> Iterator[str]:
    """Yield the settings of a part, as a table or as a list."""
    text = _first_paragraph(section.part)
    if not section.said.startswith(text.rstrip(".")):
        yield linked(text)
        yield ""
    rows = [(it.name, value_of(it, section.path), linked(it.meaning)) for it in section.settings]
    if len(rows) <= FEW:
        yield from (f"- `{name}` ({value}): {meaning}" for name, value, meaning in rows)
    else:
        yield "| Setting | Value | Meaning |"
        yield "|---|---|---|"
        yield from (f"| `{name}` | {value} | {meaning} |" for name, value, meaning in rows)
    yield ""


def _first_paragraph(part: type[Part]) -> str:
    return " ".join((inspect.getdoc(part) or "").partition("\n\n")[0].split())


_PAGE_NAME = re.compile(r"\bdocs/([\w/-]+)\.md(?:#([\w-]+))?")


def linked(text: str) -> str:
    """Return a text with links in place of the pages that it names. Sections of this page are
    guides."""

    def link(found: re.Match[str]) -> str:
        name, heading = found[1], found[2]
        if name == PAGE.stem:
            return f"[guide](#{heading})"
        return f"[{name.rpartition('/')[2]}]({name}.md{f'#{heading}' if heading else ''})"

    return _PAGE_NAME.sub(link, text)


# -- variables of templates --------------------------------------------------------------------

_VARIABLE = re.compile(r"\$\{(GATEWAY_\w+)")
_COMMENTED = re.compile(r"^( *)# (  )?((?:credential|token_file):.*)$", re.MULTILINE)
"""A setting that a user of a template may uncomment."""


def variables() -> str:
    """Return the list of the variables that files of `gateway init` have, by the uses whose files
    have them."""
    files: dict[tuple[str, str], list[str]] = {}
    for use in init.USES:
        for tls in (False, True):
            text = _COMMENTED.sub(r"\1\2\3", init.template(use, tls=tls))
            for found in _variables(yaml.safe_load(text)):
                files.setdefault(found, []).append(use if not tls else f"{use} --tls")
    by_uses: dict[str, list[str]] = {}
    for (name, path), uses in files.items():
        by_uses.setdefault(_uses(uses), []).append(f"`{name}` (`{path}`)")
    return "\n".join(f"- {uses or 'all'}: {', '.join(them)}" for uses, them in by_uses.items())


def _variables(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the variables of a file, each with the path of its setting."""
    if isinstance(value, dict):
        for key, inner in value.items():
            step = "<name>" if path == "clusters" else key
            yield from _variables(inner, f"{path}.{step}".strip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _variables(inner, f"{path}[]")
    elif isinstance(value, str):
        for found in _VARIABLE.findall(value):
            yield found, path


def _uses(files: list[str]) -> str:
    """Return for which uses these files are."""
    plain = [it for it in files if "--tls" not in it]
    if not plain:
        uses = [it.removesuffix(" --tls") for it in files]
        return f"{_all_but(uses)}, with `--tls`"
    return _all_but(plain)


def _all_but(uses: list[str]) -> str:
    others = [it for it in init.USES if it not in uses]
    if not others:
        return ""
    return ", ".join(uses) if len(others) > 1 else f"all but {others[0]}"


TEXTS = {"variables": variables, "settings": reference}


if __name__ == "__main__":
    regions.write(PAGE, TEXTS)
