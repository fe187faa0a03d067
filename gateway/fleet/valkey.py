"""Limits that replicas share, in a Valkey or Redis: the same as `policy.reservations`.

All questions of a call go together, each as one script at the server (`scripts`), which is atomic.
A call that failed may have been carried out or not: the next question about the same limit undoes
what it did, so a store that is slow does not get ever more behind by answers that nobody heard.

This module loads coredis (18 MB, 0.2 s): import it only where a store is configured.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
from coredis.exceptions import NoScriptError

from gateway.fleet.link import Access, Link, LostError
from gateway.fleet.scripts import BEAT, RESERVE, Script
from gateway.fleet.store import StoreError
from gateway.fleet.troubles import is_of_one_limit, told
from gateway.policy.reservations import Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from coredis import Redis

    from gateway.policy.reservations import UnitRequest

MOST_UNHEARD = 10_000
"""Limits whose last answer was lost, and whose call is remembered (1 MB). Of more, what was taken
is not taken back: it is as if it had been used."""


class Question(NamedTuple):
    """The keys and arguments of one run of a script."""

    keys: list[str]
    arguments: list[str]


class ValkeyStore:
    """A `Store`. `run` keeps its connection; until that is started nobody is answered.

    `timeout`: seconds for one call. `clock`: for tests, in seconds, in place of the server's.
    """

    def __init__(
        self,
        access: Access,
        *,
        prefix: str,
        timeout: float,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._link = Link(access)
        self._prefix = prefix
        self._timeout = timeout
        self._clock = clock
        self._process = secrets.token_hex(8)
        self._call = 0
        self._heard = 0
        self._unheard: dict[str, int] = {}
        self._running = trio.CancelScope()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Connect, and connect again, until `close`."""
        with self._running:
            await self._link.run(task_status)

    async def close(self) -> None:
        """End `run`. What was reserved is earned soon; nothing else is left."""
        self._running.cancel()

    async def reserve(self, asks: Sequence[UnitRequest]) -> list[Reserved | StoreError]:
        """See `Store`. Each key once in a call."""
        if not asks:
            return []
        self._call += 1
        questions = [self._about(ask) for ask in asks]
        self._remember(ask.key for ask in asks)
        answers = [_reserved(reply) for reply in await self._asked(RESERVE, questions)]
        self._hear(ask.key for ask, it in zip(asks, answers, strict=True) if _is_good(it))
        return answers

    async def beat(self) -> int:
        """See `Store`."""
        question = Question([f"{self._prefix}processes"], [self._process, self._time()])
        (present,) = await self._asked(BEAT, [question])
        if isinstance(present, Exception):
            raise StoreError(told(present))
        if not isinstance(present, int):
            raise _strange()
        return present

    # -- what is asked -------------------------------------------------------------------------

    def _about(self, ask: UnitRequest) -> Question:
        base = f"{self._prefix}{_tag(ask.key)}"
        numbers = (ask.rate, ask.burst, ask.units, ask.owed)
        heard = self._unheard.get(ask.key, self._heard)
        return Question(
            [base, f"{base}:asked", f"{base}:{self._process}"],
            [self._process, self._time(), *map(_exact, numbers), str(self._call), str(heard)],
        )

    def _time(self) -> str:
        return "" if self._clock is None else f"{self._clock() * 1e6:.0f}"

    def _remember(self, keys: Iterable[str]) -> None:
        """Until they are heard: of which limits the answer was lost, and what was the last one
        heard before."""
        if len(self._unheard) > MOST_UNHEARD:
            self._unheard.clear()
        for key in keys:
            self._unheard.setdefault(key, self._heard)

    def _hear(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._unheard.pop(key, None)
        self._heard = self._call

    # -- how -----------------------------------------------------------------------------------

    async def _asked(self, script: Script, questions: Sequence[Question]) -> list[Any]:
        try:
            with trio.fail_after(self._timeout):
                try:
                    return await self._once(script, questions)
                except LostError:  # as after a restart; what it did, if anything, is undone
                    return await self._once(script, questions)
        except trio.TooSlowError:
            raise StoreError(f"does not answer within {self._timeout * 1000:.0f} ms") from None

    async def _once(self, script: Script, questions: Sequence[Question]) -> list[Any]:
        async with self._link.client() as client:
            return await _answered(client, script, questions)


async def _answered(
    client: Redis[bytes], script: Script, questions: Sequence[Question]
) -> list[Any]:
    """The answers of all, errors where they are of one limit; where the server has lost the script,
    by another round."""
    replies = await _sent(client, script, questions)
    unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        await client.script_load(script.text)
        again = await _sent(client, script, [questions[at] for at in unknown])
        for at, reply in zip(unknown, again, strict=True):
            replies[at] = reply
    for reply in replies:
        if isinstance(reply, Exception) and not is_of_one_limit(reply):
            raise reply
    return replies


async def _sent(client: Redis[bytes], script: Script, questions: Sequence[Question]) -> list[Any]:
    async with client.pipeline(transaction=False, raise_on_error=False) as pipeline:
        for keys, arguments in questions:
            pipeline.evalsha(script.digest, keys=keys, args=arguments)
    return list(pipeline.results or ())


def _reserved(reply: Any) -> Reserved | StoreError:
    if isinstance(reply, Exception):
        return StoreError(told(reply))
    try:
        units, delay = reply
        return Reserved(float(units), float(delay))
    except (TypeError, ValueError):
        return _strange()


def _is_good(answer: Reserved | StoreError) -> bool:
    return isinstance(answer, Reserved)


def _strange() -> StoreError:
    return StoreError("answers what is no answer: is something else using its keys?")


def _exact(number: float) -> str:
    return f"{number:.17g}"


def _tag(key: str) -> str:
    """What Redis Cluster takes a limit's place from, so that all its keys are at one server."""
    return "{" + key.replace("%", "%25").replace("}", "%7D") + "}"
