"""Messages between parent and worker: questions and answers in both directions over one stream.

A message is JSON preceded by its length. An answer may have several parts, and other messages may
be sent between them, so a long answer delays nobody. The other side runs the same program and is
trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import structlog
import trio

from gateway.errors import InternalError

LARGEST = 4 * 1024 * 1024
"""Bytes of one message. A configuration takes thousands; so does a part of an answer."""

LONGEST_FAILURE = 1000
"""Characters sent about an answer that failed."""

_HEAD = 4
"""Bytes of the length field."""

Handler = Callable[[Any], Iterable[Any]]
"""Answers a question in one or more parts. Other tasks run between the parts."""

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class AnswerError(InternalError):
    """The process at the other end failed to answer; it has logged the traceback."""


class _Question:
    """A question that this side asked, until it is answered."""

    __slots__ = ("answered", "failure", "parts")

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.answered = trio.Event()
        self.failure: Exception | None = None

    def fail(self, failure: Exception) -> None:
        self.failure = failure
        self.answered.set()


class Channel:
    """One end of the channel between parent and worker. `handlers`: functions that answer the
    questions of the other end, by subject."""

    def __init__(self, stream: trio.abc.Stream, handlers: Mapping[str, Handler]) -> None:
        self._stream = stream
        self._handlers = handlers
        self._numbers = count(1)
        self._open: dict[int, _Question] = {}
        # No buffer: a sender waits until the stream takes its message, and may be cancelled before.
        self._outbox, self._unsent = trio.open_memory_channel[bytes](0)
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def run(self) -> None:
        """Send and receive messages until the process at the other end is gone."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                with suppress(*_GONE):
                    await self._read(nursery)
                nursery.cancel_scope.cancel()
        finally:
            self._unsent.close()
            for question in self._open.values():
                question.fail(trio.BrokenResourceError("the other process is gone"))
            await trio.aclose_forcefully(self._stream)

    async def ask(self, subject: str, value: Any = None) -> list[Any]:
        """Put a question to the process at the other end. Return all parts of its answer.

        Raises `trio.BrokenResourceError` if that process is gone, `AnswerError` if it failed to
        answer, and `InternalError` if the question is too large. Other questions are not affected.
        """
        number, question = next(self._numbers), _Question()
        self._open[number] = question
        try:
            await self._say({"ask": subject, "number": number, "value": value})
            await question.answered.wait()
        finally:
            del self._open[number]
        if question.failure is not None:
            raise question.failure
        return question.parts

    # -- messages ----------------------------------------------------------------------------

    async def _say(self, message: Mapping[str, Any]) -> None:
        await self._outbox.send(encode(message))

    async def _write(self, scope: trio.CancelScope) -> None:
        with suppress(*_GONE):
            async for message in self._unsent:
                await self._stream.send_all(message)
        scope.cancel()

    async def _read(self, nursery: trio.Nursery) -> None:
        received = bytearray()
        while more := await self._stream.receive_some():
            received += more
            for message in decode(received):
                if "ask" in message:
                    nursery.start_soon(self._answer, message)
                else:
                    self._take_answer(message)

    async def _answer(self, question: Mapping[str, Any]) -> None:
        with suppress(*_GONE):
            try:
                await self._answer_in_parts(question)
            except _GONE:
                raise
            except Exception as failure:  # noqa: BLE001 - a bug must fail only this question
                self._log.exception("question_failed", subject=question["ask"])
                text = repr(failure)[:LONGEST_FAILURE]
                await self._say({"number": question["number"], "failure": text})

    async def _answer_in_parts(self, question: Mapping[str, Any]) -> None:
        parts = iter(self._handlers[question["ask"]](question["value"]))
        part = next(parts)
        for following in parts:
            await self._say({"number": question["number"], "part": part, "more": True})
            part = following
        await self._say({"number": question["number"], "part": part})

    def _take_answer(self, message: Mapping[str, Any]) -> None:
        question = self._open.get(message["number"])
        if question is None:
            return  # the caller was cancelled
        if "failure" in message:
            question.fail(AnswerError(message["failure"]))
            return
        question.parts.append(message["part"])
        if "more" not in message:
            question.answered.set()


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as bytes for the stream. Raises `InternalError` if the message is too
    large."""
    text = json.dumps(message).encode()
    if len(text) > LARGEST:
        raise InternalError(f"a message of {len(text)} bytes; at most {LARGEST}")
    return len(text).to_bytes(_HEAD) + text


def decode(received: bytearray) -> Iterator[Mapping[str, Any]]:
    """Remove the complete messages from the head of a buffer, and yield them. Raises
    `InternalError` if a message is too large."""
    while len(received) >= _HEAD:
        size = int.from_bytes(received[:_HEAD])
        if size > LARGEST:
            raise InternalError(f"a message of {size} bytes; at most {LARGEST}")
        end = _HEAD + size
        if len(received) < end:
            return
        text = bytes(received[_HEAD:end])
        del received[:end]
        yield json.loads(text)
