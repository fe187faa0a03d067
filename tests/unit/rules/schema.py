"""The subset of JSON Schema that the rules' schema uses; any other keyword is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

TELLING = {"$schema", "$defs", "title", "description", "default", "examples"}
"""Keywords that only describe, and restrict nothing."""

KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def allows(whole: Schema, schema: Schema, value: Any) -> bool:
    """Return true if a schema, part of a whole one, allows a value."""
    checks: Mapping[str, Callable[[Any], bool]] = {
        "$ref": lambda way: allows(whole, whole["$defs"][way.rpartition("/")[2]], value),
        "anyOf": lambda options: any(allows(whole, it, value) for it in options),
        "oneOf": lambda options: sum(allows(whole, it, value) for it in options) == 1,
        "type": lambda kinds: any(_is(kind, value) for kind in _list(kinds)),
        "enum": lambda known: value in known,
        "const": lambda known: value == known,
        "pattern": lambda known: isinstance(value, str) and bool(re.search(known, value)),
        "minLength": lambda least: len(value) >= least,
        "minItems": lambda least: len(value) >= least,
        "minProperties": lambda least: len(value) >= least,
        "minimum": lambda least: value >= least,
        "items": lambda entry: all(allows(whole, entry, it) for it in value),
        "required": lambda keys: set(keys) <= set(value),
        "properties": lambda known: all(
            allows(whole, known[key], it) for key, it in value.items() if key in known
        ),
        "additionalProperties": lambda _: set(value) <= set(schema["properties"]),
    }
    # The kind first: what is counted or walked through is then what it should be.
    words = sorted(schema.keys() - TELLING, key=lambda word: word != "type")
    return all(checks[word](schema[word]) for word in words)


def _is(kind: str, value: object) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _list(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds
