"""`python -m tests.helm.schema`: writes values.schema.json of the Helm chart.

Its parts are made of the models: `config` of the gateway's configuration, `rules` of a rules file,
all others of `tests.helm.values_model`. So what the gateway would refuse by its form, Helm refuses
before anything is installed. A test holds the file to the models.

It is draft 7, which Helm reads in all its versions: definitions are under `definitions`, and what
stands beside a `$ref` is ignored.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from gateway import protocols
from gateway.config import model, store, units
from gateway.policy.rules import RulesDocument
from tests.helm import values_model

CHART = Path(__file__).resolve().parents[2] / "helm" / "broker-gateway"
FILE = CHART / "values.schema.json"
MODES = CHART / "modes"

Schema = dict[str, Any]

RULES_FILE = r"^[A-Za-z0-9][-A-Za-z0-9._]{0,240}\.ya?ml$"
"""Other files of the folder are not read."""

SECRET = r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
"""Names of secrets' folders; with its prefix the name of a volume has 63 characters at most."""

_VARIABLE = r"\$\{"
"""A text with a variable may stand for anything: the gateway checks what becomes of it."""

_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string", "pattern": r"\S"}
_DURATION = r"^\d+(\.\d+)? ?([mM]?[sS]|[mM]|[hH])$"
_SIZE = r"^\d+(\.\d+)? ?([kKmMgG][iI]?)?[bB]$"
_IDS = r"^ *\d{1,9}(-\d{1,9})?( *, *\d{1,9}(-\d{1,9})?)* *$"
_BIND: Schema = {"type": "string", "pattern": r":[0-9]{1,5}$"}


def _one_of(texts: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(texts)}


def _whole(expression: str) -> Schema:
    return {"type": "string", "pattern": f"^({expression})$"}


_SCHEMES = "|".join(name.replace("+", r"\+") for name in protocols.SCHEMES)

READERS: Mapping[Callable[..., object], Schema] = {
    units.name: _whole(units._NAME.pattern),
    units.text: _TEXT,
    units.pattern: _TEXT,
    units.flag: {"type": "boolean"},
    units.whole: {"type": "integer"},
    units.fraction: {"type": "number"},
    units.seconds: {"type": ["number", "string"], "pattern": _DURATION},
    units.size: {"type": ["number", "string"], "pattern": _SIZE},
    units.bind: _BIND,
    units.binds: {**_BIND, "type": ["string", "array"], "items": _BIND, "minItems": 1},
    units.broker: {"type": "string", "pattern": rf"^({_SCHEMES})://\S+$"},
    units.host_pattern: {"type": "string", "pattern": r"^[A-Za-z0-9_.:*-]{1,253}$"},
    units.host: {"type": "string", "pattern": r"^[A-Za-z0-9_.:-]{1,253}$"},
    units.ids: {
        "type": ["integer", "string", "array"],
        "minimum": 0,
        "pattern": _IDS,
        "items": {"type": ["integer", "string"], "minimum": 0, "pattern": _IDS},
        "minItems": 1,
    },
    units.network: {"type": "string", "pattern": values_model.NETWORK},
    units.port: {"type": "integer", "minimum": 1, "maximum": 65535},
    units.protocol: _one_of(protocols.PLUGINS),
    units.https: {"type": "string", "pattern": r"^https?://\S+$"},
    units.http: {"type": "string", "pattern": r"^https?://\S+$"},
    units.host_template: {"type": "string", "pattern": r"\{n\}"},
    units.broker_template: {"type": "string", "pattern": r"\{n\}"},
    store.address: {"type": "string", "pattern": r"^(rediss?|valkeys?|unix)://\S+$"},
    store.prefix: _whole(store._PREFIX.pattern),
    model._version: {"const": 1},
    model._header_version: {"const": model.HEADER_VERSION},
    model._workers: {
        "type": ["integer", "string"],
        "minimum": 1,
        "maximum": model.MOST_WORKERS,
        "pattern": "^auto$",
    },
    model._algorithm: _one_of(model._ALGORITHMS),
}
"""By the function that reads a value of the configuration: what it accepts."""

