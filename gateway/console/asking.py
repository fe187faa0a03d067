"""The questions that the console puts to the processes of a gateway, and their answers.

A question has a name and a value. A process answers in parts, each plain values for JSON, so that a
long answer is a matter of slices. A part that is None says only that other tasks may run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import trio

Answer = Callable[[Any], Iterator[Any]]

Answers = Mapping[str, Answer]
"""What one process answers, by question. Each answer has one part or more."""

Ask = Callable[[str, Any], Awaitable[list[list[Any]]]]
"""Asks all processes, and returns the parts of each that answered, without those that are None."""


def parts_of(answers: Answers, question: str, value: Any) -> Iterator[Any]:
    """Yield the parts of an answer."""
    return answers[question](value)


def alone(answers: Answers) -> Ask:
    """Return how to ask this process, which is the only one."""

    async def ask(question: str, value: Any) -> list[list[Any]]:
        found = []
        for part in parts_of(answers, question, value):
            if part is not None:
                found.append(part)
            await trio.lowlevel.checkpoint()
        return [found]

    return ask
