"""Reloads rules beside the data path, one reload after another.

A wrong file changes nothing. Good rules are compiled beside those in force and replace them: new
producers and consumers get them at once, open ones one by one. All of that is done in slices,
between which the data path runs.
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

from gateway.policy.matching import RuleSet
from gateway.reload import reader
from gateway.reload.files import signs
from gateway.reload.reading import Refused, read
from gateway.system.files import LOOK, Sign
from gateway.system.signals import received
from gateway.telemetry.figures import ReloadFigures

AGAIN = 60.0
"""Seconds until a retry after a failure whose cause is not in the files."""

SLICE = 0.0005
"""Seconds until other tasks run. Two slices may follow each other, and a garbage collection may be
added; a checkpoint costs about 0.03 ms."""

T = TypeVar("T")

Adopt = Callable[[RuleSet], Iterator[None]]
"""Puts rules in force, step by step: see `Shaper.adopt`."""


@dataclass(slots=True)
class Changes:
    """Number of rules that differ from the previous ones."""

    added: int = 0
    removed: int = 0
    changed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Reloader:
    """Reloads the rules of a process. `rules`: those in force, from the files of `paths`."""

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
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        # A request during a reload waits; further ones are merged with it.
        self._ask, self._asked = trio.open_memory_channel[None](1)

    async def run(
        self, look: float = LOOK, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Reload on SIGHUP and when files change, until cancelled."""
        async with received(signal.SIGHUP) as hang_ups, trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, look)
            nursery.start_soon(self._work)
            task_status.started()
            async for _ in hang_ups:
                self.ask()

    def ask(self) -> None:
        """Request a reload, after the one that is under way."""
        with suppress(trio.WouldBlock):
            self._ask.send_nowait(None)

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

    async def _work(self) -> None:
        async for _ in self._asked:
            try:
                await self._reload()
            except Exception:  # noqa: BLE001 - a bug must not stop the service
                self._figures.refused += 1
                self._log.exception("rules_not_reloaded")

    async def _reload(self) -> None:
        began = time.monotonic()
        self._taken = await self._look()  # before reading, so that a later change is noticed
        self._again = math.inf
        found = await read(self._paths)
        if isinstance(found, Refused):
            self._refuse(found)
            return
        new, changes = RuleSet(), Changes()
        await run_in_slices(self._compile(found, new, changes))
        old = await self._exchange(new) if changes else new  # the set that is no longer used
        self._tell(changes, time.monotonic() - began)
        await run_in_slices(old.dissolve())

    def _refuse(self, refused: Refused) -> None:
        self._figures.refused += 1
        self._log.error("rules_refused", mistakes=refused.mistakes)
        if refused.is_temporary:
            self._again = trio.current_time() + AGAIN

    def _compile(self, found: bytes, new: RuleSet, changes: Changes) -> Iterator[None]:
        for rule in reader.parse(found):
            before = self._rules.rule(rule.id)
            if before != rule:
                changes.added += before is None
                changes.changed += before is not None
            new.add(rule)
            yield
        changes.removed = len(self._rules) + changes.added - len(new)

    async def _exchange(self, new: RuleSet) -> RuleSet:
        """Put rules in force, and return the previous ones."""
        old, self._rules = self._rules, new
        await run_in_slices(self._adopt(new))
        self._figures.generation += 1
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
            seconds=round(seconds, 3),
        )


async def run_in_slices(steps: Iterable[T]) -> list[T]:
    """Return all steps as a list, and let other tasks run after each slice of time."""
    done = []
    until = time.monotonic() + SLICE
    for step in steps:
        done.append(step)
        if time.monotonic() >= until:
            await trio.lowlevel.checkpoint()
            until = time.monotonic() + SLICE
    return done
