"""A store in Valkey or Redis that replicas share, equivalent to `policy.reservations`.

One call sends all its requests in one pipeline. Each request is one script (`scripts`), which the
server runs atomically. It is not known whether a failed call was carried out. If it was, the next
request about the same limit undoes its effect. So a limit does not fall further behind each time
that a reply of a slow store is lost.

This module loads coredis (18 MB, 0.2 s): import it only where a store is configured.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
from coredis.exceptions import NoScriptError

from gateway.fleet.failures import concerns_one_limit, describe
from gateway.fleet.link import Access, Link, LostError
from gateway.fleet.scripts import BEAT, RESERVE, Script
from gateway.fleet.store import StoreError
from gateway.policy.reservations import Reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coredis import Redis

    from gateway.policy.reservations import UnitRequest

MOST_UNHEARD = 10_000
"""Limits whose lost reply is remembered, to undo that call (1 MB). Beyond it all are forgotten, and
the units that those calls reserved count as used."""


class Question(NamedTuple):
    """The keys and arguments of one run of a script."""

    keys: list[str]
    arguments: list[str]


class ValkeyStore:
    """A `Store` in Valkey or Redis. Calls wait until `run` has started.

    `timeout`: seconds for one call. `clock`: a clock in seconds that tests use in place of the
    server's.
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
        # By key of each limit whose last reply was lost: the call that was heard before.
        self._unheard: dict[str, int] = {}
        self._running = trio.CancelScope()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep one connection until `close` is called, and open it again when it breaks."""
        with self._running:
            await self._link.run(task_status)

    async def close(self) -> None:
        """End `run`. Units that this process has reserved and not used are not given back to the
        store."""
        self._running.cancel()

    async def reserve(self, asks: Sequence[UnitRequest]) -> list[Reserved | StoreError]:
        """Reserve units by one pipeline of scripts; see `Store`. The requests of one call must have
        different keys."""
        if not asks:
            return []
        self._call += 1
        questions = [self._question(ask) for ask in asks]
        if len(self._unheard) > MOST_UNHEARD:
            self._unheard.clear()
        for ask in asks:
            self._unheard.setdefault(ask.key, self._heard)
        answers = [_answer(reply) for reply in await self._call_store(RESERVE, questions)]
        for ask, answer in zip(asks, answers, strict=True):
            if isinstance(answer, Reserved):
                self._unheard.pop(ask.key, None)
        self._heard = self._call
        return answers

    async def beat(self) -> int:
        """Send a heartbeat of this process; return the number of live processes. See `Store`."""
        question = Question([f"{self._prefix}processes"], [self._process, self._time()])
        (present,) = await self._call_store(BEAT, [question])
        if isinstance(present, Exception):
            raise StoreError(describe(present))
        if not isinstance(present, int):
            raise _strange()
        return present

    # -- questions -----------------------------------------------------------------------------

    def _question(self, ask: UnitRequest) -> Question:
        base = f"{self._prefix}{_tag(ask.key)}"
        numbers = (ask.rate, ask.burst, ask.units, ask.owed)
        heard = self._unheard.get(ask.key, self._heard)
        return Question(
            [base, f"{base}:asked", f"{base}:{self._process}"],
            [self._process, self._time(), *map(_exact, numbers), str(self._call), str(heard)],
        )

    def _time(self) -> str:
        return "" if self._clock is None else f"{self._clock() * 1e6:.0f}"

    # -- calls ---------------------------------------------------------------------------------

    async def _call_store(self, script: Script, questions: Sequence[Question]) -> list[Any]:
        try:
            with trio.fail_after(self._timeout):
                try:
                    return await self._run_script(script, questions)
                except LostError:  # as after a restart; the retry undoes what the first call did
                    return await self._run_script(script, questions)
        except trio.TooSlowError:
            raise StoreError(f"does not answer within {self._timeout * 1000:.0f} ms") from None

    async def _run_script(self, script: Script, questions: Sequence[Question]) -> list[Any]:
        async with self._link.client() as client:
            return await _replies(client, script, questions)


async def _replies(
    client: Redis[bytes], script: Script, questions: Sequence[Question]
) -> list[Any]:
    """Return all replies, some of which may be errors that concern one limit.

    Loads the script and retries where the server does not know it.
    """
    replies = await _send(client, script, questions)
    unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        await client.script_load(script.text)
        again = await _send(client, script, [questions[at] for at in unknown])
        for at, reply in zip(unknown, again, strict=True):
            replies[at] = reply
    for reply in replies:
        if isinstance(reply, Exception) and not concerns_one_limit(reply):
            raise reply
    return replies


async def _send(client: Redis[bytes], script: Script, questions: Sequence[Question]) -> list[Any]:
    async with client.pipeline(transaction=False, raise_on_error=False) as pipeline:
        for keys, arguments in questions:
            pipeline.evalsha(script.digest, keys=keys, args=arguments)
    return list(pipeline.results or ())


def _answer(reply: Any) -> Reserved | StoreError:
    if isinstance(reply, Exception):
        return StoreError(describe(reply))
    try:
        units, delay = reply
        return Reserved(float(units), float(delay))
    except (TypeError, ValueError):
        return _strange()


def _strange() -> StoreError:
    return StoreError("gives a reply of the wrong form: is something else using its keys?")


def _exact(number: float) -> str:
    return f"{number:.17g}"


def _tag(key: str) -> str:
    """Return a hash tag, by which Redis Cluster keeps all keys of a limit at one server."""
    return "{" + key.replace("%", "%25").replace("}", "%7D") + "}"
