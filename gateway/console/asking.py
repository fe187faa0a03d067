"""The questions that the console puts to the processes of a gateway, and their answers.

A question has a name and a value. A process answers in parts, each of plain values for JSON, so
that other tasks run while a long answer is made. A part that is None carries nothing: other tasks
may run at that point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import trio

Answer = Callable[[Any], Iterator[Any]]

Answers = Mapping[str, Answer]
"""The functions with which one process answers, by question. Each answer has one part or more."""

Ask = Callable[[str, Any], Awaitable[list[list[Any]]]]
"""Puts a question to all processes, and returns the parts of each answer, without those that are
None."""


def parts_of(answers: Answers, question: str, value: Any) -> Iterator[Any]:
    """Answer a question of the console from this process alone; return the parts of the answer."""
    return answers[question](value)


def alone(answers: Answers) -> Ask:
    """Return a function with which the console asks this process its questions, for a gateway of
    one process. `answers`: the functions that answer, by question."""

    async def ask(question: str, value: Any) -> list[list[Any]]:
        parts = []
        for part in parts_of(answers, question, value):
            if part is not None:
                parts.append(part)
            await trio.lowlevel.checkpoint()
        return [parts]

    return ask
