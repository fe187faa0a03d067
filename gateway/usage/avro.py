"""Avro schemas of the records, which describe the JSON messages of a topic.

A field that may be left out is a union with null, and its default is null. Later versions may add
such fields or leave them out: for brokers, the earlier and the later schema are then compatible in
both directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, inspect

if TYPE_CHECKING:
    from gateway.usage.records import Identity

NAMESPACE = "gateway.usage"
"""The namespace of the names of records."""

_PLAIN: dict[type[inspect.Type], str] = {
    inspect.IntType: "long",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.LiteralType: "string",  # an Avro enumeration could not grow
}


def definition(kind: type[Identity]) -> dict[str, Any]:
    """Return the Avro schema of one kind of records, as a dict that the caller encodes as JSON."""
    return _record(inspect.type_info(kind))


def _record(kind: inspect.Type) -> dict[str, Any]:
    assert isinstance(kind, inspect.StructType)
    fields = [_field(field) for field in kind.fields]
    name = kind.cls.__name__
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def _field(field: inspect.Field) -> dict[str, Any]:
    avro_type = _type(field.type)
    if field.default is NODEFAULT and field.default_factory is NODEFAULT:
        return {"name": field.encode_name, "type": avro_type}
    union = avro_type if isinstance(avro_type, list) else ["null", avro_type]
    return {"name": field.encode_name, "type": union, "default": None}


def _type(kind: inspect.Type) -> Any:
    match kind:
        case inspect.Metadata():
            return _type(kind.type)
        case inspect.UnionType():
            others = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
            return ["null", *map(_type, others)]
        case inspect.ListType():
            return {"type": "array", "items": _type(kind.item_type)}
        case inspect.StructType():
            return _record(kind)
    return _PLAIN[type(kind)]
