"""Questions and answers between parent and worker, over a real socket pair."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.errors import InternalError
from gateway.workers import channel
from gateway.workers.channel import AnswerError, Channel, Handler, decode, encode

NOBODY: Mapping[str, Handler] = {}


@dataclass
class Pair:
    """Both ends of a running channel."""

    one: Channel
    other: Channel
    sockets: tuple[socket.socket, socket.socket]
    nursery: trio.Nursery


@asynccontextmanager
async def pair(
    one: Mapping[str, Handler] = NOBODY, other: Mapping[str, Handler] = NOBODY
) -> AsyncIterator[Pair]:
    sockets = socket.socketpair()
    ends = [trio.SocketStream(trio.socket.from_stdlib_socket(it)) for it in sockets]
    channels = [Channel(end, handlers) for end, handlers in zip(ends, (one, other), strict=True)]
    async with trio.open_nursery() as nursery:
        for it in channels:
            nursery.start_soon(it.run)
        yield Pair(channels[0], channels[1], sockets, nursery)
        nursery.cancel_scope.cancel()


def echo(value: Any) -> Iterator[Any]:
    yield value


def parts(number: Any) -> Iterator[Any]:
    yield from range(number)


def fail(value: Any) -> Iterator[Any]:
    yield 1 / value


# -- messages --------------------------------------------------------------------------------


def test_messages_are_decoded_wherever_the_stream_is_cut() -> None:
    messages: list[Mapping[str, Any]] = [{"number": 1}, {"text": "é" * 300}, {}]
    whole = b"".join(map(encode, messages))
    for size in (1, 3, 7, len(whole)):
        received, found = bytearray(), list[Mapping[str, Any]]()
        for at in range(0, len(whole), size):
            received += whole[at : at + size]
            found += decode(received)
        assert found == messages
        assert not received


def test_a_message_that_is_too_large_is_neither_sent_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = encode({"text": "x" * 1000})
    monkeypatch.setattr(channel, "LARGEST", 100)
    with pytest.raises(InternalError, match="at most 100"):
        encode({"text": "x" * 1000})
    with pytest.raises(InternalError, match="at most 100"):
        list(decode(bytearray(large[:10])))


# -- questions -------------------------------------------------------------------------------


async def test_both_ends_ask_and_answer() -> None:
    async with pair({"echo": echo}, {"echo": echo}) as ends:
        values = [None, 1.5, "text", [1, [2]], {"a": "é"}]
        for end in (ends.one, ends.other):
            assert [await end.ask("echo", it) for it in values] == [[it] for it in values]


async def test_simultaneous_questions_get_their_own_answers() -> None:
    answers: dict[int, list[Any]] = {}

    async def ask(number: int) -> None:
        answers[number] = await ends.one.ask("parts", number)

    async with pair(other={"parts": parts}) as ends:
        async with trio.open_nursery() as nursery:
            for number in range(1, 30):
                nursery.start_soon(ask, number)
        assert answers == {number: list(range(number)) for number in range(1, 30)}


async def test_a_short_question_does_not_wait_for_a_long_answer() -> None:
    """The long answer is endless."""

    def endless(_: object) -> Iterator[str]:
        while True:
            yield "x" * 10_000

    async with pair(other={"endless": endless, "echo": echo}) as ends:
        ends.nursery.start_soon(ends.one.ask, "endless")
        assert await ends.one.ask("echo", 1) == [1]


async def test_a_cancelled_question_does_not_disturb_others() -> None:
    async with pair(other={"parts": parts}) as ends:
        with trio.move_on_after(0):
            await ends.one.ask("parts", 5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.one.ask, "parts", 1000)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert await ends.one.ask("parts", 2) == [0, 1]


@pytest.mark.parametrize("subject", ["fail", "unknown"])
async def test_a_failure_fails_one_question_and_is_logged(subject: str) -> None:
    async with pair(other={"fail": fail, "echo": echo}) as ends:
        with (
            capture_logs() as lines,
            pytest.raises(AnswerError, match=r"ZeroDivisionError|KeyError"),
        ):
            await ends.one.ask(subject, 0)
        assert [(it["event"], it["subject"]) for it in lines] == [("question_failed", subject)]
        assert await ends.one.ask("echo", 1) == [1]


async def test_a_question_that_is_too_large_fails_alone() -> None:
    async with pair(other={"echo": echo}) as ends:
        with pytest.raises(InternalError, match="at most"):
            await ends.one.ask("echo", "x" * channel.LARGEST)
        assert await ends.one.ask("echo", 1) == [1]


@pytest.mark.parametrize("bad", [b"bytes are no JSON", "x" * channel.LARGEST])
async def test_an_answer_that_cannot_be_sent_fails_its_question(bad: object) -> None:
    async with pair(other={"bad": lambda _: [bad], "echo": echo}) as ends:
        with capture_logs(), pytest.raises(AnswerError):
            await ends.one.ask("bad")
        assert await ends.one.ask("echo", 1) == [1]


async def test_the_text_of_a_failure_is_cut() -> None:
    def fails(_: Any) -> NoReturn:
        raise KeyError("x" * channel.LARGEST)

    async with pair(other={"fails": fails}) as ends:
        with capture_logs(), pytest.raises(AnswerError, match=r"^KeyError") as caught:
            await ends.one.ask("fails")
    assert len(str(caught.value)) == channel.LONGEST_FAILURE


# -- ends ------------------------------------------------------------------------------------


async def test_a_waiting_question_fails_when_the_other_side_ends() -> None:
    ours, theirs = socket.socketpair()
    waiting = Channel(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), NOBODY)

    async def leave() -> None:
        await trio.testing.wait_all_tasks_blocked()
        theirs.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        nursery.start_soon(leave)
        with pytest.raises(trio.BrokenResourceError):
            await waiting.ask("anything")


async def test_questions_fail_after_the_end() -> None:
    async with pair() as ends:
        ends.sockets[1].shutdown(socket.SHUT_RDWR)
        await trio.testing.wait_all_tasks_blocked()
        for end in (ends.one, ends.other):
            with pytest.raises(trio.BrokenResourceError):
                await end.ask("echo")
