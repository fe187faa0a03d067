"""The records as schemas of a topic: Avro definitions, by which JSON messages are described.

A field that may be left out is a union with null whose default is null. Such fields can be added
and left out by later versions: brokers find both compatible, in each direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, inspect

if TYPE_CHECKING:
    from gateway.usage.records import Identity

NAMESPACE = "gateway.usage"
"""Of the names of records."""

_PLAIN: dict[type[inspect.Type], str] = {
    inspect.IntType: "long",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.LiteralType: "string",  # an Avro enumeration could not grow
}


def definition(kind: type[Identity]) -> dict[str, Any]:
    """Return the definition of a kind of records."""
    return _record(inspect.type_info(kind))


def _record(kind: inspect.Type) -> dict[str, Any]:
    assert isinstance(kind, inspect.StructType)
    fields = [_field(it) for it in kind.fields]
    name = kind.cls.__name__
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def _field(field: inspect.Field) -> dict[str, Any]:
    found = _type(field.type)
    if field.default is NODEFAULT and field.default_factory is NODEFAULT:
        return {"name": field.encode_name, "type": found}
    union = found if isinstance(found, list) else ["null", found]
    return {"name": field.encode_name, "type": union, "default": None}


def _type(kind: inspect.Type) -> Any:
    match kind:
        case inspect.Metadata():
            return _type(kind.type)
        case inspect.UnionType():
            others = [it for it in kind.types if not isinstance(it, inspect.NoneType)]
            return ["null", *map(_type, others)]
        case inspect.ListType():
            return {"type": "array", "items": _type(kind.item_type)}
        case inspect.StructType():
            return _record(kind)
    return _PLAIN[type(kind)]
