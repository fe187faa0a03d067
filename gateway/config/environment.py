"""Replaces environment variables in the values of a file: `${NAME}`, `${NAME:-default}`, and `$$`
for a dollar sign.

Variables are replaced after the YAML was parsed, each within one scalar of the node graph. So the
value of a variable cannot add structure (such as a comment or another key), and all line numbers
are still known. The type of an unquoted scalar is determined again afterwards: `${PORT}` is a
number if the variable PORT has only digits. A quoted scalar is always a text. Variables in keys are
not replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import yaml

from gateway.config.mistakes import Mistake, Place

# A default may hold braces in pairs (`broker-{n}.example`), but no other variable.
_VARIABLE = re.compile(
    r"""\$(?:
        (?P<dollar>\$)
        | \{ (?P<name>[A-Za-z_][A-Za-z0-9_]*) (?: :- (?P<default> (?:
            [^{}$] | \$(?!\{) | \{[^{}$]*\}
        )*))? \}
        | \{ # that begins no variable
    )""",
    re.VERBOSE | re.DOTALL,
)

_YAML = "tag:yaml.org,2002:"
# What a plain value may become; otherwise it is a text, never an instruction such as `<<`.
_PLAIN = frozenset(_YAML + kind for kind in ("bool", "float", "int", "null"))

Resolve = Callable[[str], str]
"""Returns the tag that YAML gives to a plain text."""


class Substitution:
    """Replaces the variables in one node graph.

    `mistakes`: the variables that could not be replaced. `used`: the names of the variables whose
    values were used, by the place of the scalar.
    """

    def __init__(self, environment: Mapping[str, str], resolve: Resolve) -> None:
        self.mistakes: list[Mistake] = []
        self.used: dict[Place, list[str]] = {}
        self._environment = environment
        self._resolve = resolve
        self._done: dict[int, yaml.Node] = {}

    def replace(self, node: yaml.Node, place: Place = ()) -> yaml.Node:
        """Return a node with its variables replaced. Mappings and sequences are changed themselves.
        `place`: the node's path.

        Scalars are copied, because by an anchor a value and a key may be the same scalar object.
        """
        if id(node) not in self._done:
            self._done[id(node)] = node  # before the children: a list may contain itself
            if isinstance(node, yaml.ScalarNode) and "$" in node.value:
                self._done[id(node)] = self._scalar(node, place)
            elif isinstance(node, yaml.MappingNode):
                node.value = [
                    (key, self.replace(value, (*place, str(key.value))))
                    for key, value in node.value
                ]
            elif isinstance(node, yaml.SequenceNode):
                node.value = [
                    self.replace(value, (*place, index)) for index, value in enumerate(node.value)
                ]
        return self._done[id(node)]

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> yaml.ScalarNode:
        line = node.start_mark.line + 1
        text = _VARIABLE.sub(lambda match: self._value(match, place, line), node.value)
        tag = node.tag
        if not node.style and tag == _YAML + "str":
            tag = self._resolve(text)
        new = yaml.ScalarNode(tag if tag in _PLAIN else node.tag, text)
        new.start_mark, new.end_mark, new.style = node.start_mark, node.end_mark, node.style
        return new

    def _value(self, match: re.Match[str], place: Place, line: int) -> str:
        if match["dollar"]:
            return "$"
        name, default = match["name"], match["default"]
        value = self._environment.get(name) if name else None
        if default is not None and not value:
            return default.replace("$$", "$")
        if value is None or not _is_text(value):
            self.mistakes.append(Mistake(place, _complaint(name, value), line))
            return ""
        self.used.setdefault(place, []).append(name)
        return value


def _complaint(name: str | None, value: str | None) -> str:
    if name is None:
        return "has a ${ that is not a variable; ${NAME}, ${NAME:-default}, or $$ for a dollar"
    if value is None:
        return (
            f"uses the environment variable {name}, which is not set; "
            f"set it, or give a default: ${{{name}:-...}}"
        )
    return f"uses the environment variable {name}, which is not UTF-8; set it to UTF-8 text"


def _is_text(value: str) -> bool:
    """Return false if the value had bytes that are not UTF-8. They become surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
