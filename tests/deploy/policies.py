"""Evaluates a MutatingAdmissionPolicy on an object, as the API server would.

Expressions are evaluated by cel-python. The types that Kubernetes has there (`Object.spec.…`,
`JSONPatch`) take any field: which ones exist is for a validation of the object that comes out. They
are written in one word, because cel-python knows no type in whose name another type's begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import pytest

Manifest = dict[str, Any]

_TYPES = re.compile(r"\b(Object(?:\.\w+)*|JSONPatch)\{")


class Policy:
    """A policy, and the binding that says where it is in force."""

    def __init__(self, policy: Manifest, binding: Manifest) -> None:
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        self._cel = pytest.importorskip("celpy", reason="cel-python is not installed")
        self._spec = policy["spec"]
        self._namespaces = binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]

    def mutated(self, pod: Manifest, namespace: Mapping[str, str]) -> Manifest:
        """Return a pod as it is stored, in a namespace with these labels."""
        labels = pod["metadata"].get("labels", {})
        wanted = self._spec["matchConstraints"]["objectSelector"]["matchLabels"]
        if not (wanted.items() <= labels.items() and self._namespaces.items() <= namespace.items()):
            return pod
        activation = {"object": self._cel.json_to_cel(pod)}
        conditions = (it["expression"] for it in self._spec["matchConditions"])
        if not all(self._evaluate(it, activation) for it in conditions):
            return pod
        variables = {
            it["name"]: self._evaluate(it["expression"], activation)
            for it in self._spec["variables"]
        }
        activation["variables"] = self._cel.json_to_cel(variables)
        found = deepcopy(pod)
        for mutation in self._spec["mutations"]:
            assert mutation["patchType"] == "JSONPatch"
            found = patched(found, self._evaluate(mutation["jsonPatch"]["expression"], activation))
        return found

    def _evaluate(self, expression: str, activation: Mapping[str, Any]) -> Any:
        text = _TYPES.sub(lambda found: found[0].replace(".", "_"), expression)
        types = {it[:-1] for it in re.findall(r"\b(?:Object\w*|JSONPatch)\{", text)}
        environment = self._cel.Environment(annotations=dict.fromkeys(types, _made(self._cel)))
        program = environment.program(environment.compile(text))
        return _plain(self._cel, program.evaluate(activation))


def _plain(cel: Any, value: Any) -> Any:
    """Return a value of CEL as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(cel, it) for key, it in value.items()}
    if isinstance(value, list):
        return [_plain(cel, it) for it in value]
    for kind, plain in ((cel.celtypes.BoolType, bool), (int, int), (str, str)):
        if isinstance(value, kind):
            return plain(value)
    raise TypeError(f"{value!r} is no value that a pod may have")


def _made(cel: Any) -> Any:
    """Return what stands for a type of objects: it gives back its fields."""

    class Made(cel.celtypes.MapType):  # type: ignore[misc]
        def __init__(self, fields: Mapping[str, Any]) -> None:
            super().__init__({cel.celtypes.StringType(key): it for key, it in fields.items()})

    return Made


def patched(document: Manifest, operations: Iterable[Mapping[str, Any]]) -> Manifest:
    """Return a document after the `add` operations of a JSON patch (RFC 6902)."""
    found = deepcopy(document)
    for operation in operations:
        assert operation["op"] == "add"
        *steps, last = operation["path"].removeprefix("/").split("/")
        place: Any = found
        for step in steps:
            place = place[step]
        if isinstance(place, list):
            place.insert(len(place) if last == "-" else int(last), operation["value"])
        else:
            place[last] = operation["value"]
    return found
