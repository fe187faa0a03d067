"""One reload of rules after the other, beside the data path.

A file that is wrong changes nothing. What is right is compiled beside the rules in force, then
these are exchanged: new producers and consumers have the new ones at once, and those that are open
one after the other. All of that is done in slices, between which the data path has its turn.
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
from gateway.reload import passing
from gateway.reload.files import Sign, signs
from gateway.reload.reading import Refused, read
from gateway.telemetry.figures import ReloadFigures

LOOK = 2.0
"""Seconds between two looks at the files. A change is taken when two looks saw the same, so that
nobody's half of a file is; Kubernetes itself takes up to a minute to bring one."""

AGAIN = 60.0
"""Seconds until files are read again that could not be read for want of something else."""

SLICE = 0.0005
"""Seconds until others have their turn. Two slices may follow each other, and a collection of
garbage may come on top; a checkpoint costs some 0.03 ms."""

T = TypeVar("T")

Adopt = Callable[[RuleSet], Iterator[None]]
"""Puts rules in force, step by step: see `Shaper.adopt`."""


@dataclass(slots=True)
class Changes:
    """How many rules differ from those before."""

    added: int = 0
    removed: int = 0
    changed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Reloader:
    """One for a process. `rules`: those in force, of the files of `paths`."""

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
        self._again = math.inf  # when to try again
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        # One that comes during a reload waits; more of them are the same one.
        self._ask, self._asked = trio.open_memory_channel[None](1)

    async def run(
        self, look: float = LOOK, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Reload when there is a reason, until cancelled."""
        with trio.open_signal_receiver(signal.SIGHUP) as hang_ups:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch, look)
                    nursery.start_soon(self._work)
                    task_status.started()
                    async for _ in hang_ups:
                        self.ask()
            finally:
                # One that nobody took is delivered anew, and would end the process.
                with trio.move_on_after(0.001, shield=True):
                    async for _ in hang_ups:
                        pass

    def ask(self) -> None:
        """Have the files read, or read again after the reload that is under way."""
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
        return frozenset(await sliced(signs(self._paths)))

    async def _work(self) -> None:
        async for _ in self._asked:
            try:
                await self._reload()
            except Exception:  # noqa: BLE001 - our own bug: clients are served as before
                self._figures.refused += 1
                self._log.exception("rules_not_reloaded")

    async def _reload(self) -> None:
        began = time.monotonic()
        self._taken = await self._look()  # before they are read: a later change shows
        self._again = math.inf
        said = await read(self._paths)
        if isinstance(said, Refused):
            self._refuse(said)
            return
        new, changes = RuleSet(), Changes()
        await sliced(self._compiled(said, new, changes))
        # Those that nobody asks any more.
        old = await self._exchanged(new) if changes else new
        self._tell(changes, time.monotonic() - began)
        await sliced(old.dissolve())

    def _refuse(self, refused: Refused) -> None:
        self._figures.refused += 1
        self._log.error("rules_refused", mistakes=refused.mistakes)
        if refused.passes:
            self._again = trio.current_time() + AGAIN

    def _compiled(self, said: bytes, new: RuleSet, changes: Changes) -> Iterator[None]:
        for rule in passing.parse(said):
            before = self._rules.rule(rule.id)
            if before != rule:
                changes.added += before is None
                changes.changed += before is not None
            new.add(rule)
            yield
        changes.removed = len(self._rules) + changes.added - len(new)

    async def _exchanged(self, new: RuleSet) -> RuleSet:
        """Put rules in force; answers those before."""
        old, self._rules = self._rules, new
        await sliced(self._adopt(new))
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


async def sliced(steps: Iterable[T]) -> list[T]:
    """Answer all of them; after each slice of time others have their turn."""
    found = []
    until = time.monotonic() + SLICE
    for step in steps:
        found.append(step)
        if time.monotonic() >= until:
            await trio.lowlevel.checkpoint()
            until = time.monotonic() + SLICE
    return found
