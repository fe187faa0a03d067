"""Mistakes in a file, each as one line for people: what is wrong, where, and what would be right.

The text of a mistake never contains a value of the file, only keys, because a value may be a secret
in the wrong place.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]
"""A path into the file: keys of mappings and indexes of lists."""


class Mistake(NamedTuple):
    """A mistake in a file. `text`: "what is wrong; what would be right". `line`: the line number,
    from 1; None if unknown."""

    place: Place
    text: str
    line: int | None = None


def format_place(place: Place) -> str:
    """Return a path into the file as text, such as `listeners[0].identity`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    way = "".join(steps).removeprefix(".")
    return way if way.isprintable() else ascii(way)


def nearest(word: object, known: Iterable[str]) -> str:
    """Return advice about an unknown word: the known word that was probably meant, or else all
    known words."""
    known = sorted(known)
    close = get_close_matches(str(word), known, n=1)
    return f"did you mean {close[0]!r}?" if close else "known here: " + (", ".join(known) or "none")


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[Mistake]:
    """Yield a `Mistake` for each error that pydantic has found in the data for `model`."""
    for details in error.errors(include_url=False, include_input=False):
        if details["type"] == "default_factory_not_called":
            continue  # the default depends on another field, whose mistake is reported
        place = tuple(step for step in details["loc"] if step != "[key]")
        yield Mistake(place, _text(details, place, model))


def _text(details: ErrorDetails, place: Place, model: type[BaseModel]) -> str:
    match details["type"]:
        case "missing":
            return f"is missing; for example {place[-1]}: {_example(model, place)}"
        case "extra_forbidden":
            return f"is not a key known here; {nearest(place[-1], _keys(model, place[:-1]))}"
        case "literal_error":
            return f"is not understood; one of {details['ctx']['expected']}"
        case "value_error":
            return str(details["ctx"]["error"])
        case other:
            return _SHAPES.get(other, details["msg"])


_SHAPES = {
    "model_type": "is not a mapping; indented lines of `key: value`, or leave it out",
    "dict_type": "is not a mapping; indented lines of `key: value`",
    "tuple_type": "is not a list; indented lines of `- entry`, or [entry, entry]",
    "invalid_key": "is not a text; keys are texts",
}


def _example(model: type[BaseModel], place: Place) -> str:
    field = _field(model, place)
    return str(field.examples[0]) if field is not None and field.examples else "..."


def _keys(model: type[BaseModel], place: Place) -> Iterable[str]:
    owner = _inside(model, place)
    return _fields(owner) if owner is not None else ()


def _field(model: type[BaseModel], place: Place) -> FieldInfo | None:
    owner = _inside(model, place[:-1])
    return _fields(owner).get(str(place[-1])) if owner is not None else None


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their keys in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _inside(kind: Any, place: Place) -> type[BaseModel] | None:
    """Return the model at a place by its type annotations, or None if no model is there."""
    for step in place:
        kind = _step(kind, step)
    return _model(kind)


def _step(kind: Any, step: str | int) -> Any:
    model = _model(kind)
    if model is not None:
        field = _fields(model).get(str(step))
        return field.annotation if field is not None else None
    # The first argument of tuple[Part, ...], the second of Mapping[str, Part].
    arguments = get_args(kind)
    return arguments[get_origin(kind) is Mapping] if arguments else None


def _model(kind: Any) -> type[BaseModel] | None:
    """Return the model of an annotation, which may be optional."""
    options = (kind, *get_args(kind)) if get_origin(kind) not in (tuple, Mapping) else ()
    models = [
        option for option in options if isinstance(option, type) and issubclass(option, BaseModel)
    ]
    return models[0] if models else None