TEXTS: Mapping[Callable[..., object], tuple[str, ...]] = {
    units.entries: ("string", "integer"),
    units.brokers: ("string",),
}
"""By the function that makes a list: what it makes one of."""


class Generator(GenerateJsonSchema):
    """Knows what the readers of the configuration accept, which pydantic does not look into."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> Schema:
        """Return what a reader accepts. Raises `KeyError` if it is not known here."""
        function: Any = schema["function"]["function"]
        enclosed = inspect.getclosurevars(function).nonlocals
        if "by" in enclosed:  # a path
            return deepcopy(_TEXT)
        if "read" in enclosed:
            read = enclosed["read"]
            bounds = {"minimum": read(enclosed["low"]), "maximum": read(enclosed["high"])}
            return {**READERS[read], **bounds}
        return deepcopy(READERS[function])

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        """Return what is accepted, before a list is made of it."""
        found = self.generate_inner(schema["schema"])
        function: Any = schema["function"]["function"]
        others = TEXTS.get(function, ())
        return {**found, "type": [found["type"], *others]} if others else found

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> Schema:
        """Return what is accepted; not empty, if that is what is checked afterwards."""
        found = self.generate_inner(schema["schema"])
        function: Any = schema["function"]["function"]
        if function is not model._some:
            return found
        return {**found, "minProperties" if found["type"] == "object" else "minItems": 1}


def written() -> str:
    """Return the file of now."""
    return json.dumps(schema(), indent=1) + "\n"


def schema() -> Schema:
    """Return the schema of all values."""
    config, definitions = _relaxed(_generated(model.Configuration, "config"))
    rules, more = _relaxed(_generated(RulesDocument, "rules"))
    whole, own = _parts(_generated(values_model.Values, "values"))
    given = _common([_default(file) for file in sorted(MODES.glob("*.yaml"))])
    whole["properties"]["config"] = _laid_over(config, given, definitions)
    whole["properties"]["rules"] = {
        "type": "object",
        "propertyNames": {"pattern": RULES_FILE},
        "additionalProperties": rules,
    }
    whole["properties"]["secrets"]["propertyNames"] = {"pattern": SECRET}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart broker-gateway",
        **whole,
        "definitions": _referred_to(whole, {**own, **definitions, **more}),
    }


def _referred_to(found: Schema, definitions: Schema) -> Schema:
    """Return the definitions that a schema needs; what is laid over defaults refers to fewer."""
    kept: Schema = {}
    waiting = [found]
    while waiting:
        names = re.findall(r'"#/definitions/([^"]+)"', json.dumps(waiting.pop()))
        new = sorted({*names} - {*kept})
        kept |= {name: definitions[name] for name in new}
        waiting += [definitions[name] for name in new]
    return {name: kept[name] for name in sorted(kept)}


def _generated(of: type[BaseModel], prefix: str) -> Schema:
    """Return the schema of a model, its definitions with a prefix: names may occur twice."""
    template = f"#/definitions/{prefix}.{{model}}"
    found = of.model_json_schema(ref_template=template, schema_generator=Generator)
    defined = found.pop("$defs", {})
    return {**found, "definitions": {f"{prefix}.{name}": it for name, it in defined.items()}}


def _parts(found: Schema) -> tuple[Schema, Schema]:
    """Return a schema without what only editors of Python want, and its definitions."""
    definitions = {name: _plain(it) for name, it in found.pop("definitions").items()}
    return _plain(found), definitions


def _relaxed(found: Schema) -> tuple[Schema, Schema]:
    """Return the same, with variables of the environment in place of values."""
    whole, definitions = _parts(found)
    return _with_variables(whole), {name: _with_variables(it) for name, it in definitions.items()}


def _plain(found: Any, *, names: bool = False) -> Any:
    """Return a schema without titles and defaults. `names`: its keys are names of properties."""
    if isinstance(found, list):
        return [_plain(it) for it in found]
    if not isinstance(found, dict):
        return found
    kept = found if names else {k: v for k, v in found.items() if k not in ("title", "default")}
    return {key: _plain(it, names=key == "properties" and not names) for key, it in kept.items()}


def _with_variables(found: Any, *, names: bool = False) -> Any:
    if isinstance(found, list):
        return [_with_variables(it) for it in found]
    if not isinstance(found, dict):
        return found
    inner = {
        key: it
        if not names and key in ("enum", "required", "propertyNames", "examples")
        else _with_variables(it, names=key == "properties" and not names)
        for key, it in found.items()
    }
    if names:
        return inner
    return _flat(inner) if "anyOf" in inner else _or_variable(inner)


def _flat(found: Schema) -> Schema:
    """Return the same as one schema, where alternatives are of different types: keywords bind
    values of their own type alone, and Helm names the mistake, not all alternatives."""
    options = found["anyOf"]
    rest = {key: it for key, it in found.items() if key != "anyOf"}
    if len(options) == 1:
        return {**rest, **options[0]}
    if "$ref" in options[0] and options[1:] == [_NULL]:
        return {**rest, "if": {"not": _NULL}, "then": options[0]}
    types = [it for option in options for it in _types(option)]
    keywords = [key for option in options for key in option if key != "type"]
    if not all(map(_types, options)) or any(len({*it}) < len(it) for it in (types, keywords)):
        return found
    return {key: it for option in (rest, *options) for key, it in option.items()} | {"type": types}


def _types(found: Schema) -> list[str]:
    types = found.get("type", [])
    return [types] if isinstance(types, str) else types


def _or_variable(found: Schema) -> Schema:
    """Return the schema of a value or a variable."""
    if "enum" in found:
        texts = "|".join(found.pop("enum"))
        return {**found, "type": "string", "pattern": f"^({texts})$|{_VARIABLE}"}
    types = _types(found)
    if "string" in types:
        if "pattern" not in found:
            return found
        return {**found, "pattern": f"{found['pattern']}|{_VARIABLE}"}
    if {"integer", "number", "boolean"} & {*types}:
        return {**found, "type": [*types, "string"], "pattern": _VARIABLE}
    return found


def _default(file: Path) -> Schema:
    found: Schema = yaml.safe_load(file.read_text(encoding="utf-8"))["config"]
    return found


def _common(defaults: list[Any]) -> Any:
    """Return the keys that all defaults have, each with those below it; None if it is no map."""
    if not all(isinstance(it, dict) for it in defaults):
        return None
    first = defaults[0]
    keys = (key for key in first if all(key in it for it in defaults))
    return {key: _common([it[key] for it in defaults]) for key in keys}


def _laid_over(found: Schema, given: Mapping[str, Any], definitions: Schema) -> Schema:
    """Return the schema of a map over defaults: what these have may be missing, or null."""
    if "$ref" in found:
        found = definitions[found["$ref"].rpartition("/")[2]]
    elif "then" in found:
        found = definitions[found["then"]["$ref"].rpartition("/")[2]]
    found = {**found, "properties": dict(found.get("properties", {}))}
    if "patternProperties" in found:  # would hold for the defaults' names too
        ((pattern, other),) = found.pop("patternProperties").items()
        found |= {"propertyNames": {"pattern": pattern}, "additionalProperties": other}
    required = [it for it in found.pop("required", ()) if it not in given]
    for key, below in given.items():
        value = found["properties"].get(key) or found["additionalProperties"]
        laid = value if below is None else _laid_over(value, below, definitions)
        found["properties"][key] = _or_null(laid)
    found.pop("minProperties", None)
    return {**found, "required": required} if required else found


def _or_null(found: Schema) -> Schema:
    """Return the schema of a value or null, which removes the default."""
    types = _types(found)
    return {**found, "type": [*types, "null"]} if types and "null" not in types else found


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
    print("written: helm/broker-gateway/values.schema.json")
