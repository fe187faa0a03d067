"""What parent and worker say to each other, over a real pair of sockets."""

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
from gateway.workers.channel import AnswerError, Channel, Handler, decoded, encoded

NOBODY: Mapping[str, Handler] = {}


@dataclass
class Pair:
    """Both ends, which run."""

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


def test_messages_come_out_however_they_were_cut() -> None:
    messages: list[Mapping[str, Any]] = [{"number": 1}, {"text": "é" * 300}, {}]
    whole = b"".join(map(encoded, messages))
    for size in (1, 3, 7, len(whole)):
        received, found = bytearray(), list[Mapping[str, Any]]()
        for at in range(0, len(whole), size):
            received += whole[at : at + size]
            found += decoded(received)
        assert found == messages
        assert not received


def test_a_message_beyond_bounds_is_neither_sent_nor_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = encoded({"text": "x" * 1000})
    monkeypatch.setattr(channel, "LARGEST", 100)
    with pytest.raises(InternalError, match="at most 100"):
        encoded({"text": "x" * 1000})
    with pytest.raises(InternalError, match="at most 100"):
        list(decoded(bytearray(large[:10])))


# -- questions -------------------------------------------------------------------------------


async def test_both_ends_ask_and_answer() -> None:
    async with pair({"echo": echo}, {"echo": echo}) as ends:
        values = [None, 1.5, "text", [1, [2]], {"a": "é"}]
        for end in (ends.one, ends.other):
            assert [await end.ask("echo", it) for it in values] == [[it] for it in values]


async def test_questions_at_the_same_time_have_each_their_answer() -> None:
    answers: dict[int, list[Any]] = {}

    async def ask(number: int) -> None:
        answers[number] = await ends.one.ask("parts", number)

    async with pair(other={"parts": parts}) as ends:
        async with trio.open_nursery() as nursery:
            for number in range(1, 30):
                nursery.start_soon(ask, number)
        assert answers == {number: list(range(number)) for number in range(1, 30)}


async def test_a_short_question_does_not_wait_for_a_long_answer() -> None:
    """The long one has no end."""

    def endless(_: object) -> Iterator[str]:
        while True:
            yield "x" * 10_000

    async with pair(other={"endless": endless, "echo": echo}) as ends:
        ends.nursery.start_soon(ends.one.ask, "endless")
        assert await ends.one.ask("echo", 1) == [1]


async def test_a_question_that_was_given_up_disturbs_no_other() -> None:
    async with pair(other={"parts": parts}) as ends:
        with trio.move_on_after(0):
            await ends.one.ask("parts", 5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends.one.ask, "parts", 1000)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert await ends.one.ask("parts", 2) == [0, 1]


@pytest.mark.parametrize("subject", ["fail", "unknown"])
async def test_a_failure_is_of_one_question_and_logged(subject: str) -> None:
    async with pair(other={"fail": fail, "echo": echo}) as ends:
        with (
            capture_logs() as lines,
            pytest.raises(AnswerError, match=r"ZeroDivisionError|KeyError"),
        ):
            await ends.one.ask(subject, 0)
        assert [(it["event"], it["subject"]) for it in lines] == [("question_failed", subject)]
        assert await ends.one.ask("echo", 1) == [1]


async def test_a_question_that_is_too_large_is_an_error_of_its_own() -> None:
    async with pair(other={"echo": echo}) as ends:
        with pytest.raises(InternalError, match="at most"):
            await ends.one.ask("echo", "x" * channel.LARGEST)
        assert await ends.one.ask("echo", 1) == [1]


@pytest.mark.parametrize("bad", [b"bytes are no JSON", "x" * channel.LARGEST])
async def test_an_answer_that_cannot_be_sent_is_an_error_of_its_question(bad: object) -> None:
    async with pair(other={"bad": lambda _: [bad], "echo": echo}) as ends:
        with capture_logs(), pytest.raises(AnswerError):
            await ends.one.ask("bad")
        assert await ends.one.ask("echo", 1) == [1]


async def test_of_a_failure_not_more_is_told_than_fits() -> None:
    def fails(_: Any) -> NoReturn:
        raise KeyError("x" * channel.LARGEST)

    async with pair(other={"fails": fails}) as ends:
        with capture_logs(), pytest.raises(AnswerError, match=r"^KeyError") as caught:
            await ends.one.ask("fails")
    assert len(str(caught.value)) == channel.LONGEST_FAILURE


# -- ends ------------------------------------------------------------------------------------


async def test_who_waits_for_an_answer_is_told_that_the_other_is_gone() -> None:
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


async def test_nobody_is_asked_after_the_end() -> None:
    async with pair() as ends:
        ends.sockets[1].shutdown(socket.SHUT_RDWR)
        await trio.testing.wait_all_tasks_blocked()
        for end in (ends.one, ends.other):
            with pytest.raises(trio.BrokenResourceError):
                await end.ask("echo")
