"""Writes and reads records, and compares them with a broker's answers.

    == the name of a script
    > PRODUCER 1 #1, SEND 1 0        what the client sends, in one write
    < ERROR #2, SUCCESS #1           all that the broker then sends, in this order
    B> SUBSCRIBE 1 #1                the same on a second connection
    B< SUCCESS #1
    ! unload                         what an administrator does
    ~ CLOSE_PRODUCER 1, CLOSE_CONSUMER 1
                                     the same as `<`, in any order: several threads of a broker
                                     send these, and runs differ
    < SUCCESS #1 | ERROR #1 ProducerBusy
                                     one of these whole answers: runs or versions differ;
                                     `nothing` is an answer without a frame

A step that gets no answer has no line for one. `CLOSED` is the end of a connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded")
BY_NAME = re.compile(r"^(?P<connection>[AB]?)(?P<sign>[<~>!]) ?(?P<words>.*)$")

Said = list[str]
"""Frames in words, in order."""


@dataclass
class Expected:
    """Everything that one connection may receive after a step: one of `answers`."""

    answers: list[Said]
    in_order: bool = True

    @property
    def shortest(self) -> int:
        """Return the smallest number of frames."""
        return min(len(answer) for answer in self.answers)

    @property
    def longest(self) -> int:
        return max(len(answer) for answer in self.answers)

    def allows(self, said: Said) -> bool:
        if self.in_order:
            return said in self.answers
        return sorted(said) in [sorted(answer) for answer in self.answers]


NOTHING = Expected([[]])


@dataclass
class Step:
    """`connection`: the sender of `words`; empty for an administrator."""

    connection: str
    words: list[str]
    hears: dict[str, Expected] = field(default_factory=dict)

    def expected(self, connection: str) -> Expected:
        return self.hears.get(connection, NOTHING)


@dataclass
class Script:
    name: str
    steps: list[Step] = field(default_factory=list)

    @property
    def connections(self) -> list[str]:
        return sorted({"A", *(step.connection for step in self.steps if step.connection)})


def read_scripts(path: Path) -> list[Script]:
    """Return all scripts of one file."""
    scripts: list[Script] = []
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            scripts.append(Script(line[3:]))
        elif line and not line.startswith("#"):
            _add(scripts[-1], line)
    return scripts


def _add(script: Script, line: str) -> None:
    found = BY_NAME.match(line)
    assert found, f"{script.name}: {line!r} is not understood"
    connection, sign, words = found["connection"] or "A", found["sign"], found["words"]
    match sign:
        case ">":
            script.steps.append(Step(connection, split(words)))
        case "!":
            script.steps.append(Step("", [words]))
        case _:
            answers = [split(answer) for answer in words.split("|")]
            expected = Expected(answers, in_order=sign != "~")
            script.steps[-1].hears[connection] = expected


def split(words: str) -> Said:
    frames = [part.strip() for part in words.split(",")]
    return [frame for frame in frames if frame not in ("", "nothing")]


def all_scripts() -> Iterator[Script]:
    for path in sorted(RECORDED.glob("*.txt")):
        yield from read_scripts(path)


def differences(script: Script, played: list[dict[str, Said]]) -> list[str]:
    """Return the differences between a run and the record, in words."""
    found = []
    for step, heard in zip(script.steps, played, strict=True):
        for connection in script.connections:
            expected, said = step.expected(connection), heard.get(connection, [])
            if not expected.allows(said):
                found.append(
                    f"after {step.connection or '!'} {', '.join(step.words)}: "
                    f"{connection} hears {said}, and the record says {expected.answers}"
                )
    return found


def written(script: Script, played: list[dict[str, Said]]) -> str:
    """Return a run as a record."""
    lines = [f"== {script.name}"]
    for step, heard in zip(script.steps, played, strict=True):
        mark = "! " if not step.connection else "> " if step.connection == "A" else "B> "
        lines.append(mark + ", ".join(step.words))
        for connection in script.connections:
            said = heard.get(connection)
            if said:
                lines.append(("" if connection == "A" else "B") + "< " + ", ".join(said))
    return "\n".join(lines)
