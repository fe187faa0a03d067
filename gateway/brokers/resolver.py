"""Resolves host names to IP addresses, with a cache of some seconds.

The function that asks a name server is an argument. The resolver makes it cheap and safe to resolve
a name at each connection: IP literals need no look-up, responses are cached, and concurrent callers
share one look-up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from math import inf
from typing import Protocol

import trio

LookUp = Callable[[str], Awaitable[Sequence[str]]]
"""Resolve a host name to IP literals, in the order to try them. Raises `OSError`."""

FRESH_FOR = 5.0
"""Seconds. Short enough for a moved pod, long enough for a storm of reconnecting clients."""

FAILED_FOR = 1.0
"""Seconds. Callers that waited for a failed look-up fail with it, instead of each repeating it."""

RENEWED_AFTER = 0.2
"""Seconds between two look-ups of a name whose addresses cannot be reached. Thousands of clients
that fail to connect bring five look-ups a second, one after the other."""

KEPT_FOR = 60.0
"""Seconds for which the last good answer replaces failed look-ups. Name servers restart within that
time; much later the address may belong to an unrelated pod."""

LOOK_UP_TIMEOUT = 5.0
"""Seconds. One try of the C library's resolver at one name server (resolv.conf `timeout`)."""

MOST_NAMES = 1024
"""Cached names, separately for names that resolved at least once and for others. A cluster has
hundreds of brokers, and a forgotten name is looked up again."""

MOST_NEW_LOOK_UPS = 4
"""Concurrent look-ups of names that never resolved. Each occupies one of 40 threads while the C
library tries, half a minute for names that clients invent: the rest is for known names."""


class Log(Protocol):
    """A function that is called with an event and its values, such as `info` or `warning` of
    `structlog`."""

    def __call__(self, event: str, **values: object) -> None: ...


def no_log(event: str, **values: object) -> None:
    """Do nothing with an event: a `Log` for callers that need none."""


class _Answer:
    __slots__ = ("expires_at", "failing", "ips", "kept_until", "lock", "looked_up_at")

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.ips: tuple[str, ...] = ()
        self.expires_at = self.kept_until = self.looked_up_at = -inf
        self.failing = False


class Resolver:
    """Resolves host names, and caches the IP addresses of `MOST_NAMES` names. `look_up`: asks a
    name server for the addresses of a host. `clock`: returns the time in seconds."""

    def __init__(self, look_up: LookUp, clock: Callable[[], float], log: Log) -> None:
        self._look_up = look_up
        self._clock = clock
        self._log = log
        # Two caches, so that names which clients invent evict only each other.
        self._resolved: OrderedDict[str, _Answer] = OrderedDict()
        self._unresolved: OrderedDict[str, _Answer] = OrderedDict()
        self._new_look_ups = trio.Semaphore(MOST_NEW_LOOK_UPS)
        self.failures = 0  # look-ups without an answer

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the IP addresses of a host, as literals. If the look-up fails, return the
        addresses of an earlier look-up, if they are less than a minute old; otherwise none."""
        ips = self.cached(host)
        if ips is not None:
            return ips
        answer = self._answer(host) or self._remember(self._unresolved, host, _Answer())
        async with answer.lock:
            if self._clock() >= answer.expires_at:
                await self._refresh(host, answer)
        return answer.ips

    async def renew(self, host: str, unreachable: Sequence[str]) -> tuple[str, ...]:
        """Return the IP addresses of a host, as literals, because those in `unreachable` could not
        be reached. If no newer ones are known, the host is looked up again; the result may be the
        same addresses."""
        answer = self._answer(host)
        if answer is None:
            return await self.resolve(host)
        async with answer.lock:
            is_due = self._clock() >= answer.looked_up_at + RENEWED_AFTER
            if is_due and answer.ips == tuple(unreachable):
                await self._refresh(host, answer)
        return answer.ips

    def cached(self, host: str) -> tuple[str, ...] | None:
        """Return what `resolve` would return, if this needs no look-up; otherwise None."""
        answer = self._answer(host)
        if answer is not None:
            return answer.ips if self._clock() < answer.expires_at else None
        return (host,) if _is_literal(host) else None

    def is_failing(self, host: str) -> bool:
        """Return True if the last look-up of this host failed."""
        answer = self._answer(host)
        return answer is not None and answer.failing

    def _answer(self, host: str) -> _Answer | None:
        return self._resolved.get(host) or self._unresolved.get(host)

    @staticmethod
    def _remember(answers: OrderedDict[str, _Answer], host: str, answer: _Answer) -> _Answer:
        if len(answers) >= MOST_NAMES:
            answers.popitem(last=False)
        answers[host] = answer
        return answer

    async def _refresh(self, host: str, answer: _Answer) -> None:
        ips, error = await self._look_up_in_time(host)
        failing, now = not ips, self._clock()
        answer.looked_up_at = now
        if failing != answer.failing:
            event = "name_unresolved" if failing else "name_resolved"
            self._log(event, host=host, error=error)
        if ips or now >= answer.kept_until:
            answer.ips, answer.kept_until = ips, now + KEPT_FOR
        if ips and host not in self._resolved:
            self._unresolved.pop(host, None)
            self._remember(self._resolved, host, answer)
        answer.failing = failing
        self.failures += failing
        answer.expires_at = now + (FAILED_FOR if failing else FRESH_FOR)

    async def _look_up_in_time(self, host: str) -> tuple[tuple[str, ...], str]:
        """Return the IP literals without duplicates, and an error if there are none."""
        with trio.move_on_after(LOOK_UP_TIMEOUT):
            try:
                return tuple(dict.fromkeys(await self._look_up_by_turn(host))), ""
            except (OSError, UnicodeError) as error:
                return (), str(error)
        return (), "timed out"

    async def _look_up_by_turn(self, host: str) -> Sequence[str]:
        if host in self._resolved:
            return await self._look_up(host)
        async with self._new_look_ups:
            return await self._look_up(host)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
