"""The base class of all settings, and the names that the model imports from pydantic. Both exist in
two variants; `face` says which one this process uses.

In a process that reads a configuration file, they are pydantic's, and the model checks the file. A
gateway that serves takes over settings that its child process has checked (`gateway.handing`). In
such a gateway, settings are plain objects with the same names, methods and defaults, and the checks
in the model do nothing. This saves the 10 MB that pydantic, and what it makes of the model, would
take for as long as the gateway runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, get_origin

from gateway.config import face

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if face.checks or TYPE_CHECKING:
    from pydantic import (
        AfterValidator,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Field,
        PlainValidator,
        ValidationInfo,
        model_validator,
    )
    from pydantic.json_schema import WithJsonSchema

    class Part(BaseModel):
        """Any part of the file: frozen, and without unknown keys."""

        model_config = ConfigDict(frozen=True, extra="forbid")

else:

    class _Field:
        """What the model says of a field: its annotation."""

        def __init__(self, annotation: object) -> None:
            self.annotation = annotation

    class Part:
        """Any part of the file, as it was checked."""

        model_fields: ClassVar[dict[str, _Field]] = {}

        def __init_subclass__(cls) -> None:
            own = {
                name: _Field(annotation)
                for name, annotation in cls.__annotations__.items()
                if get_origin(annotation) is not ClassVar
            }
            cls.model_fields = {**cls.model_fields, **own}

        def __init__(self, **values: object) -> None:
            self.__dict__.update(values)

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state["__dict__"])  # as pydantic writes it

        def __setattr__(self, name: str, value: object) -> None:  # frozen
            raise AttributeError(name)

        def __eq__(self, other: object) -> bool:
            return type(self) is type(other) and self.__dict__ == other.__dict__

        def __hash__(self) -> int:
            return hash((type(self), *self.__dict__.values()))

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            return iter(self.__dict__.items())

        def __repr__(self) -> str:
            values = ", ".join(f"{name}={value!r}" for name, value in self)
            return f"{type(self).__name__}({values})"

    def _unused(*_: object, **__: object) -> None:
        """Ignore how the model checks a value, or what its default is."""

    def model_validator(**_: object) -> Callable[[Callable[[Self], Self]], Callable[[Self], Self]]:
        """Leave a check uncalled."""
        return lambda check: check

    AfterValidator = BeforeValidator = PlainValidator = Field = WithJsonSchema = _unused
    ValidationInfo = object

__all__ = [
    "AfterValidator",
    "BeforeValidator",
    "Field",
    "Part",
    "PlainValidator",
    "ValidationInfo",
    "WithJsonSchema",
    "model_validator",
]
