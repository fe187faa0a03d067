"""Reloads rules beside the data path, one reload after another.

If a file is wrong, the rules in force are not changed. Good rules are compiled while the earlier
ones are in force, and then replace them: for new producers and consumers at once, for open ones one
after the other. All of this is done in slices, between which the data path runs.

When a rule expires, the other rules are compiled again and replace those in force in the same way,
and no file is read.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from gateway.policy.expiry import written
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.reload import reader
from gateway.reload.files import signs
from gateway.reload.reading import Refused, read
from gateway.system.files import LOOK, Sign
from gateway.system.signals import received
from gateway.telemetry.figures import ExpiredRule, ReloadFigures

AGAIN = 60.0
"""Seconds until a retry after a failure whose cause is not in the files."""

SLICE = 0.0005
"""Seconds until other tasks run. Two slices may follow each other, and a garbage collection may be
added; a checkpoint costs about 0.03 ms."""

NAMED = 20
"""Expired rules whose ids one log line has."""

SHOWN = 100
"""Expired rules that the console shows, the latest ones: it shows them each second."""

T = TypeVar("T")

Adopt = Callable[[RuleSet], Iterator[None]]
"""Puts rules in force, step by step: see `Shaper.adopt`."""


@dataclass(slots=True)
class Changes:
    """How many rules of a set were added, removed and changed, compared with the set before."""

    added: int = 0
    removed: int = 0
    changed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Reloader:
    """Reloads the rules of a process. `rules`: the rules in force, from the files in `paths`.
    `adopt`: a function that puts other rules in force. `seen`: the signs of the files as they were
    when the rules were read."""

    def __init__(
        self,
        paths: Sequence[Path],
        rules: RuleSet,
        adopt: Adopt,
        figures: ReloadFigures,
        seen: frozenset[Sign],
    ) -> None:
        self._paths = paths
        self._rules = rules
        self._adopt = adopt
        self._figures = figures
        self._taken = seen
        self._again = math.inf  # when to retry
        self._changing = trio.Lock()  # held by what replaces the rules
        self._sleep = trio.CancelScope()  # until the next rule expires
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        # A request during a reload waits; further ones are merged with it.
        self._sender, self._receiver = trio.open_memory_channel[None](1)

    async def run(
        self, look: float = LOOK, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Reload the rules at SIGHUP and when their files have changed, until cancelled. `look`:
        seconds between two checks of the files."""
        self._tell_expired(self._rules.expired.values(), self._log.warning)
        async with received(signal.SIGHUP) as hang_ups, trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, look)
            nursery.start_soon(self._expire, look)
            nursery.start_soon(self._work)
            task_status.started()
            async for _ in hang_ups:
                self.ask()

    def ask(self) -> None:
        """Request a reload. If a reload is under way, another one follows it."""
        with suppress(trio.WouldBlock):
            self._sender.send_nowait(None)

    def expired(self) -> list[ExpiredRule]:
        """Return the rules that have expired, those that expired last first; at most `SHOWN`
        rules."""
        ends = ((rule.expires, rule.id) for rule in self._rules.expired.values())
        dated = [(at, id) for at, id in ends if at is not None]
        return [ExpiredRule(id, written(at)) for at, id in sorted(dated, reverse=True)[:SHOWN]]

    async def _watch(self, look: float) -> None:
        before = self._taken
        while True:
            await trio.sleep(look)
            now = await self._look()
            if now == before != self._taken or trio.current_time() >= self._again:
                self.ask()
            before = now

    async def _look(self) -> frozenset[Sign]:
        return frozenset(await run_in_slices(signs(self._paths)))

    async def _expire(self, look: float) -> None:
        """Replace the rules whenever some have expired."""
        while True:
            with trio.CancelScope() as self._sleep:
                # Not for long: the wall clock may be set.
                left = self._rules.next_expiry - time.time()
                await trio.sleep(min(max(left, 0.0), look))
            try:
                async with self._changing:
                    if self._rules.next_expiry <= time.time():
                        await self._leave_out_expired()
            except Exception:  # noqa: BLE001 - as below
                self._log.exception("rules_not_reloaded")
                await trio.sleep(AGAIN)

    async def _work(self) -> None:
        async for _ in self._receiver:
            try:
                await self._reload()
            except Exception:  # noqa: BLE001 - a bug must not stop the service
                self._figures.refused += 1
                self._log.exception("rules_not_reloaded")

    async def _reload(self) -> None:
        began = time.monotonic()
        self._taken = await self._look()  # before reading, so that a later change is noticed
        self._again = math.inf
        result = await read(self._paths)
        if isinstance(result, Refused):
            self._refuse(result)
            return
        async with self._changing:
            await self._take(result, began)

    async def _take(self, pickled: bytes, began: float) -> None:
        new, changes = RuleSet(), Changes()
        await run_in_slices(self._compile(pickled, new, changes))
        late = [rule for id, rule in new.expired.items() if self._rules.expired.get(id) != rule]
        are_same = not changes and new.expired.keys() == self._rules.expired.keys()
        old = new if are_same else await self._exchange(new)  # the set that is no longer used
        self._tell(changes, time.monotonic() - began)
        self._tell_expired(late, self._log.warning)  # somebody may think that they have an effect
        await run_in_slices(old.dissolve())

    async def _leave_out_expired(self) -> None:
        new = RuleSet()
        await run_in_slices(self._compile_again(new))
        old = await self._exchange(new)
        late = (rule for id, rule in new.expired.items() if id not in old.expired)
        self._tell_expired(late, self._log.info)  # as it should
        await run_in_slices(old.dissolve())

    def _compile_again(self, new: RuleSet) -> Iterator[None]:
        now = time.time()
        for rule in self._rules:
            new.add(rule, now)
            yield

    def _refuse(self, refused: Refused) -> None:
        self._figures.refused += 1
        self._log.error("rules_refused", mistakes=refused.mistakes)
        if refused.is_temporary:
            self._again = trio.current_time() + AGAIN

    def _compile(self, pickled: bytes, new: RuleSet, changes: Changes) -> Iterator[None]:
        now = time.time()
        for rule in reader.parse(pickled):
            before = self._rules.rule(rule.id)
            if before != rule:
                changes.added += before is None
                changes.changed += before is not None
            new.add(rule, now)
            yield
        changes.removed = len(self._rules) + changes.added - len(new)

    async def _exchange(self, new: RuleSet) -> RuleSet:
        """Put rules in force, and return the previous ones."""
        old, self._rules = self._rules, new
        await run_in_slices(self._adopt(new))
        self._figures.generation += 1
        self._figures.expired = len(new.expired)
        self._sleep.cancel()  # the next rule may expire earlier now
        return old

    def _tell(self, changes: Changes, seconds: float) -> None:
        self._figures.loaded += 1
        self._figures.loaded_at = time.time()
        self._log.info(
            "rules_loaded",
            generation=self._figures.generation,
            rules=len(self._rules),
            added=changes.added,
            removed=changes.removed,
            changed=changes.changed,
            expired=len(self._rules.expired),
            seconds=round(seconds, 3),
        )

    def _tell_expired(self, rules: Iterable[Rule], log: Callable[..., object]) -> None:
        """Log rules that have no effect any more."""
        ids = sorted(rule.id for rule in rules)
        if ids:
            log("rules_expired", number=len(ids), rules=ids[:NAMED])


async def run_in_slices(steps: Iterable[T]) -> list[T]:
    """Take all steps of an iterable, and let other tasks run after each slice of time. Return the
    values of the steps."""
    done = []
    until = time.monotonic() + SLICE
    for step in steps:
        done.append(step)
        if time.monotonic() >= until:
            await trio.lowlevel.checkpoint()
            until = time.monotonic() + SLICE
    return done
