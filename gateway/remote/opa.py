"""Authorizes clients by Open Policy Agent, through its Data API.

Theory of operation. A question to the agent is whether a client has a right on a topic. The
decision is cached for a while. If there is no cached decision, the question is sent once, however
many requests of clients wait for the response. The number of questions under way is bounded, for
the process and for each principal. So if a client invents topics, its own questions wait, and those
of other clients do not. If the agent does not respond, the configured decision is used. For the
next second it is used for all questions at once, because clients would wait in vain.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import trio

from gateway.policy.decided import Decided
from gateway.telemetry.figures import AgentFigures
from gateway.tls.files import certificates_of
from gateway.wire.account import Right
from gateway.wire.services import Undecided
from gateway.wire.subject import Subject

LARGEST_ANSWER = 64 * 1024
"""Bytes. A response is a word; a policy may add reasons."""

PAUSE = 1.0
"""Seconds after a failure in which the agent is not asked."""

SHARE = 4
"""One principal may have a part of all questions under way: a quarter."""

Log = Callable[..., object]


class Question(NamedTuple):
    """A question to the agent: whether a client has a right on a topic. It is the key under which
    its decision is cached."""

    right: Right
    listener: str
    address: str
    principal: str
    tenant: str
    namespace: str
    topic: str
    subscription: str

    @classmethod
    def of(cls, right: Right, subject: Subject) -> Question:
        """Return the question whether a subject has a right. The question is the same for all
        partitions of a topic."""
        topic = subject.topic
        return cls(
            right,
            subject.listener or "",
            subject.host or "",
            subject.principal or "",
            "" if topic is None else topic.tenant,
            "" if topic is None else topic.namespace,
            "" if topic is None else topic.whole,
            subject.subscription or "",
        )


class Settings(NamedTuple):
    """How to ask the agent. `deadline`: seconds within which it must respond. `lasting`: seconds
    for which a decision is cached. `most`: the most cached decisions. `at_once`: the most questions
    under way. `away`: the decision that is used while the agent does not respond. `authorities`:
    the file of trusted authorities; None: those that this machine trusts. `token`: the file of the
    gateway's token; None: no token is sent."""

    url: str
    deadline: float
    lasting: float
    most: int
    at_once: int
    away: bool
    authorities: Path | None = None
    token: Path | None = None


class PolicyAgent:
    """Asks the agent, and caches its decisions; see `policy.access.Agent`. Raises
    `ConfigurationError` if a file is wrong."""

    def __init__(
        self,
        settings: Settings,
        log: Log = lambda *_, **__: None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        if settings.authorities is not None:
            certificates_of(settings.authorities)
        context = ssl.create_default_context(cafile=settings.authorities)
        self._settings = settings
        self._client = httpx.AsyncClient(
            verify=context,
            trust_env=False,
            timeout=settings.deadline,
            limits=httpx.Limits(max_connections=settings.at_once),
        )
        self._log = log
        self._clock = clock
        self._decided = Decided(settings.most, settings.lasting)
        self._turns = trio.CapacityLimiter(settings.at_once)
        self._own_turns: dict[str, _OwnTurns] = {}
        self._under_way: dict[Question, trio.Event] = {}
        self._silent_until = float("-inf")
        self._failed = False
        self.figures = AgentFigures()

    def judge(self, right: Right, subject: Subject) -> bool | Undecided:
        """Return the cached decision. If there is none, return an `Undecided`, whose `ask` asks the
        agent; but for `PAUSE` seconds after the agent failed to respond, return the decision that
        is configured for this case."""
        question, now = Question.of(right, subject), self._clock()
        known = self._decided.find(question, now)
        if known is not None:
            return known
        if now < self._silent_until:
            self.figures.stated += 1
            return self._settings.away
        return Undecided(partial(self._settle, question))

    async def close(self) -> None:
        """Close the connections to the agent."""
        await self._client.aclose()

    async def _settle(self, question: Question) -> None:
        """Ask, or wait for the response to the same question."""
        other = self._under_way.get(question)
        if other is not None:
            await other.wait()
            return
        answered = self._under_way[question] = trio.Event()
        try:
            with self._own(question.principal) as turns:
                async with turns, self._turns:
                    await self._ask(question)
        finally:
            del self._under_way[question]
            answered.set()

    @contextmanager
    def _own(self, principal: str) -> Iterator[trio.CapacityLimiter]:
        """Lend the turns of one principal, which are kept while a question has or awaits one."""
        share = max(1, self._settings.at_once // SHARE)
        own = self._own_turns.setdefault(principal, _OwnTurns(trio.CapacityLimiter(share)))
        own.users += 1
        try:
            yield own.limiter
        finally:
            own.users -= 1
            if not own.users:
                del self._own_turns[principal]

    async def _ask(self, question: Question) -> None:
        allowed: bool | None = None
        if self._clock() < self._silent_until:  # it fell silent while this question waited
            return
        why = f"no answer in {self._settings.deadline:g} s"
        with trio.move_on_after(self._settings.deadline):
            try:
                allowed = read_answer(await self._post(question))
            # ValueError: a token that no header can hold, or an answer that is none.
            except (httpx.HTTPError, OSError, ValueError) as error:
                why = str(error) or type(error).__name__
        now = self._clock()
        if allowed is None:
            self._fell_silent(why, now)
            return
        if self._failed:
            self._log("policy_agent_back")
        self._failed = False
        self._decided.put(question, now, allowed=allowed)
        self.figures.known = len(self._decided)
        if allowed:
            self.figures.allowed += 1
        else:
            self.figures.denied += 1

    def _fell_silent(self, why: str, now: float) -> None:
        self.figures.failed += 1
        self._silent_until = now + PAUSE
        if not self._failed:
            self._log("policy_agent_unavailable", error=why, allows=self._settings.away)
        self._failed = True

    async def _post(self, question: Question) -> bytes:
        """Return the response's body. Raises `httpx.HTTPError`, `OSError`, `ValueError`."""
        headers = {"Accept-Encoding": "identity"}
        if self._settings.token is not None:
            token = self._settings.token.read_text(encoding="ascii").strip()
            headers["Authorization"] = f"Bearer {token}"
        content, document = bytearray(), {"input": _input(question)}
        stream = self._client.stream("POST", self._settings.url, json=document, headers=headers)
        async with stream as answer:
            if answer.status_code != httpx.codes.OK:
                raise ConnectionError(f"{self._settings.url} answered {answer.status_code}")
            async for chunk in answer.aiter_raw():
                content += chunk
                if len(content) > LARGEST_ANSWER:
                    raise ConnectionError(f"{self._settings.url} answered too much")
        return bytes(content)


class _OwnTurns:
    """The turns of one principal, and how many use them."""

    __slots__ = ("limiter", "users")

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self.limiter = limiter
        self.users = 0


def _input(question: Question) -> dict[str, str]:
    """Return the document that a policy reads as `input`, without what is not known."""
    given = question._asdict() | {"right": "", "action": question.right.value}
    return {key: value for key, value in given.items() if value}


def read_answer(content: bytes) -> bool:
    """Return the decision in a response. Its `result` is a boolean, or an object with a boolean
    `allow`. A response without a result means False, because the policy has not decided. Raises
    `ValueError` if the response is of another form."""
    try:
        answer: Any = json.loads(content)
        result = answer.get("result", False)
        allowed = result.get("allow", False) if isinstance(result, dict) else result
    except (ValueError, AttributeError, RecursionError):
        raise ValueError("the answer is not one of a policy agent") from None
    if allowed is True or allowed is False:
        return bool(allowed)
    raise ValueError("the policy's result is neither true nor false")
