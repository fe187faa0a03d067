"""Host names to IP addresses, remembered for seconds.

The look-up itself is injected; here is what makes it cheap and safe to ask at each connection:
literals skip it, answers are remembered, and any number of askers cause one look-up at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from math import inf
from typing import Protocol

import trio

LookUp = Callable[[str], Awaitable[Sequence[str]]]
"""Host name to IP literals, in the order to try them. Raises `OSError`."""

FRESH_FOR = 5.0
"""Seconds. Short enough for a moved pod, long enough for a storm of reconnecting clients."""

FAILED_FOR = 1.0
"""Seconds. Those who waited for a look-up that failed fail with it, not each on its own."""

KEPT_FOR = 60.0
"""Seconds that an answer stands in for look-ups that fail. Name servers restart within that time;
much later the address may be that of somebody else's pod."""

LOOK_UP_TIMEOUT = 5.0
"""Seconds. One try of the C library's resolver at one name server (resolv.conf `timeout`)."""

MOST_NAMES = 1024
"""Names remembered, of those that ever resolved and of others each; a cluster has hundreds of
brokers, and a name forgotten is asked again."""

MOST_NEW = 4
"""Look-ups at a time of names that never resolved. Each takes one of 40 threads for as long as the
C library tries, with names that clients made up half a minute: the others are for known names."""


class Log(Protocol):
    """Takes an event and its values; `structlog`'s `info` and `warning` are such."""

    def __call__(self, event: str, **values: object) -> None: ...


class _Answer:
    __slots__ = ("expires_at", "failing", "ips", "kept_until", "lock")

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.ips: tuple[str, ...] = ()
        self.expires_at = self.kept_until = -inf
        self.failing = False


class Resolver:
    """Remembers answers, `MOST_NAMES` of them; `clock` gives seconds."""

    def __init__(self, look_up: LookUp, clock: Callable[[], float], log: Log) -> None:
        self._look_up = look_up
        self._clock = clock
        self._log = log
        # Apart, so that names which clients make up are forgotten for each other.
        self._resolved: OrderedDict[str, _Answer] = OrderedDict()
        self._others: OrderedDict[str, _Answer] = OrderedDict()
        self._new = trio.Semaphore(MOST_NEW)
        self.failures = 0  # look-ups without an answer

    async def resolve(self, host: str) -> tuple[str, ...]:
        """The IP literals of a host; where the look-up fails those of a minute ago, or none."""
        known = self.remembered(host)
        if known is not None:
            return known
        answer = self._known(host) or self._remember(self._others, host, _Answer())
        async with answer.lock:
            if self._clock() >= answer.expires_at:
                await self._ask(host, answer)
        return answer.ips

    def remembered(self, host: str) -> tuple[str, ...] | None:
        """What `resolve` answers without waiting; None where it has to ask."""
        answer = self._known(host)
        if answer is not None:
            return answer.ips if self._clock() < answer.expires_at else None
        return (host,) if _is_literal(host) else None

    def failing(self, host: str) -> bool:
        """The last look-up of this host failed."""
        answer = self._known(host)
        return answer is not None and answer.failing

    def _known(self, host: str) -> _Answer | None:
        return self._resolved.get(host) or self._others.get(host)

    @staticmethod
    def _remember(answers: OrderedDict[str, _Answer], host: str, answer: _Answer) -> _Answer:
        if len(answers) >= MOST_NAMES:
            answers.popitem(last=False)
        answers[host] = answer
        return answer

    async def _ask(self, host: str, answer: _Answer) -> None:
        ips, error = await self._ask_in_time(host)
        failing, now = not ips, self._clock()
        if failing != answer.failing:
            event = "name_unresolved" if failing else "name_resolved"
            self._log(event, host=host, error=error)
        if ips or now >= answer.kept_until:
            answer.ips, answer.kept_until = ips, now + KEPT_FOR
        if ips and host not in self._resolved:
            self._others.pop(host, None)
            self._remember(self._resolved, host, answer)
        answer.failing = failing
        self.failures += failing
        answer.expires_at = now + (FAILED_FOR if failing else FRESH_FOR)

    async def _ask_in_time(self, host: str) -> tuple[tuple[str, ...], str]:
        with trio.move_on_after(LOOK_UP_TIMEOUT):
            try:
                return tuple(dict.fromkeys(await self._look_up_by_turn(host))), ""
            except (OSError, UnicodeError) as error:
                return (), str(error)
        return (), "timed out"

    async def _look_up_by_turn(self, host: str) -> Sequence[str]:
        if host in self._resolved:
            return await self._look_up(host)
        async with self._new:
            return await self._look_up(host)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
